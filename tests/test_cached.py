import os
import threading
import time

import pytest

from sklboost.engine.cached import cached_property


class Slow:
    def __init__(self, begun=None, go_on=None):
        self.begun, self.go_on, self.n_times = begun, go_on, 0

    @cached_property
    def answer(self):
        """Forty-two."""
        self.n_times += 1
        if self.begun is not None:
            self.begun.set()
            self.go_on.wait(20)
        return 42


def test_it_is_computed_once():
    slow = Slow()
    assert slow.answer == slow.answer == 42
    assert slow.n_times == 1
    assert vars(slow)["answer"] == 42
    assert Slow.answer.__doc__ == "Forty-two."
    slow.answer = 43
    assert slow.answer == 43
    assert Slow().answer == 42


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_while_another_thread_computes_does_not_wait():
    begun, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Slow(begun, go_on).answer)
    thread.start()
    assert begun.wait(20)
    child = os.fork()
    if child == 0:
        os._exit(0 if Slow().answer == 42 else 1)
    end, ended = time.monotonic() + 10, 0
    while not ended and time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    go_on.set()
    thread.join()
    if not ended:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended
    assert status == 0
