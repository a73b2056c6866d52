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
    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Send all parts but the own one, and return those received, with any in the own place."""


class ThreadPeers(Peers):
    """Machines that are threads of one process, as tests have them.

    Parameters
    ----------
    rank : int
    queues : sequence of sequence of SimpleQueue
        ``queues[r][s]`` has the parts that rank r sent to rank s.
    """

    def __init__(self, rank: int, queues: "Sequence[Sequence[SimpleQueue[np.ndarray | None]]]"):
        super().__init__(rank, len(queues))
        self._queues = queues

    @classmethod
    def make(cls, size: int) -> "list[ThreadPeers]":
        """Return the peers of all ranks; each thread takes one."""
        queues = [[SimpleQueue[np.ndarray | None]() for _ in range(size)] for _ in range(size)]
        return [cls(rank, queues) for rank in range(size)]

    def stop(self) -> None:
        """Let this and all later exchanges of all machines raise StoppedError."""
        for row in self._queues:
            for queue in row:
                queue.put(None)

    def _exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        for rank, part in enumerate(parts):
            self._queues[self.rank][rank].put(_frozen(part.copy()))
        received = []
        for rank in range(self.size):
            queue = self._queues[rank][self.rank]
            sent = queue.get()
            if sent is None:
                queue.put(None)
                raise StoppedError("the training was stopped")
            received.append(sent)
        return received


def _frozen(part: np.ndarray) -> np.ndarray:
    part.flags.writeable = False
    return part
