"""The workers of a training, each with an object (an actor) whose methods the client calls.

:class:`WorkerGroup` is the client's side. On each worker a thread of its own,
:class:`WorkerThread`, has the actor and does one call after another; the worker's event loop
answers the client meanwhile.
"""

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

_GRACE = 5.0  # seconds that the others have to report their errors after one member has failed
_GRACE_OF_LOSS = 0.2  # the same when a worker is lost: the others fail because of that
_GRACE_OF_NEWS = 2.0  # seconds until the scheduler knows, too, that a worker has closed
_LOOK = 1.0  # seconds between checks that all workers are alive
_PAUSE = 0.2  # the same where there are none, or some are closed
_LARGE = 1 << 20  # bytes from which on an array is sent to its worker outside of the task

_CONSEQUENCES = (LostPeerError, StoppedError)  # errors that follow from what happened elsewhere
_LOST = ("lost", "closed")  # kinds of replies
_ENDED = "closed or killed, for its use of memory perhaps"


class LostWorkersError(ConnectionError):
    """Some workers of a training are gone or do not answer.

    `addresses` is empty if the connection between two workers broke.
    """

    def __init__(self, addresses: Collection[str], reason: object):
        self.addresses = tuple(addresses)
        self.reason = str(reason)
        super().__init__(self.addresses, self.reason)

    def __str__(self) -> str:
        return f"lost {', '.join(self.addresses) or 'a connection'}: {self.reason}"


class LostSchedulerError(ConnectionError):
    """The scheduler of the cluster is gone or does not answer."""


def no_workers(client: Client, seconds: float) -> RuntimeError:
    """Return the error for a cluster that has had no workers for so long."""
    return RuntimeError(
        f"{client!r} has had no workers for {seconds:g} seconds: start some, or see their logs for "
        "why they have ended"
    )


class Reply(NamedTuple):
    """The answer of a worker to a call, or the reason why there is none."""

    # absent: the worker has no actor of this training. lost: the worker does not answer. closed:
    # the connection to it is closed, too.
    kind: Literal["done", "error", "busy", "absent", "lost", "closed"]
    value: Any  # the result; the error; the status of the worker; the reason of a loss


class _Member(NamedTuple):
    """A worker of the group."""

    rank: int
    address: str
    futures: list[Future]  # of its tasks: the thread, and the data of the actor while it is sent


