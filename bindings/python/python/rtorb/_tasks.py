"""Tasks of asyncio: those that await calls, and those that servants are."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import logging
import threading
import time
import typing
import weakref

from . import CORBA, _native
from ._exceptions import CompletionStatus

_LOG = logging.getLogger("rtorb")

#: The time by which the calls of this task or thread end, by time.monotonic().
_END: contextvars.ContextVar[typing.Optional[float]] = contextvars.ContextVar("rtorb_end", default=None)


class _News:
    """The tasks of one event loop that await calls, by number."""

    _of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _News] = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        self.native = _native.News()
        self._awaited: dict[int, asyncio.Future[None]] = {}
        self._ids = itertools.count()

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _News:
        news = cls._of_loops.get(loop)
        if news is None:
            news = cls._of_loops[loop] = cls()
            loop.add_reader(news.native.fileno(), news._tell)
        return news

    def new_id(self) -> int:
        return next(self._ids)

    def await_id(self, loop: asyncio.AbstractEventLoop, id: int) -> asyncio.Future[None]:
        future = self._awaited[id] = loop.create_future()
        return future

    def forget(self, id: int) -> None:
        self._awaited.pop(id, None)

    def _tell(self) -> None:
        for id in self.native.take():
            future = self._awaited.get(id)
            if future is not None and not future.done():
                future.set_result(None)


class _Tasks:
    """The coroutines of the servants of an ORB, as tasks of the event loop of `ORB.run_async`."""

    def __init__(self) -> None:
        self._loop: typing.Optional[asyncio.AbstractEventLoop] = None
        # A loop refers to its tasks weakly.
        self._running: set[asyncio.Task[None]] = set()
        # The ORB bounds the replies that are deferred, but a oneway has none.
        self._oneways = threading.BoundedSemaphore(_ONEWAYS_MAX)

    def use(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop not in (None, loop):
            raise RuntimeError("the coroutines of this ORB's servants run on another event loop")
        self._loop = loop

    def begin(self, awaitable: typing.Any, responder: _native.Responder) -> None:
        """Begins the task of a call. A thread of the ORB calls it."""
        if not responder.expects_reply and not self._oneways.acquire(blocking=False):
            self.close(awaitable)
            _LOG.error("the call of %s is discarded: %s calls without a reply are in progress", responder.operation, _ONEWAYS_MAX)
            return
        try:
            if self._loop is None:
                raise RuntimeError("there is no event loop")
            self._loop.call_soon_threadsafe(self._start, self._loop, awaitable, responder)
        except RuntimeError as error:
            self.close(awaitable)
            self._end(responder)
            _LOG.error("the servant's operation %s is a coroutine, which needs `await orb.run_async()`: %s", responder.operation, error)
            raise CORBA.BAD_INV_ORDER(0, CompletionStatus.NO) from None

    def cancel(self) -> None:
        """Cancels the tasks. Their clients get NO_RESPONSE."""
        for task in list(self._running):
            task.cancel()

    def close(self, awaitable: typing.Any) -> None:
        """Ends a coroutine that has not begun."""
        if inspect.iscoroutine(awaitable):
            awaitable.close()

    def _start(self, loop: asyncio.AbstractEventLoop, awaitable: typing.Any, responder: _native.Responder) -> None:
        task = loop.create_task(_ServantTask(loop, responder).carry_out(awaitable))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._end(responder))

    def _end(self, responder: _native.Responder) -> None:
        if not responder.expects_reply:
            self._oneways.release()


class _ServantTask:
    """The task that carries out one call. It is cancelled once nobody waits for the reply."""

    def __init__(self, loop: asyncio.AbstractEventLoop, responder: _native.Responder) -> None:
        self._loop = loop
        self._responder = responder
        self._news = _News.of(loop)
        self._id = self._news.new_id()
        self._task: typing.Optional[asyncio.Task[typing.Any]] = None
        self._is_over = False

    async def carry_out(self, awaitable: typing.Any) -> None:
        self._task = asyncio.current_task()
        left = self._responder.remaining()
        if left is not None:
            # Calls of the servant end by then too.
            _END.set(time.monotonic() + left)
        if self._responder.expects_reply:
            self._watch()
        try:
            result = await awaitable
        except asyncio.CancelledError:
            if not self._is_over and self._responder.expects_reply:
                _LOG.warning("the servant's operation %s was cancelled: its client gets NO_RESPONSE", self._responder.operation)
            self._responder.abandon()
            raise
        except BaseException as error:
            self._responder.raise_(error)
            if not isinstance(error, Exception):
                raise
        else:
            self._responder.reply(result)
        finally:
            self._news.forget(self._id)

    def _watch(self, _: object = None) -> None:
        """Cancels the task if nobody waits for the reply, and looks again when that may be so."""
        assert self._task is not None
        if self._task.done():
            return
        self._news.await_id(self._loop, self._id).add_done_callback(self._watch)
        if self._responder.watch(self._news.native, self._id):
            self._is_over = True
            self._task.cancel()


#: The most coroutines of oneways at a time.
_ONEWAYS_MAX = 1024
