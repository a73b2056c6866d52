"""Exchanges between threads: what arrives, its counts, and ends of waiting."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sklboost.distributed.peers import LostPeerError, StoppedError, ThreadPeers


def part(sender, receiver, step):
    return np.full(10 * sender + receiver, step, dtype=np.uint8)


def exchange(peers):
    received = []
    for step in range(20):
        parts = [part(peers.rank, rank, step) for rank in range(peers.size)]
        received.append(peers.all_to_all(parts))
        assert received[-1][peers.rank] is parts[peers.rank]
        for sent in parts:
            sent[:] = 255  # the receivers have their own
    return received


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_each_rank_gets_the_part_that_was_for_it(size):
    with ThreadPoolExecutor(size) as threads:
        of_ranks = list(threads.map(exchange, ThreadPeers.make(size)))
    for receiver, received in enumerate(of_ranks):
        for step, parts in enumerate(received):
            for sender in set(range(size)) - {receiver}:
                np.testing.assert_array_equal(parts[sender], part(sender, receiver, step))
                assert not parts[sender].flags.writeable


def test_messages_are_counted_by_phase():
    first, second = ThreadPeers.make(2)
    first.phase = "histograms"
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(exchange, [first, second]))
    assert first.n_messages == {"histograms": 20}
    assert first.n_bytes == {"histograms": 20 * 1}
    assert second.n_messages == {"": 20}
    assert second.n_bytes == {"": 20 * 10}


def test_a_stop_ends_the_waits_of_all_and_later_exchanges():
    first, second = ThreadPeers.make(2)
    parts = [np.zeros(3, dtype=np.uint8)] * 2
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(first.all_to_all, parts)
        second.stop()
        with pytest.raises(LostPeerError, match="machine 1 has ended"):
            waiting.result(timeout=10)
    for _ in range(2):
        with pytest.raises(LostPeerError, match="machine 1 has ended"):
            first.all_to_all(parts)
        with pytest.raises(StoppedError, match="stopped"):
            second.all_to_all(parts)