class WorkerGroup:
    """The workers of a training as its client has them: start actors there and call their methods.

    The actors know one another as peers. Their threads share processors and memory with the tasks
    of their workers, and two groups on the same workers do not wait for one another.
    """

    # Seconds without an answer after which a worker, or the scheduler, counts as lost: it is
    # suspended, say, or runs something that holds the interpreter's lock.
    silence = 30.0
    # Seconds for which there may be no workers: killed ones may be started again.
    absence = 50.0

    def __init__(self, client: Client):
        self._client = client
        self._training = ""  # a name that no other training has; empty: there are no actors
        self._members: list[_Member] = []
        self._n_calls = 0  # of this training; also the number of the next call

    def workers(self) -> dict[str, int]:
        """Return the addresses of workers that take tasks, and their numbers of threads.

        It waits for the first one; RuntimeError if none comes in time, LostSchedulerError.
        """
        until = monotonic() + self.absence
        while not (found := self._client.sync(self._n_threads)):
            if monotonic() >= until:
                raise no_workers(self._client, self.absence)
            sleep(_PAUSE)
        return found

    def start(self, make: Callable[..., Any], arguments: Mapping[str, Sequence[Any]]) -> None:
        """Make the actors: ``make(peers, *arguments)`` on each worker, where it can be imported.

        `arguments` has them by the address of the worker, in the order of the ranks; in place of
        Futures ``make`` gets their results. It raises as :meth:`call` does.
        """
        self.stop()
        self._training, self._n_calls = uuid4().hex, 0
        self._members = [_Member(rank, address, []) for rank, address in enumerate(arguments)]
        self._run(self._start, make, list(arguments.values()))

    def call(self, method: str, *arguments: object) -> list[Any]:
        """Call a method of all actors and return the results by rank.

        Whatever is raised, Ctrl-C too, ends all actors: LostWorkersError, LostSchedulerError, or
        the error of the method with a note that has the traceback from its worker.
        """
        return self._run(self._ask, WorkerThread.call, (method, *arguments))

    def traffic(self) -> list[dict[str, tuple[int, int]]]:
        """Return, by rank, how many messages and bytes were sent to others in each phase.

        It is the last call: the tasks of the actors end at once, before the workers may be closed.
        """
        return self._run(self._ask, WorkerThread.traffic)

    def stop(self) -> None:
        """End the actors and free their memory soon; do not wait for that.

        It may be called at any time, and does not need the scheduler.
        """
        members, self._members, self._training = self._members, [], ""
        for member in members:
            while member.futures:
                member.futures.pop().release()

    def _run(self, function: Callable[..., Any], *arguments: object) -> Any:
        if not self._training:
            raise StoppedError("there are no actors: start them first")
        try:
            return self._client.sync(function, *arguments)
        except BaseException:
            self.stop()
            raise

    async def _start(self, make: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> None:
        members, addresses = self._members, [member.address for member in self._members]
        for member in members:
            self._submit(member, "thread", run_thread, member.rank, addresses)
        await self._ask()
        await self._ask(WorkerThread.connect)
        number, self._n_calls = self._n_calls, self._n_calls + 1
        await self._gather(
            self._build(member, number, make, of_member)
            for member, of_member in zip(members, arguments, strict=True)
        )
        for member in members:
            del member.futures[1:]  # the data that was sent is freed

    def _submit(
        self, member: _Member, name: str, function: Callable[..., Any], *arguments: Any
    ) -> None:
        """Submit a task to a worker."""
        future = self._client.submit(
            function,
            self._training,
            *arguments,
            key=f"sklboost-{name}-{member.rank}-{self._training}",
            workers=[member.address],
            allow_other_workers=False,
        )
        member.futures.append(future)

    async def _build(
        self, member: _Member, number: int, make: Callable[..., Any], arguments: Sequence[Any]
    ) -> Reply:
        """Have an actor made, of what a task brings to its worker; return the reply."""
        try:
            sent = [await self._sent(member.address, argument) for argument in arguments]
        except (OSError, KeyError) as error:  # KeyError: the worker is lost already
            return Reply("closed", f"{member.address} took no data: {error}")
        self._submit(member, "delivery", deliver, number, make, *sent)
        return await self._reply(member, (self._training, number))

    async def _sent(self, address: str, argument: Any) -> Any:
        """Send large arrays to a worker outside of the task; return a Future in place of each."""
        if type(argument) is tuple:
            return tuple([await self._sent(address, part) for part in argument])
        if isinstance(argument, np.ndarray) and argument.nbytes >= _LARGE:
            (argument,) = await self._client.scatter(
                [argument], workers=[address], hash=False, asynchronous=True
            )
        return argument

    async def _ask(self, *function_and_arguments: Any) -> list[Any]:
        """Have each thread call ``function(thread, *arguments)``; return the results by rank.

        The first call of a training has no function: a thread replies to it when it has begun.
        """
        question = (self._training, self._n_calls, *function_and_arguments)
        self._n_calls += 1
        return await self._gather(self._reply(member, question) for member in self._members)

    async def _gather(self, replying: Iterable[Coroutine[Any, Any, Reply]]) -> list[Any]:
        """Return the results of all members by rank, or raise the reason why there are none."""
        training, members = self._training, self._members
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
        await self._check_workers([members[rank].address for rank in closed])
        lost = [rank for rank, reply in enumerate(replies) if reply.kind in _LOST]
        ended = lost or [rank for rank, reply in enumerate(replies) if reply.kind == "error"]
        raise LostWorkersError([members[rank].address for rank in lost], replies[ended[0]].value)

    async def _wait(self, tasks: Sequence["asyncio.Task[Reply]"]) -> None:
        """Wait for all replies; after a failure only for a while, in which others may say why."""
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

    async def _reply(self, member: _Member, question: tuple[Any, ...]) -> Reply:
        """Return the final reply of a member to a call; the question is what :func:`poll` takes."""
        address, number = member.address, question[1]
        patience = monotonic() + self.silence
        while True:
            reply = await self._answer(address, question)
            if reply.kind in ("done", "error", *_LOST):
                return reply
            futures = list(member.futures)
            if not futures or (reply.kind == "absent" and number > 0):
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
        """Return the present state of a call, as its worker reports it."""
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

        The scheduler may not have noticed yet that workers with a closed connection are gone, and
        the next start would place actors there: it gets a few seconds to forget these.
        """
        addresses = [member.address for member in self._members]
        until = monotonic() + _GRACE_OF_NEWS
        known = await self._n_threads(addresses)
        while any(address in known for address in closed) and monotonic() < until:
            await asyncio.sleep(_PAUSE)
            known = await self._n_threads(addresses)
        gone = [address for address in addresses if address not in known]
        if gone:
            raise LostWorkersError(dict.fromkeys([*gone, *closed]), _ENDED)

    async def _n_threads(self, addresses: Sequence[str] | None = None) -> dict[str, int]:
        """Return the numbers of threads of some workers; None: of all that take tasks."""
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


# --- on a worker ----------------------------------------------------------------------------------

_THREADS = "sklboost-threads"  # the extension of a worker: its threads, by training
_GLANCE = 0.2  # seconds between checks that the task was not released
_POLL = 1.0  # seconds after which a worker answers that its actor is busy
_MOMENT = 0.02  # seconds after which it answers that it has no actor of the training
_OPEN = (Status.init, Status.running, Status.paused, Status.closing_gracefully)
_WANTED = ("executing", "long-running", "memory", "error")  # states of a task that was not released
_STOPPED = Reply("error", StoppedError("the training was stopped"))


def run_thread(training: str, rank: int, addresses: Sequence[str]) -> None:
    """Run the thread of an actor: a task, which gives its place among the worker's tasks away."""
    worker = get_worker()
    key = worker.get_current_task()
    secede()

    async def open_thread() -> WorkerThread:
        worker.handlers[STREAM] = _connection_handler(worker)
        threads = worker.extensions.setdefault(_THREADS, {})
        threads[training] = thread = WorkerThread(worker, key, training, rank, addresses)
        return thread

    asyncio.run_coroutine_threadsafe(open_thread(), worker.loop.asyncio_loop).result().run()


def deliver(training: str, number: int, make: Callable[..., Any], *arguments: object) -> None:
    """Have an actor made of the results of other tasks, which Dask brings: a task."""
    thread = _thread_of(get_worker(), training)
    if thread is not None:
        thread.ask(number, WorkerThread.build, (make, *arguments))


async def poll(
    training: str,
    number: int,
    function: Callable[..., Any] | None = None,
    arguments: Sequence[Any] = (),
    dask_worker: Worker | None = None,
) -> Reply:
    """Begin a call if there is a function, and return the reply to the call of this number."""
    assert dask_worker is not None  # Client.run gives it
    thread = _thread_of(dask_worker, training)
    if thread is None:
        await asyncio.sleep(_MOMENT)
        return Reply("absent", dask_worker.status.name)
    if function is not None:
        thread.ask(number, function, arguments)
    return await thread.reply(number)


def _thread_of(worker: Worker, training: str) -> "WorkerThread | None":
    thread: WorkerThread | None = worker.extensions.get(_THREADS, {}).get(training)
    return thread


def _connection_handler(worker: Worker) -> Callable[..., Any]:
    """Return the handler of the connections that peers of any training offer a worker."""

    async def take(comm: Comm, training: str, rank: int) -> Status:
        thread = _thread_of(worker, training)
        if thread is not None and not thread.ended.is_set():
            thread.comms[rank] = comm
            await thread.ended.wait()
        comm.abort()
        return Status.dont_reply

    return take


class WorkerThread:
    """The thread of an actor on a worker: it does what the client asks for, call by call.

    Made, and watched, on the event loop of the worker; `key` is the task that the thread runs in,
    `addresses` has the worker of each rank.
    """

    def __init__(
        self, worker: Worker, key: str, training: str, rank: int, addresses: Sequence[str]
    ):
        self.place = (worker, training, rank, addresses)
        self.comms: dict[int, Comm] = {}  # to other ranks
        self.ended = asyncio.Event()
        self.actor: Any = None
        self.peers: Peers | None = None
        self.stopped = False
        self._key = key
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[tuple[int, Callable[..., Any], Sequence[Any]]] = SimpleQueue()
        self._replies: dict[int, asyncio.Future[Reply]] = {}
        self._watching = asyncio.ensure_future(self._watch())

    def run(self) -> None:
        """Do what is asked for, in this thread, until a call fails or the thread is stopped."""
        self._tell(self._settle, 0, Reply("done", None))
        while not self.stopped:
            number, function, arguments = self._calls.get()
            try:
                reply = Reply("done", function(self, *arguments))
            except BaseException as error:
                self.stop()
                reply = Reply("error", _portable(error, self.place[0].address))
            self._tell(self._settle, number, reply)
            del arguments, reply
        self.actor = None
        self._tell(self._end)

    def ask(self, number: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        """Put the call ``function(self, *arguments)`` behind the calls before."""
        self._calls.put((number, function, arguments))

    async def reply(self, number: int) -> Reply:
        """Return the reply to a call; "busy" if there is none for some time."""
        future = self._replies.setdefault(number, self._loop.create_future())
        if self.ended.is_set():
            self._settle(number, _STOPPED)
        await asyncio.wait([future], timeout=_POLL)
        if not future.done():
            return Reply("busy", self.place[0].status.name)
        return self._replies.pop(number).result()

    def stop(self) -> None:
        """End the thread, at the latest when it next waits for peers; called in any thread."""
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
        """Stop the thread when its task was released, or the worker closes."""
        worker, training = self.place[:2]
        while worker.status in _OPEN:
            task = worker.state.tasks.get(self._key)
            if task is None or task.state not in _WANTED:
                break
            await asyncio.sleep(_GLANCE)
        self.stop()
        await self.ended.wait()
        del worker.extensions[_THREADS][training]

    # What the client asks for.

    def connect(self) -> None:
        """Connect the actor's thread to its peers."""
        opening = asyncio.run_coroutine_threadsafe(
            open_peers(*self.place, self.comms), self.place[0].loop.asyncio_loop
        )
        while not opening.done():
            if self.stopped:
                opening.cancel()
                raise StoppedError("the training was stopped")
            with suppress(TimeoutError):
                opening.exception(_GLANCE)
        self.peers = opening.result()
        if self.stopped:
            self.peers.stop()

    def build(self, make: Callable[..., Any], *arguments: object) -> None:
        """Make the actor."""
        self.actor = make(self.peers, *arguments)

    def call(self, method: str, *arguments: object) -> object:
        """Call a method of the actor."""
        return getattr(self.actor, method)(*arguments)

    def traffic(self) -> dict[str, tuple[int, int]]:
        """Return the messages and bytes sent to other ranks, by phase, and end the thread."""
        peers, self.stopped = self.peers, True
        assert peers is not None
        return {phase: (peers.n_messages[phase], n) for phase, n in peers.n_bytes.items()}


def _portable(error: BaseException, address: str) -> BaseException:
    """Return an error without its frames, which hold data, and with their text as a note."""
    text = "".join(traceback.format_exception(error))
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does when it is pickled
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    copy.add_note(f"\nOn the worker {address}:\n{text}")
    return copy
