"""Machines that talk as threads and over sockets: parts of any size, counts, ends, stops."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from sklboost.distributed.messages import (
    LostPeerError,
    StoppedError,
    StreamPeers,
    open_peers,
)
from tests.distributed.machines import thread_peers


@contextmanager
def connected(size):
    """Give the peers of all ranks, and the sockets by rank and peer."""
    sockets = [{} for _ in range(size)]
    for one, other in combinations(range(size), 2):
        sockets[one][other], sockets[other][one] = pair = socket.socketpair()
        for end in pair:
            end.setblocking(False)
    loop = SimpleNamespace(remove_handler=lambda end: None)
    addresses = [f"tcp://somewhere:{rank}" for rank in range(size)]
    yield (
        [
            StreamPeers(
                rank,
                addresses,
                {
                    peer: SimpleNamespace(stream=SimpleNamespace(socket=end, io_loop=loop))
                    for peer, end in sockets[rank].items()
                },
            )
            for rank in range(size)
        ],
        sockets,
    )
    for ends in sockets:
        for end in ends.values():
            end.close()


def in_threads(function, peers):
    with ThreadPoolExecutor(len(peers)) as threads:
        return list(threads.map(function, peers))


def drawn(sender, step):
    rng = np.random.default_rng([sender, step])
    return np.full(int(10 ** rng.uniform(0, 5.5)) - 1, rng.integers(256), dtype=np.uint8)


def numbers_of(sender, receiver, step):
    """Return numbers, as many from every sender."""
    n = int(10 ** np.random.default_rng([receiver, step]).uniform(0, 4.5)) - 1
    return np.random.default_rng([sender, receiver, step]).integers(1000, size=n)


@contextmanager
def peers_of(kind, size):
    with connected(size) as (stream_peers, _):
        yield stream_peers if kind == "sockets" else thread_peers(size)


@pytest.mark.parametrize("kind", ["threads", "sockets"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_parts_of_random_sizes_at_random_times(kind, size):
    def exchange(peers):
        for step in range(6):
            time.sleep(0.001 * np.random.default_rng([peers.rank, step]).integers(3))
            part = drawn(peers.rank, step)
            received = peers.gather(part, [len(drawn(rank, step)) for rank in range(size)])
            part[:] = 0  # the others have their own
            for sender in set(range(size)) - {peers.rank}:
                np.testing.assert_array_equal(received[sender], drawn(sender, step))
                assert not received[sender].flags.writeable
            total = peers.add_up([numbers_of(peers.rank, rank, step) for rank in range(size)])
            own = sum(numbers_of(sender, peers.rank, step) for sender in range(size))
            np.testing.assert_array_equal(total, own)

    with peers_of(kind, size) as peers:
        in_threads(exchange, peers)
    n_steps = (size - 1).bit_length()
    for each in peers:
        assert each.n_messages.total() == 12 * n_steps
        sent = sum(
            (size - 1) * len(drawn(rank, step)) + 8 * numbers_of(0, rank, step).size * (size - 1)
            for step in range(6)
            for rank in range(size)
        )
    assert sum(each.n_bytes.total() for each in peers) == sent


@pytest.mark.parametrize("kind", ["threads", "sockets"])
def test_messages_are_counted_by_phase(kind):
    def exchange(peers):
        for _ in range(20):
            peers.gather(np.zeros(10 * peers.rank + 1, dtype=np.uint8), [1, 11])

    with peers_of(kind, 2) as (first, second):
        first.phase = "histograms"
        in_threads(exchange, [first, second])
    assert first.n_messages == {"histograms": 20}
    assert first.n_bytes == {"histograms": 20 * 1}
    assert second.n_messages == {"": 20}
    assert second.n_bytes == {"": 20 * 11}


def test_memory_of_parts_is_used_again_when_nobody_has_them():
    def exchange(peers):
        received = [
            peers.gather(np.full(n_bytes, n_bytes % 256, dtype=np.uint8))[1 - peers.rank]
            for n_bytes in (100_000, 90_000, 100_000)
        ]
        for part in received:  # all that are still here have memory of their own
            assert (part == len(part) % 256).all()
        places = set()
        for n_bytes in (80_000, 100_000, 5):
            part = peers.gather(np.zeros(n_bytes, dtype=np.uint8))[1 - peers.rank]
            assert len(part) == n_bytes
            places.add(part.ctypes.data)
            del part
        return len(places)

    with connected(2) as (peers, _):
        assert in_threads(exchange, peers) == [2, 2]  # what came before was in use at first


def test_parts_with_gaps_in_memory():
    parts = np.arange(400_000).reshape(2, -1, 2)[..., 0]
    with connected(2) as (peers, _):
        received = in_threads(lambda one: one.gather(parts[one.rank]), peers)
    for of_all in received:
        np.testing.assert_array_equal([part.view(parts.dtype) for part in of_all], parts)


@pytest.mark.parametrize("sent", [b"", b"\x05\0\0", b"\x05\0\0\0\0\0\0\0abc"])
def test_a_peer_that_ends_in_the_middle_is_lost(sent):
    with connected(2) as (peers, sockets):
        sockets[1][0].sendall(sent)
        sockets[1][0].close()
        for _ in range(2):
            with pytest.raises(LostPeerError, match="tcp://somewhere:1 broke"):
                peers[0].gather(np.zeros(3, dtype=np.uint8))


@pytest.mark.parametrize("n_bytes", [10, 30_000_000])  # they wait to read, or to write
@pytest.mark.parametrize(
    ("rank", "error"), [(0, StoppedError("was stopped")), (2, LostPeerError("somewhere:2 broke"))]
)
def test_a_stop_ends_the_waits_of_sockets(n_bytes, rank, error):
    part = np.zeros(n_bytes, dtype=np.uint8)
    with connected(3) as (peers, _), ThreadPoolExecutor(1) as threads:
        call = threads.submit(peers[0].gather, part)
        time.sleep(0.1)
        assert not call.done()
        for _ in range(2):
            peers[rank].stop()
        with pytest.raises(type(error), match=str(error)):
            call.result(timeout=0.9)
        with pytest.raises(type(error), match=str(error)):
            peers[0].gather(part)


def test_a_stop_ends_the_waits_of_threads():
    first, second = thread_peers(2)
    part = np.zeros(3, dtype=np.uint8)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(first.gather, part)
        second.stop()
        with pytest.raises(LostPeerError, match="machine 1 has ended"):
            waiting.result(timeout=10)
    for _ in range(2):
        with pytest.raises(LostPeerError, match="machine 1 has ended"):
            first.gather(part)
        with pytest.raises(StoppedError, match="stopped"):
            second.gather(part)


def test_a_socket_closed_here_ends_a_wait():
    part = np.zeros(10, dtype=np.uint8)
    with connected(2) as (peers, sockets), ThreadPoolExecutor(1) as threads:
        call = threads.submit(peers[0].gather, part)
        time.sleep(0.1)
        sockets[0][1].close()
        with pytest.raises(LostPeerError, match="somewhere:1 broke"):
            call.result(timeout=3)


def test_a_protocol_without_sockets_is_refused():
    opening = open_peers(None, "training", 0, ["ws://a:1", "ws://b:2"], {})
    with pytest.raises(ValueError, match=r"a worker is at ws://b:2: training works with .* tls://"):
        opening.send(None)
