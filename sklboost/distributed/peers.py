"""What the machines of a training know of one another: messages, all to all, and their counts."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from queue import SimpleQueue

import numpy as np


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
