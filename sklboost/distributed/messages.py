"""Messages between the workers of a training, over the connections that Dask makes.

What each rank has is sent to all (:meth:`Peers.gather`), or added up for each
(:meth:`Peers.add_up`), in steps: a message to the rank that is 1, 2, 4, 8, ... further, the ranks
being a ring. So a rank sends as many messages as the number of ranks has binary digits, and each
part once to each rank that it is for. :func:`open_peers` connects one rank: by streams, or by
queues where all workers are threads of one process.

Source: Bruck, Ho, Kipnis, Upfal & Weathersby (1997), "Efficient algorithms for all-to-all
communications in multiport message-passing systems", section 4.
"""

import asyncio
import socket
import ssl
import struct
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from sys import getrefcount
from weakref import WeakValueDictionary

import numpy as np
from distributed import Worker
from distributed.comm import Comm, connect

STREAM = "sklboost-stream"  # the operation that offers a connection to another machine

_LENGTH = struct.Struct("<Q")  # before each message: its number of bytes
_SMALL = 1 << 14  # bytes of a message that is copied, to go out with its length at once
_LARGE = 1 << 25  # bytes of a message whose memory is not kept for later ones
_UNUSED = 2  # references to memory that is known here only, counted by a call
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_PATIENCE = 1.0  # seconds of waiting, until sockets are tried in case that they were closed here

# of the trainings on threads of this process, by name
_mailboxes: "WeakValueDictionary[str, Mailboxes]" = WeakValueDictionary()


class LostPeerError(ConnectionError):
    """A machine waited for a message of a peer that is gone."""


class StoppedError(Exception):
    """The training was stopped while a machine waited for a message, or before."""


