"""The machines of a training: threads on workers, called together by the client."""

import asyncio
import pickle
import traceback
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import numpy as np
from distributed import Client, Future, Status, Worker, get_worker, secede
from distributed.comm import Comm

from sklboost.distributed.messages import STREAM, LostPeerError, Peers, StoppedError, open_peers

READY = 0  # the number of the reply that a machine gives unasked, when it has its thread

_THREADS = "sklboost-threads"  # the extension of a worker: its threads, by training
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


class WorkerThread:
    """The thread of a machine on a worker: it does what the client asks for, call by call.

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
        """Have the thread call ``function(thread, *arguments)`` when it has done what it does."""
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
        self.ask(-1, WorkerThread.stop, ())  # the thread may wait for a call

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
        del worker.extensions[_THREADS][training]


_STOPPED = Reply("error", StoppedError("the training was stopped"))


# --- what the client has workers do --------------------------------------------------------------


def run(training: str, rank: int, addresses: Sequence[str]) -> None:
    """Run the thread of a machine: a task."""
    worker = get_worker()
    key = worker.get_current_task()
    secede()

    async def open_thread() -> WorkerThread:
        worker.handlers[STREAM] = _taker(worker)
        threads = worker.extensions.setdefault(_THREADS, {})
        threads[training] = thread = WorkerThread(worker, key, training, rank, addresses)
        return thread

    asyncio.run_coroutine_threadsafe(open_thread(), worker.loop.asyncio_loop).result().run()


def deliver(training: str, number: int, make: Callable[..., Any], *arguments: object) -> None:
    """Have a machine made of what Dask delivers: a task, whose arguments are results of others."""
    thread = _thread_of(get_worker(), training)
    if thread is not None:
        thread.ask(number, build, (make, *arguments))


async def poll(
    training: str,
    number: int,
    function: Callable[..., Any] | None = None,
    arguments: Sequence[Any] = (),
    dask_worker: Worker | None = None,
) -> Reply:
    """Ask a machine to call a function, if there is one, and return the reply to that call."""
    assert dask_worker is not None  # Client.run names itself so
    thread = _thread_of(dask_worker, training)
    if thread is None:
        await asyncio.sleep(_MOMENT)
        return _status("absent", dask_worker)
    if function is not None:
        thread.ask(number, function, arguments)
    return await thread.reply(number)


def _thread_of(worker: Worker, training: str) -> WorkerThread | None:
    thread: WorkerThread | None = worker.extensions.get(_THREADS, {}).get(training)
    return thread


def _status(kind: Literal["busy", "absent"], worker: Worker) -> Reply:
    return Reply(kind, worker.status.name)


def _taker(worker: Worker) -> Callable[..., Any]:
    """Return what a worker does with a connection that another machine offers."""

    async def take(comm: Comm, training: str, rank: int) -> Status:
        thread = _thread_of(worker, training)
        if thread is not None and not thread.ended.is_set():
            thread.comms[rank] = comm
            await thread.ended.wait()
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


def connect(thread: WorkerThread) -> None:
    """Connect a machine to the others."""
    opening = asyncio.run_coroutine_threadsafe(
        open_peers(*thread.place, thread.comms), thread.place[0].loop.asyncio_loop
    )
    while not opening.done():
        if thread.stopped:
            opening.cancel()
            raise StoppedError("the training was stopped")
        with suppress(TimeoutError):
            opening.exception(_GLANCE)
    thread.peers = opening.result()
    if thread.stopped:
        thread.peers.stop()


def build(thread: WorkerThread, make: Callable[..., Any], *arguments: object) -> None:
    """Make the object of a machine."""
    thread.machine = make(thread.peers, *arguments)


def call(thread: WorkerThread, method: str, *arguments: object) -> object:
    """Call a method of the object."""
    return getattr(thread.machine, method)(*arguments)


def count(thread: WorkerThread) -> dict[str, tuple[int, int]]:
    """Return the messages and bytes that the machine sent, by phase."""
    peers = thread.peers
    assert peers is not None
    return {phase: (peers.n_messages[phase], n_bytes) for phase, n_bytes in peers.n_bytes.items()}


_GRACE = 5.0  # seconds that the others have to say why they end, when one machine has
_GRACE_OF_LOSS = 0.2  # the same when a worker is lost, which is why the others end
_GRACE_OF_NEWS = 2.0  # seconds for the scheduler to notice, too, that a connection is closed
_LOOK = 1.0  # seconds from one look whether all workers are there to the next
_PAUSE = 0.2  # the same where there are none, or some are closed
_LARGE = 1 << 20  # bytes of an array that goes to its worker by itself, and not within a task


_CONSEQUENCES = (LostPeerError, StoppedError)  # of what happened elsewhere
_LOST = ("lost", "closed")  # kinds of replies
_ENDED = "closed or killed, for its use of memory perhaps"


class LostWorkersError(ConnectionError):
    """Workers of a training are gone, or do not answer.

    Parameters
    ----------
    addresses : collection of str
        Those workers; none if the connection between two of them broke.
    reason : object
        What to tell of it.
    """

    def __init__(self, addresses: Collection[str], reason: object):
        self.addresses = tuple(addresses)
        self.reason = str(reason)
        super().__init__(self.addresses, self.reason)

    def __str__(self) -> str:
        return f"lost {', '.join(self.addresses) or 'a connection'}: {self.reason}"


class LostSchedulerError(ConnectionError):
    """The scheduler of the cluster is gone, or does not answer."""


def no_workers(client: Client, seconds: float) -> RuntimeError:
    """Return the error to raise when a cluster has had no workers for so long."""
    return RuntimeError(
        f"{client!r} has had no workers for {seconds:g} seconds: start some, or see their logs for "
        "why they have ended"
    )


class _Machine(NamedTuple):
    """A machine as the client has it, with its tasks: its thread, and what brings its data."""

    rank: int
    address: str
    futures: list[Future]


class Crew:
    """Machines of a training: an object on each of some workers, which know one another as peers.

    A machine computes in a thread of its own, beside the tasks of its worker, with which it shares
    processors and memory. Two trainings on the same workers do not wait for one another.

    Parameters
    ----------
    client : Client
        Not an asynchronous one.

    Attributes
    ----------
    silence : float
        Seconds without an answer after which a worker, or the scheduler, counts as lost: it is
        suspended, say, or computes something that does not let go of the interpreter.
    absence : float
        Seconds for which there may be no workers: those that were killed may be started again.
    """

    silence = 30.0
    absence = 50.0

    def __init__(self, client: Client):
        if client.asynchronous:
            raise ValueError(
                "the Client is asynchronous: training needs one that is not, such as Client(...) "
                "without asynchronous=True"
            )
        self._client = client
        self._training = ""
        self._machines: list[_Machine] = []
        self._number = 0  # of the last call

    def workers(self) -> dict[str, int]:
        """Return the addresses of workers that take tasks, and their numbers of threads.

        It waits for one while there is none.

        Raises
        ------
        RuntimeError
            If there is none for too long.
        LostSchedulerError
        """
        until = monotonic() + self.absence
        while not (found := self._client.sync(self._n_threads)):
            if monotonic() >= until:
                raise no_workers(self._client, self.absence)
            sleep(_PAUSE)
        return found

    def start(self, make: Callable[..., Any], arguments: Mapping[str, Sequence[Any]]) -> None:
        """Make the objects: ``make(peers, *arguments)`` on each worker.

        Parameters
        ----------
        make : callable
            What workers can import.
        arguments : mapping of str to sequence
            The arguments for the worker of each address, in the order of the ranks. In place of
            Futures ``make`` gets their results.

        Raises
        ------
        LostWorkersError, LostSchedulerError
        """
        self.stop()
        self._training = uuid4().hex
        self._machines = [_Machine(rank, address, []) for rank, address in enumerate(arguments)]
        self._run(self._start, make, list(arguments.values()))

    def call(self, method: str, *arguments: object) -> list[Any]:
        """Call a method of all objects and return the results by rank.

        Raises
        ------
        LostWorkersError
            If a worker is gone or does not answer.
        LostSchedulerError
        Exception
            What the method raises on a machine, with a note that has the machine's traceback.
            Whatever is raised, Ctrl-C too, ends all machines.
        """
        return self._run(self._ask_new, call, method, *arguments)

    def traffic(self) -> list[dict[str, tuple[int, int]]]:
        """Return, by rank, how many messages and bytes each machine sent in each phase."""
        return self._run(self._ask_new, count)

    def stop(self) -> None:
        """End the machines and free their memory, within moments.

        It does not wait. It may be called at any time, and does not need the scheduler.
        """
        machines, self._machines, self._training = self._machines, [], ""
        for machine in machines:
            while machine.futures:
                machine.futures.pop().release()

    def _run(self, function: Callable[..., Any], *arguments: object) -> Any:
        if not self._training:
            raise StoppedError("there are no machines: start them first")
        try:
            return self._client.sync(function, *arguments)
        except BaseException:
            self.stop()
            raise

    async def _start(self, make: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> None:
        machines, addresses = self._machines, [machine.address for machine in self._machines]
        for machine in machines:
            self._submit(machine, "thread", run, machine.rank, addresses)
        await self._ask(READY)
        await self._ask_new(connect)
        self._number += 1
        await self._gather(
            self._deliver(machine, (self._training, self._number), make, of_machine)
            for machine, of_machine in zip(machines, arguments, strict=True)
        )
        for machine in machines:
            del machine.futures[1:]  # what was delivered is freed

    def _submit(
        self, machine: _Machine, name: str, function: Callable[..., Any], *arguments: Any
    ) -> None:
        """Submit a task to the worker of a machine."""
        future = self._client.submit(
            function,
            self._training,
            *arguments,
            key=f"sklboost-{name}-{machine.rank}-{self._training}",
            workers=[machine.address],
            allow_other_workers=False,
        )
        machine.futures.append(future)

    async def _deliver(
        self,
        machine: _Machine,
        question: tuple[Any, ...],
        make: Callable[..., Any],
        arguments: Sequence[Any],
    ) -> Reply:
        """Have the object of a machine made; return the reply."""
        try:
            sent = [await self._sent(machine.address, argument) for argument in arguments]
        except (OSError, KeyError) as error:  # the latter if it is lost already
            return Reply("closed", f"{machine.address} took no data: {error}")
        self._submit(machine, "delivery", deliver, question[1], make, *sent)
        return await self._reply(machine, question)

    async def _sent(self, address: str, argument: Any) -> Any:
        """Send large arrays to their worker by themselves; return what stands for an argument."""
        if type(argument) is tuple:
            return tuple([await self._sent(address, part) for part in argument])
        if isinstance(argument, np.ndarray) and argument.nbytes >= _LARGE:
            (argument,) = await self._client.scatter(
                [argument], workers=[address], hash=False, asynchronous=True
            )
        return argument

    async def _ask_new(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        self._number += 1
        return await self._ask(self._number, function, arguments)

    async def _ask(self, number: int, *function_and_arguments: Any) -> list[Any]:
        """Have all machines call a function, if there is one, and return the results by rank."""
        question = (self._training, number, *function_and_arguments)
        return await self._gather(self._reply(machine, question) for machine in self._machines)

    async def _gather(self, replying: Iterable[Coroutine[Any, Any, Reply]]) -> list[Any]:
        """Return the results of all machines by rank, or raise the reason why there are none."""
        training, machines = self._training, self._machines
        tasks = [asyncio.ensure_future(reply) for reply in replying]
        try:
            await self._wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
        replies = [task.result() if task.done() else Reply("busy", "") for task in tasks]
        if all(reply.kind == "done" for reply in replies):
            return [reply.value for reply in replies]
        for reply in replies:
            if reply.kind == "error" and not isinstance(reply.value, _CONSEQUENCES):
                raise reply.value
        if self._training != training:
            raise StoppedError("the training was stopped")
        closed = [rank for rank, reply in enumerate(replies) if reply.kind == "closed"]
        await self._check_workers([machines[rank].address for rank in closed])
        lost = [rank for rank, reply in enumerate(replies) if reply.kind in _LOST]
        ended = lost or [rank for rank, reply in enumerate(replies) if reply.kind == "error"]
        raise LostWorkersError([machines[rank].address for rank in lost], replies[ended[0]].value)

    async def _wait(self, tasks: Sequence["asyncio.Task[Reply]"]) -> None:
        """Wait for replies, and for some time after a machine has failed.

        Then the others have the opportunity to say why.
        """
        pending, deadline = set(tasks), inf
        await self._check_workers()
        while pending and monotonic() < deadline:
            done, pending = await asyncio.wait(
                pending, timeout=min(_LOOK, deadline - monotonic()), return_when=FIRST_COMPLETED
            )
            if not done and deadline == inf:
                await self._check_workers()
            for reply in (task.result() for task in done):
                if reply.kind in _LOST:
                    deadline = min(deadline, monotonic() + _GRACE_OF_LOSS)
                elif reply.kind == "error":
                    is_cause = not isinstance(reply.value, _CONSEQUENCES)
                    deadline = min(deadline, monotonic() + (0 if is_cause else _GRACE))

    async def _reply(self, machine: _Machine, question: tuple[Any, ...]) -> Reply:
        """Return the reply of a machine to a call, when there is one or will be none.

        The question is what `poll` takes: training, number, function and its arguments.
        """
        address, number = machine.address, question[1]
        patience = monotonic() + self.silence
        while True:
            reply = await self._answer(address, question)
            if reply.kind in ("done", "error", *_LOST):
                return reply
            futures = list(machine.futures)
            if not futures or (reply.kind == "absent" and number > READY):
                return Reply("lost", f"{address} was restarted, or the training stopped")
            question = question[:2]
            for future in futures:
                if future.status == "error":
                    return Reply("error", await future.exception(asynchronous=True))
                if future.status in ("cancelled", "lost"):
                    return Reply("lost", f"a task of the training was cancelled at {address}")
            if reply.value != "paused" or futures[-1].done():
                patience = monotonic() + self.silence
            elif monotonic() > patience:
                return Reply("lost", f"{address} is paused, since its memory is full")

    async def _answer(self, address: str, question: tuple[Any, ...]) -> Reply:
        """Return what a worker says of its machine now."""
        running = self._client.run(
            poll, *question, workers=[address], on_error="return", asynchronous=True
        )
        try:
            (answer,) = (await asyncio.wait_for(running, self.silence)).values()
        except TimeoutError:
            return Reply("lost", f"{address} did not answer for {self.silence:g} seconds")
        except OSError as error:
            answer = error
        if isinstance(answer, OSError):
            return Reply("closed", f"no connection to {address}, {_ENDED}: {answer}")
        return Reply("error", answer) if isinstance(answer, Exception) else answer

    async def _check_workers(self, closed: Sequence[str] = ()) -> None:
        """Raise an error if the scheduler does not know all workers, or is gone itself.

        Workers with a closed connection are waited for until it does not know them, for a few
        seconds: it may not have noticed yet, and the next start would place machines there.
        """
        addresses = [machine.address for machine in self._machines]
        until = monotonic() + _GRACE_OF_NEWS
        known = await self._n_threads(addresses)
        while any(address in known for address in closed) and monotonic() < until:
            await asyncio.sleep(_PAUSE)
            known = await self._n_threads(addresses)
        gone = [address for address in addresses if address not in known]
        if gone:
            raise LostWorkersError(dict.fromkeys([*gone, *closed]), _ENDED)

    async def _n_threads(self, addresses: Sequence[str] | None = None) -> dict[str, int]:
        """Return the numbers of threads of some workers, or of those that take tasks."""
        scheduler = self._client.scheduler
        try:
            if scheduler is None or self._client.status != "running":
                raise ConnectionError(f"the Client is {self._client.status}")
            if addresses is None:
                asking = scheduler.ncores_running()
            else:
                asking = scheduler.ncores(workers=addresses)
            answer: dict[str, int] = await asyncio.wait_for(asking, self.silence)
        except OSError as error:
            reason = str(error) or f"no answer for {self.silence:g} seconds"
            raise LostSchedulerError(f"lost the scheduler of {self._client}: {reason}") from error
        return answer
