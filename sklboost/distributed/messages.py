"""Messages between the workers of a training, over the connections that Dask makes.

The only message is a part for each other rank (:meth:`Peers.all_to_all`). :func:`open_peers`
connects one rank: by streams, or by queues where all workers are threads of one process.
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

_LENGTH = struct.Struct("<Q")  # before each part: its number of bytes
_SMALL = 1 << 14  # bytes of a part that is copied, to go out with its length at once
_LARGE = 1 << 25  # bytes of a part whose memory is not kept for later ones
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

    def all_to_all(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Send a part, uint8, to each rank, and return what each rank sent here, read-only.

        Every rank calls it the same number of times, in the same order, from one thread, not the
        event loop's. Parts may be empty, and written to when it returns; in the own place it
        returns the own part. LostPeerError if a peer is gone, StoppedError after :meth:`stop`.
        """
        others = [part.nbytes for rank, part in enumerate(parts) if rank != self.rank]
        self.n_messages[self.phase] += len(others)
        self.n_bytes[self.phase] += sum(others)
        received = self._exchange(parts)
        received[self.rank] = parts[self.rank]
        return received

    @abstractmethod
    def stop(self) -> None:
        """Let this and later exchanges raise StoppedError here and LostPeerError on other ranks.

        It may be called in any thread, and more than once.
        """

    @abstractmethod
    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Send the parts of the other ranks and return theirs; the own place may hold anything."""


async def open_peers(
    worker: Worker, training: str, rank: int, addresses: Sequence[str], comms: dict[int, Comm]
) -> Peers:
    """Return the peers of a rank on a worker, connected to it.

    `addresses` has the worker of each rank. It connects to the higher ranks and waits for the lower
    ones, whose connections the worker puts into `comms`, until it is cancelled. No rank may send a
    part before all are connected.
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

    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        for rank, stream in self._streams.items():
            stream.begin(parts[rank])
        busy = ready = list(self._streams.values())
        while not self._stopped:
            for stream in ready:
                stream.go_on()
            busy = [stream for stream in busy if stream.watch(self._selector)]
            if not busy:
                received = list(parts)
                for rank, stream in self._streams.items():
                    received[rank] = stream.end()
                return received
            ready = [key.data for key, _ in self._selector.select(_PATIENCE)] or busy
        raise StoppedError("the training was stopped")


class _Stream:
    """A connection to another rank, the part that goes out and the part that comes in.

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
        self._missing = memoryview(b"")  # the rest to receive: of the length, then of the part
        self._part: np.ndarray | None = None
        self._memory = np.empty(0, dtype=np.uint8)  # of parts that came

    def shut(self) -> None:
        """End all traffic: both machines notice, wherever they are."""
        with suppress(OSError):  # a TLS socket's own method would go on without TLS
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def begin(self, part: np.ndarray) -> None:
        """Take a part to be sent, and expect one."""
        length = _LENGTH.pack(part.nbytes)
        if part.nbytes <= _SMALL:
            self._outgoing = [memoryview(length + part.tobytes())]
        else:
            self._outgoing = [memoryview(length), np.ascontiguousarray(part).data]
        self._part = None
        self._missing = memoryview(self._length)

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
            if self._part is None and not self._missing.nbytes:
                part = self._part = self._room(*_LENGTH.unpack(self._length))
                self._missing = part.data

    def _room(self, n_bytes: int) -> np.ndarray:
        """Return memory for a part: an earlier part's, if nobody refers to it any more.

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
        """Return the part that came."""
        part, self._part = self._part, None
        assert part is not None
        part.flags.writeable = False
        return part


class Mailboxes:
    """Where threads of one process leave parts, or the reason why there will be none.

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

    @classmethod
    def make(cls, size: int) -> "list[ThreadPeers]":
        """Return the peers of all ranks, one for each thread."""
        mailboxes = Mailboxes(size)
        return [cls(rank, mailboxes) for rank in range(size)]

    def stop(self) -> None:
        """Leave errors for this rank and for the others."""
        for mailbox in self._incoming:
            mailbox.put(StoppedError("the training was stopped"))
        for mailbox in self._outgoing:
            mailbox.put(LostPeerError(f"machine {self.rank} has ended"))

    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        for part, mailbox in zip(parts, self._outgoing, strict=True):
            sent = part.copy()
            sent.flags.writeable = False
            mailbox.put(sent)
        received = []
        for mailbox in self._incoming:
            found = mailbox.get()
            if isinstance(found, Exception):
                mailbox.put(found)  # for later exchanges
                raise found
            received.append(found)
        return received
