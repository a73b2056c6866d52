"""Where machines sit: on workers, each with a thread and with its connections.

The thread is that of a task. Dask shows it as a long-running one: it takes no place of other
tasks, the worker does not count as idle, and the task is released when the client lets go of it or
is no more. So a look at the task tells whether the machine is still wanted. What the client asks
for comes by `Client.run`, which does not wait for other tasks.
"""

import asyncio
import pickle
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple

from distributed import Status, Worker, get_worker, secede
from distributed.comm import Comm

from sklboost.distributed.peers import Peers, StoppedError
from sklboost.distributed.streams import STREAM, open_peers

READY = 0  # the number of the reply that a machine gives unasked, when it has its thread

_SEATS = "sklboost-seats"  # the extension of a worker that has its seats by training
_GLANCE = 0.2  # seconds from one look at the task to the next
_POLL = 1.0  # seconds after which the client hears that a machine is busy
_MOMENT = 0.02  # seconds until the client hears that a worker has no such machine
_OPEN = (Status.init, Status.running, Status.paused, Status.closing_gracefully)
_WANTED = ("executing", "long-running", "memory", "error")  # states of a task that was not released


class Reply(NamedTuple):
    """What the client hears of a machine."""

    # absent: the worker has no such machine. Lost: the client does not hear of the worker. Closed:
    # nor is there a connection.
    kind: Literal["done", "error", "busy", "absent", "lost", "closed"]
    value: Any  # the result; the error; the status of a worker; why it is lost


