"""Messages between the machines of a training, over the connections that Dask makes."""

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


class LostPeerError(ConnectionError):
    """A machine waited for a message of a peer that is gone."""


class StoppedError(Exception):
    """The training was stopped while a machine waited for a message, or before."""


class Peers(ABC):
    """The machines of a training as one of them sees them.

    Parameters
    ----------
    rank : int
        The number of this machine.
    size : int
        Number of machines; their ranks are 0 to size - 1.

    Attributes
    ----------
    phase : str
        What the messages are for, under which they are counted. It may be set at any time.
    n_messages, n_bytes : Counter
        Messages and bytes sent to other machines so far, by phase.
    """

    def __init__(self, rank: int, size: int):
        self.rank = rank
        self.size = size
        self.phase = ""
        self.n_messages: Counter[str] = Counter()
        self.n_bytes: Counter[str] = Counter()

    def all_to_all(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Send a part to each machine, and return what each machine sent here.

        Every machine calls it the same number of times, in the same order, from one thread that is
        not that of an event loop.

        Parameters
        ----------
        parts : sequence of ndarray of shape (n_bytes[r],), uint8
            The part for each rank r, which may be empty. All may be written to when this returns.

        Returns
        -------
        received : list of ndarray of uint8
            What each rank sent to this one, read-only; ``parts[rank]`` itself in its own place.

        Raises
        ------
        LostPeerError
            If a peer is gone.
        StoppedError
            If the training was stopped.
        """
        others = [part.nbytes for rank, part in enumerate(parts) if rank != self.rank]
        self.n_messages[self.phase] += len(others)
        self.n_bytes[self.phase] += sum(others)
        received = self._exchange(parts)
        received[self.rank] = parts[self.rank]
        return received

    @abstractmethod
    def stop(self) -> None:
        """Let this and later exchanges here raise StoppedError, those of the others LostPeerError.

        It may be called in any thread, and more than once.
        """

    @abstractmethod
    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Send all parts but the own one, and return those received, with any in the own place."""


class Mailboxes:
    """Where threads of one process leave parts, or the reason why there will be none.

    Parameters
    ----------
    size : int
        Number of machines.
    """

    def __init__(self, size: int):
        ranks = range(size)
        self.sent_by = [[SimpleQueue[np.ndarray | Exception]() for _ in ranks] for _ in ranks]


class ThreadPeers(Peers):
    """Machines that are threads of one process.

    Parameters
    ----------
    rank : int
    mailboxes : Mailboxes
        What rank r left for rank s is in ``mailboxes.sent_by[r][s]``.
    """

    def __init__(self, rank: int, mailboxes: Mailboxes):
        super().__init__(rank, len(mailboxes.sent_by))
        self._mailboxes = mailboxes  # kept: those who come later find them by a weak reference
        self._outgoing = mailboxes.sent_by[rank]
        self._incoming = [of_rank[rank] for of_rank in mailboxes.sent_by]

    @classmethod
    def make(cls, size: int) -> "list[ThreadPeers]":
        """Return the peers of all ranks; each thread takes one."""
        mailboxes = Mailboxes(size)
        return [cls(rank, mailboxes) for rank in range(size)]

    def stop(self) -> None:
        """Let this and later exchanges here raise StoppedError, those of the others LostPeerError.

        It may be called in any thread, and more than once.
        """
        for mailbox in self._incoming:
            mailbox.put(StoppedError("the training was stopped"))
        for mailbox in self._outgoing:
            mailbox.put(LostPeerError(f"machine {self.rank} has ended"))

    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        for part, mailbox in zip(parts, self._outgoing, strict=True):
            sent = part.copy()
            sent.flags.writeable = False
            mailbox.put(sent)
        return [_take(mailbox) for mailbox in self._incoming]


def _take(mailbox: "SimpleQueue[np.ndarray | Exception]") -> np.ndarray:
    received = mailbox.get()
    if isinstance(received, Exception):
        mailbox.put(received)  # for later exchanges
        raise received
    return received


STREAM = "sklboost-stream"  # the operation that offers a connection to another machine

_LENGTH = struct.Struct("<Q")  # before each part: its number of bytes
_SMALL = 1 << 14  # bytes of a part that is copied, to go out with its length at once
_LARGE = 1 << 25  # bytes of a part whose memory is not kept for later ones
_UNUSED = 2  # references to memory that is known here only, counted by a call
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_PATIENCE = 1.0  # seconds of waiting, until sockets are tried in case that they were closed here

_mailboxes: "WeakValueDictionary[str, Mailboxes]" = WeakValueDictionary()


async def open_peers(
    worker: Worker, training: str, rank: int, addresses: Sequence[str], comms: dict[int, Comm]
) -> Peers:
    """Return the peers of a machine, connected to it.

    It connects to the higher ranks and waits for the lower ones, until it is cancelled. No machine
    may send a part before all are connected.

    Parameters
    ----------
    worker : Worker
        Where the machine is.
    training : str
        A name that no other training has.
    rank : int
    addresses : sequence of str
        The address of the worker of each rank.
    comms : dict
        Connections to other ranks: those from lower ranks, as they come, to which those to the
        higher are added.
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
    """Machines on workers of other processes.

    Parameters
    ----------
    rank : int
    addresses : sequence of str
        The address of the worker of each rank.
    comms : dict of int to Comm
        The connection to each other rank. Its owner closes it when the machine has ended.
    """

    def __init__(self, rank: int, addresses: Sequence[str], comms: dict[int, Comm]):
        super().__init__(rank, len(addresses))
        self._streams = {
            peer: _Stream(comm, addresses[peer]) for peer, comm in sorted(comms.items())
        }
        self._selector = DefaultSelector()
        self._stopped = False

    def stop(self) -> None:
        """Let this and later exchanges here raise StoppedError, those of the others LostPeerError.

        It may be called in any thread, and more than once.
        """
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
    """A connection to another machine, the part that goes out and the part that comes in.

    Parameters
    ----------
    comm : Comm
        The connection, of which the event loop loses sight.
    address : str
        Of the other machine's worker.
    """

    def __init__(self, comm: Comm, address: str):
        stream = comm.stream
        stream.io_loop.remove_handler(stream.socket)
        self._socket = stream.socket
        self._address = address
        self._watched = 0  # what the selector waits for
        self._outgoing: list[memoryview] = []
        self._length = bytearray(_LENGTH.size)
        self._missing = memoryview(b"")  # what is still to come: of the length, then of the part
        self._part: np.ndarray | None = None
        self._memory = np.empty(0, dtype=np.uint8)  # of parts that came

    def shut(self) -> None:
        """End all traffic: both machines notice, wherever they are."""
        with suppress(OSError):  # that of TLS sockets would go on without TLS
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
        """Return memory for a part: that of an earlier one, if nobody has that any more.

        Large memory that is new costs as much time as the message: Dask has workers give it back to
        the operating system.
        """
        if n_bytes > _LARGE:
            return np.empty(n_bytes, dtype=np.uint8)
        if n_bytes > self._memory.nbytes or getrefcount(self._memory) > _UNUSED:
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        return self._memory[:n_bytes]

    def watch(self, selector: DefaultSelector) -> bool:
        """Have a selector wait for what is needed to go on; return whether anything is."""
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