class Peers(ABC):
    """The ranks of a training, 0 to `size` - 1, as the one of number `rank` sees them."""

    def __init__(self, rank: int, size: int):
        self.rank = rank
        self.size = size
        self.phase = ""  # what the messages are for; set it at any time
        # messages and bytes sent to other ranks so far, by phase
        self.n_messages: Counter[str] = Counter()
        self.n_bytes: Counter[str] = Counter()

    def gather(self, part: np.ndarray, sizes: Sequence[int] | None = None) -> list[np.ndarray]:
        """Send an array to all ranks; return the bytes that each has sent, uint8, read-only.

        `sizes` are the numbers of bytes of each rank; None: all send as many. Every rank calls this
        and :meth:`add_up` the same number of times, in the same order, from one thread, not the
        event loop's. LostPeerError if a peer is gone, StoppedError after :meth:`stop`.
        """
        # of this rank, of the one before, ...
        known = [np.ascontiguousarray(part).reshape(-1).view(np.uint8)]
        sizes = [part.nbytes] * self.size if sizes is None else sizes
        while (step := len(known)) < self.size:
            stop, start = min(2 * step, self.size), 0
            message = self._shift(step, known[: stop - step])
            for distance in range(step, stop):
                n_bytes = sizes[self.rank - distance]
                known.append(message[start : start + n_bytes])
                start += n_bytes
        return [known[self.rank - rank] for rank in range(self.size)]

    def add_up(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Send an array to each rank; return the sum of those for this rank.

        The arrays of all ranks for one have the same length and type. They are overwritten.
        """
        sums = [parts[(self.rank + distance) % self.size] for distance in range(self.size)]
        while len(sums) > 1:
            step = 1 << (len(sums) - 1).bit_length() - 1
            message, start = self._shift(step, sums[step:]), 0
            for own in sums[: len(sums) - step]:
                own += message[start : start + own.nbytes].view(own.dtype)
                start += own.nbytes
            sums = sums[:step]
        return sums[0]

    def _shift(self, step: int, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Send parts to the rank that is `step` further; return what came from the one before."""
        self.n_messages[self.phase] += 1
        self.n_bytes[self.phase] += sum(part.nbytes for part in parts)
        return self._exchange((self.rank + step) % self.size, (self.rank - step) % self.size, parts)

    @abstractmethod
    def stop(self) -> None:
        """Let this and later exchanges raise StoppedError here and LostPeerError on other ranks.

        It may be called in any thread, and more than once.
        """

    @abstractmethod
    def _exchange(self, to: int, source: int, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Send parts to a rank as one message; return the bytes of another's, read-only."""


async def open_peers(
    worker: Worker, training: str, rank: int, addresses: Sequence[str], comms: dict[int, Comm]
) -> Peers:
    """Return the peers of a rank on a worker, connected to it.

    `addresses` has the worker of each rank. It connects to the higher ranks and waits for the lower
    ones, whose connections the worker puts into `comms`, until it is cancelled. No rank may send
    anything before all are connected.
    """
    protocols = {address.partition("://")[0] for address in addresses}
    if protocols == {"inproc"}:
        mailboxes = _mailboxes.setdefault(training, Mailboxes(len(addresses)))
        return ThreadPeers(rank, mailboxes)
    if not protocols <= {"tcp", "tls"}:
        raise ValueError(
            f"a worker is at {max(addresses)}: training works with workers at tcp:// and tls:// "
            "addresses; start the cluster with one of these protocols"
        )

    async def offer(peer: int) -> None:
        try:
            comm = comms[peer] = await connect(addresses[peer], **worker.connection_args)
            await comm.write({"op": STREAM, "training": training, "rank": rank, "reply": False})
        except OSError as error:
            raise LostPeerError(f"{addresses[peer]} cannot be reached: {error}") from error

    await asyncio.gather(*map(offer, range(rank + 1, len(addresses))))
    while len(comms) < len(addresses) - 1:
        await asyncio.sleep(0.005)
    return StreamPeers(rank, addresses, comms)


class StreamPeers(Peers):
    """Ranks on workers of several processes.

    `comms` has the connection to each other rank; its owner closes it when the training has ended.
    """

    def __init__(self, rank: int, addresses: Sequence[str], comms: dict[int, Comm]):
        super().__init__(rank, len(addresses))
        self._streams = {
            peer: _Stream(comm, addresses[peer]) for peer, comm in sorted(comms.items())
        }
        self._selector = DefaultSelector()
        self._stopped = False

    def stop(self) -> None:
        """Shut the connections down, which both sides notice."""
        self._stopped = True
        for stream in self._streams.values():
            stream.shut()

    def _exchange(self, to: int, source: int, parts: Sequence[np.ndarray]) -> np.ndarray:
        self._streams[to].send(parts)
        self._streams[source].expect()
        busy = ready = [self._streams[rank] for rank in {to, source}]
        while not self._stopped:
            for stream in ready:
                stream.go_on()
            busy = [stream for stream in busy if stream.watch(self._selector)]
            if not busy:
                return self._streams[source].end()
            ready = [key.data for key, _ in self._selector.select(_PATIENCE)] or busy
        raise StoppedError("the training was stopped")


class _Stream:
    """A connection to another rank, the message that goes out and the one that comes in.

    The event loop does not watch the connection any more. `address` is the worker's.
    """

    def __init__(self, comm: Comm, address: str):
        stream = comm.stream
        stream.io_loop.remove_handler(stream.socket)
        self._socket = stream.socket
        self._address = address
        self._watched = 0  # what the selector waits for
        self._outgoing: list[memoryview] = []
        self._length = bytearray(_LENGTH.size)
        self._missing = memoryview(b"")  # the rest to receive: of the length, then of the message
        self._message: np.ndarray | None = None
        self._memory = np.empty(0, dtype=np.uint8)  # of messages that came

    def shut(self) -> None:
        """End all traffic: both machines notice, wherever they are."""
        with suppress(OSError):  # a TLS socket's own method would go on without TLS
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def send(self, parts: Sequence[np.ndarray]) -> None:
        """Take parts to be sent as one message."""
        n_bytes = sum(part.nbytes for part in parts)
        whole = [memoryview(_LENGTH.pack(n_bytes)), *(part.view(np.uint8).data for part in parts)]
        self._outgoing = [memoryview(b"".join(whole))] if n_bytes <= _SMALL else whole

    def expect(self) -> None:
        """Be ready for a message."""
        self._message, self._missing = None, memoryview(self._length)

    def go_on(self) -> None:
        """Send and receive what can be without waiting."""
        try:
            with suppress(*_NOT_NOW):
                self._send()
            with suppress(*_NOT_NOW):
                self._receive()
        except OSError as error:
            reason = str(error) or type(error).__name__
            raise LostPeerError(f"the connection to {self._address} broke: {reason}") from error

    def _send(self) -> None:
        while self._outgoing:
            rest = self._outgoing[0][self._socket.send(self._outgoing[0]) :]
            self._outgoing[:1] = [rest] if rest.nbytes else []

    def _receive(self) -> None:
        while self._missing.nbytes:
            n_bytes = self._socket.recv_into(self._missing)
            if n_bytes == 0:
                raise ConnectionResetError("it was closed on the other side")
            self._missing = self._missing[n_bytes:]
            if self._message is None and not self._missing.nbytes:
                message = self._message = self._room(*_LENGTH.unpack(self._length))
                self._missing = message.data

    def _room(self, n_bytes: int) -> np.ndarray:
        """Return memory for a message: an earlier one's, if nobody refers to it any more.

        Large memory that is new costs as much time as the message: Dask has workers give it back to
        the operating system.
        """
        if n_bytes > _LARGE:
            return np.empty(n_bytes, dtype=np.uint8)
        if n_bytes > self._memory.nbytes or getrefcount(self._memory) > _UNUSED:
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        return self._memory[:n_bytes]

    def watch(self, selector: DefaultSelector) -> bool:
        """Have a selector wait until the socket can go on; return whether there is more to do."""
        needed = (EVENT_READ if self._missing.nbytes else 0) | (
            EVENT_WRITE if self._outgoing else 0
        )
        if needed != self._watched:
            if not self._watched:
                selector.register(self._socket, needed, self)
            elif not needed:
                selector.unregister(self._socket)
            else:
                selector.modify(self._socket, needed, self)
            self._watched = needed
        return needed != 0

    def end(self) -> np.ndarray:
        """Return the message that came."""
        message, self._message = self._message, None
        assert message is not None
        message.flags.writeable = False
        return message


class Mailboxes:
    """Where threads of one process leave messages, or the reason why there will be none.

    Rank r leaves them for rank s in ``sent_by[r][s]``.
    """

    def __init__(self, size: int):
        ranks = range(size)
        self.sent_by = [[SimpleQueue[np.ndarray | Exception]() for _ in ranks] for _ in ranks]


class ThreadPeers(Peers):
    """Ranks that are threads of one process."""

    def __init__(self, rank: int, mailboxes: Mailboxes):
        super().__init__(rank, len(mailboxes.sent_by))
        self._mailboxes = mailboxes  # kept: those who come later find them by a weak reference
        self._outgoing = mailboxes.sent_by[rank]
        self._incoming = [of_rank[rank] for of_rank in mailboxes.sent_by]
        self._stopped = False

    def stop(self) -> None:
        """Leave errors for this rank and for the others."""
        self._stopped = True
        for mailbox in self._incoming:
            mailbox.put(StoppedError("the training was stopped"))
        for mailbox in self._outgoing:
            mailbox.put(LostPeerError(f"machine {self.rank} has ended"))

    def _exchange(self, to: int, source: int, parts: Sequence[np.ndarray]) -> np.ndarray:
        sent = np.concatenate([part.view(np.uint8) for part in parts])
        sent.flags.writeable = False
        self._outgoing[to].put(sent)
        found = self._incoming[source].get()
        if self._stopped:
            raise StoppedError("the training was stopped")
        if isinstance(found, Exception):
            self._incoming[source].put(found)  # for later exchanges
            raise found
        return found