class Seat:
    """A machine on a worker.

    Made, and watched, on the event loop of the worker.

    Parameters
    ----------
    worker : Worker
    key : str
        The task whose thread the machine has.
    training : str
        A name that no other training has.
    rank : int
    addresses : sequence of str
        The address of the worker of each rank.
    """

    def __init__(
        self, worker: Worker, key: str, training: str, rank: int, addresses: Sequence[str]
    ):
        self.place = (worker, training, rank, addresses)
        self.comms: dict[int, Comm] = {}  # to other ranks
        self.ended = asyncio.Event()
        self.machine: Any = None
        self.peers: Peers | None = None
        self.stopped = False
        self._key = key
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[tuple[int, Callable[..., Any], Sequence[Any]]] = SimpleQueue()
        self._replies: dict[int, asyncio.Future[Reply]] = {}
        self._watching = asyncio.ensure_future(self._watch())

    def ask(self, number: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Have the thread call ``function(seat, *arguments)`` when it has done what it does."""
        self._calls.put((number, function, arguments))

    async def reply(self, number: int) -> Reply:
        """Return the reply to a call, or after some time that the machine is busy."""
        future = self._replies.setdefault(number, self._loop.create_future())
        if self.ended.is_set():
            self._settle(number, _STOPPED)
        await asyncio.wait([future], timeout=_POLL)
        return (
            self._replies.pop(number).result() if future.done() else _status("busy", self.place[0])
        )

    def run(self) -> None:
        """Do what is asked for, in this thread, until the machine fails or is stopped."""
        self._tell(self._settle, READY, Reply("done", None))
        while not self.stopped:
            number, function, arguments = self._calls.get()
            try:
                reply = Reply("done", function(self, *arguments))
            except BaseException as error:
                self.stop()
                reply = Reply("error", _portable(error, self.place[0].address))
            self._tell(self._settle, number, reply)
            del arguments, reply
        self.machine = None
        self._tell(self._end)

    def stop(self) -> None:
        """End what the machine does when it next waits for others; in any thread."""
        self.stopped = True
        if self.peers is not None:
            self.peers.stop()
        self.ask(-1, Seat.stop, ())  # the thread may wait for a call

    def _tell(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the worker
            self._loop.call_soon_threadsafe(function, *arguments)

    def _settle(self, number: int, reply: Reply) -> None:
        future = self._replies.setdefault(number, self._loop.create_future())
        if not future.done():
            future.set_result(reply)

    def _end(self) -> None:
        self.ended.set()
        for number in self._replies:
            self._settle(number, _STOPPED)
        for comm in self.comms.values():
            comm.abort()

    async def _watch(self) -> None:
        """Stop the machine when its task was released, or the worker closes."""
        worker, training = self.place[:2]
        while worker.status in _OPEN:
            task = worker.state.tasks.get(self._key)
            if task is None or task.state not in _WANTED:
                break
            await asyncio.sleep(_GLANCE)
        self.stop()
        await self.ended.wait()
        del worker.extensions[_SEATS][training]


_STOPPED = Reply("error", StoppedError("the training was stopped"))


# --- what the client has workers do --------------------------------------------------------------


def work(training: str, rank: int, addresses: Sequence[str]) -> None:
    """Be the thread of a machine: a task."""
    worker = get_worker()
    key = worker.get_current_task()
    secede()

    async def sit() -> Seat:
        worker.handlers[STREAM] = _taker(worker)
        seats = worker.extensions.setdefault(_SEATS, {})
        seats[training] = seat = Seat(worker, key, training, rank, addresses)
        return seat

    asyncio.run_coroutine_threadsafe(sit(), worker.loop.asyncio_loop).result().run()


def bring(training: str, number: int, make: Callable[..., Any], *arguments: object) -> None:
    """Have a machine made of what Dask brings: a task, whose arguments are results of others."""
    seat = _seat(get_worker(), training)
    if seat is not None:
        seat.ask(number, build, (make, *arguments))


async def attend(
    training: str,
    number: int,
    function: Callable[..., Any] | None = None,
    arguments: Sequence[Any] = (),
    dask_worker: Worker | None = None,
) -> Reply:
    """Ask a machine to call a function, if there is one, and return the reply to that call."""
    assert dask_worker is not None  # Client.run names itself so
    seat = _seat(dask_worker, training)
    if seat is None:
        await asyncio.sleep(_MOMENT)
        return _status("absent", dask_worker)
    if function is not None:
        seat.ask(number, function, arguments)
    return await seat.reply(number)


def _seat(worker: Worker, training: str) -> Seat | None:
    seat: Seat | None = worker.extensions.get(_SEATS, {}).get(training)
    return seat


def _status(kind: Literal["busy", "absent"], worker: Worker) -> Reply:
    return Reply(kind, worker.status.name)


def _taker(worker: Worker) -> Callable[..., Any]:
    """Return what a worker does with a connection that another machine offers."""

    async def take(comm: Comm, training: str, rank: int) -> Status:
        seat = _seat(worker, training)
        if seat is not None and not seat.ended.is_set():
            seat.comms[rank] = comm
            await seat.ended.wait()
        comm.abort()
        return Status.dont_reply

    return take


def _portable(error: BaseException, address: str) -> BaseException:
    """Return an error without its frames, which hold data, and with a note that has their text."""
    text = "".join(traceback.format_exception(error))
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does when it is pickled
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    copy.add_note(f"\nOn the worker {address}:\n{text}")
    return copy


# --- what the client asks of a machine -----------------------------------------------------------


def connect(seat: Seat) -> None:
    """Connect a machine to the others."""
    opening = asyncio.run_coroutine_threadsafe(
        open_peers(*seat.place, seat.comms), seat.place[0].loop.asyncio_loop
    )
    while not opening.done():
        if seat.stopped:
            opening.cancel()
            raise StoppedError("the training was stopped")
        with suppress(TimeoutError):
            opening.exception(_GLANCE)
    seat.peers = opening.result()
    if seat.stopped:
        seat.peers.stop()


def build(seat: Seat, make: Callable[..., Any], *arguments: object) -> None:
    """Make the object of a machine."""
    seat.machine = make(seat.peers, *arguments)


def call(seat: Seat, method: str, *arguments: object) -> object:
    """Call a method of the object."""
    return getattr(seat.machine, method)(*arguments)


def count(seat: Seat) -> dict[str, tuple[int, int]]:
    """Return the messages and bytes that the machine sent, by phase."""
    peers = seat.peers
    assert peers is not None
    return {phase: (peers.n_messages[phase], n_bytes) for phase, n_bytes in peers.n_bytes.items()}
