"""Objects: their proxies, their servants, and the ORB between them."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import functools
import inspect
import logging
import os
import threading
import time
import typing
import weakref

from . import CORBA, _native
from ._exceptions import CompletionStatus, InterfaceNotFound
from ._library import Idl, Scope, _make_class, _names, _own_name, _Path, _python_name, _unknown, load
from ._tasks import _END, _News, _Tasks

_LOG = logging.getLogger("rtorb")
_T = typing.TypeVar("_T", bound="Object")
_Interface = typing.Union[str, type, None]


class timeout:
    """`with rtorb.timeout(0.02):` all calls inside end within that time together, in seconds. Servers learn it.

    A call after it raises `rtorb.CORBA.TIMEOUT`, which is a TimeoutError. `connect`, `resolve`, `narrow` and `exists` hold the time too.
    For a timeout of each call, see `with_timeout`.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._tokens: list[contextvars.Token[typing.Optional[float]]] = []

    def __enter__(self) -> timeout:
        end = time.monotonic() + self._seconds
        outer = _END.get()
        self._tokens.append(_END.set(end if outer is None else min(end, outer)))
        return self

    def __exit__(self, *_: object) -> None:
        _END.reset(self._tokens.pop())


def _left() -> typing.Optional[float]:
    return _left_until(_END.get())


def _left_until(end: typing.Optional[float]) -> typing.Optional[float]:
    return None if end is None else end - time.monotonic()


class Object:
    """A reference to an object of any interface. Classes of interfaces add operations as methods, and attributes as properties."""

    __slots__ = ("_rtorb_ref", "_rtorb_open")

    def __init__(self, reference: _native.Reference) -> None:
        if not isinstance(reference, _native.Reference):
            raise TypeError(f"a proxy is made by rtorb.connect({reference!r}, interface={type(self).__name__})")
        self._rtorb_ref = reference
        self._rtorb_open = False

    @property
    def ior(self) -> str:
        """The reference as text: `IOR:` and hexadecimal digits."""
        return self._rtorb_ref.ior

    def with_timeout(self: _T, seconds: typing.Optional[float]) -> _T:
        """The same object with a timeout of each call, in seconds; None for no timeout."""
        return type(self)(self._rtorb_ref.with_timeout(seconds))

    def narrow(self, interface: type[_T]) -> _T:
        """The same object as one of another interface. Asks the object.

        Raises TypeError if the object does not have it.
        """
        if not self._rtorb_ref.is_a(interface._rtorb_id, _left()):  # type: ignore[attr-defined]
            raise TypeError(f"the object is no {interface.__qualname__}")
        return interface(self._rtorb_ref)

    def exists(self) -> bool:
        """Asks the server whether the object exists."""
        return not self._rtorb_ref.non_existent(_left())

    @property
    def async_(self) -> typing.Any:
        """The same operations as coroutines: `await motor.async_.turn(90)`."""
        return _Async(self)

    if not typing.TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_unknown(_idl_name(self), "operation or attribute", name, dir(type(self))))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Object):
            return NotImplemented
        return self._rtorb_ref.ior == other._rtorb_ref.ior

    def __hash__(self) -> int:
        return hash(self._rtorb_ref.ior)

    def __str__(self) -> str:
        return self._rtorb_ref.ior

    def __repr__(self) -> str:
        return f"<{_idl_name(self)} {self._rtorb_ref.ior[:24]}...>"


def _idl_name(proxy: Object) -> str:
    return type(proxy).__qualname__.replace(".", "::")


class Skeleton:
    """The base of servants: `class Motor(idl.Robot.Motor_skel)`. A method that is missing answers NO_IMPLEMENT."""

    _rtorb_interface: typing.ClassVar[typing.Optional[_native.Interface]] = None


class ORB:
    """An ORB, with its options as on a command line: `rtorb.ORB(["-ORBListenEndpoints", "iiop://:4000"])`.

    `arguments` are those that are no options.
    """

    def __init__(self, arguments: typing.Iterable[str] = ()) -> None:
        self._native = _native.Orb(list(arguments))
        self._thread: typing.Optional[threading.Thread] = None
        self._error: typing.Optional[BaseException] = None
        self._ready = threading.Event()
        self._ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        # Nothing that awaits it cancels it.
        self._ended.set_running_or_notify_cancel()
        self._tasks = _Tasks()
        _ORBS.add(self)

    @property
    def arguments(self) -> list[str]:
        """The arguments that are no options of the ORB."""
        return self._native.remaining

    @property
    def endpoints(self) -> list[str]:
        """Where this ORB listens."""
        return self._native.endpoints

    @typing.overload
    def connect(
        self, reference: _Path, idl: None = None, interface: type[_T] = ..., *, timeout: typing.Optional[float] = None
    ) -> _T: ...

    @typing.overload
    def connect(
        self,
        reference: _Path,
        idl: typing.Union[_Path, Idl, None] = None,
        interface: typing.Optional[str] = None,
        *,
        include: typing.Iterable[_Path] = (),
        timeout: typing.Optional[float] = None,
    ) -> typing.Any: ...

    def connect(
        self,
        reference: _Path,
        idl: typing.Union[_Path, Idl, None] = None,
        interface: _Interface = None,
        *,
        include: typing.Iterable[_Path] = (),
        timeout: typing.Optional[float] = None,
    ) -> typing.Any:
        """The object of a reference: an IOR, a corbaloc, a corbaname, or a file that contains one.

        `idl` is the file with its interface, or what `rtorb.load` returned. Without it, the object and its interface repository are
        asked. `interface` is a class, or a name in the IDL; without it, the reference or the object says it. `timeout` is that of
        each call, in seconds.
        """
        native = self._native.string_to_object(_reference_text(reference), _left())
        if timeout is not None:
            native = native.with_timeout(timeout)
        return self._proxy(native, idl, interface, include)

    def resolve(self, name: str, interface: _Interface = None) -> typing.Any:
        """An initial reference, such as `NameService`."""
        return self._proxy(self._native.resolve(name, _left()), None, interface, ())

    def _proxy(
        self,
        native: _native.Reference,
        idl: typing.Union[_Path, Idl, None],
        interface: _Interface,
        include: typing.Iterable[_Path],
    ) -> typing.Any:
        if isinstance(interface, type):
            return interface(native)
        found = _idl(idl, include)
        if interface is not None:
            return _class_named(found, interface)(native)
        made = found._rtorb_class(native.type_id) if native.type_id else None
        if made is None:
            made = self._asked(native, idl, include, found)
        return made(native)

    def _asked(
        self,
        native: _native.Reference,
        idl: typing.Union[_Path, Idl, None],
        include: typing.Iterable[_Path],
        found: Idl,
    ) -> typing.Any:
        """The class of an interface that the reference does not state."""
        files = [] if idl is None or isinstance(idl, Idl) else [os.fspath(idl)]
        folders = [os.fspath(folder) for folder in include]
        library, id = self._native.search(native, files, folders, _make_class, _left())
        own = found._rtorb_class(id)
        if own is not None:
            return own
        if len(_ASKED) >= _ASKED_MAX:
            _ASKED.pop(next(iter(_ASKED)))
        return _ASKED.setdefault((*files, *folders, id), library.class_of(library.parse(id)))

    def serve(
        self,
        servant: object,
        interface: _Interface = None,
        *,
        name: typing.Optional[str] = None,
        idl: typing.Union[_Path, Idl, None] = None,
    ) -> typing.Any:
        """Serves a Python object, whose methods carry out the operations, and returns its proxy.

        Requests wait for `run`, `start` or `run_async`. Methods that are `async def` need `run_async`.

        `interface` is a class, or a name in `idl`; a servant of a `_skel` class needs none. With `name="Motor"`, clients reach the
        object by `corbaloc::HOST:PORT/Motor` too.
        """
        if interface is None:
            known = getattr(servant, "_rtorb_interface", None)
            if known is None:
                raise TypeError("the servant's interface is not known: serve(servant, idl.Robot.Motor)")
        else:
            made = interface if isinstance(interface, type) else _class_named(_idl(idl, ()), interface)
            known = getattr(made, "_rtorb_interface", None)
            if known is None:
                raise TypeError(f"{interface!r} is no interface of IDL")
        native = self._native.serve(servant, self._tasks, known, name)
        library = known.library
        return library.class_of(library.parse(known.id))(native)

    def withdraw(self, reference: Object) -> None:
        """Ends the serving of an object that `serve` returned. Calls of it then raise OBJECT_NOT_EXIST."""
        self._native.withdraw(reference._rtorb_ref)

    def start(self) -> None:
        """Serves on a thread of its own, and returns when clients find a server.

        An ORB starts once. If that failed, each further `start` or `run` raises the same exception.
        """
        self._begin()
        self._ready.wait()
        self._raise()

    def run(self) -> None:
        """Serves until `shutdown`, or until Ctrl-C, which raises KeyboardInterrupt."""
        self.start()
        thread = self._thread
        assert thread is not None
        try:
            thread.join()
        except BaseException:
            self.shutdown()
            thread.join(10)
            raise
        self._raise()

    async def run_async(self) -> None:
        """Serves until `shutdown`, beside the event loop, which runs the methods of servants that are `async def`.

        Cancelling the task that awaits it ends the ORB.
        """
        self._tasks.use(asyncio.get_running_loop())
        self._begin()
        try:
            await asyncio.wrap_future(self._ended)
        except BaseException:
            self.shutdown()
            self._tasks.cancel()
            await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=10)
            raise
        self._raise()

    def _begin(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="rtorb", daemon=True)
            thread.start()
            self._thread = thread

    def _serve(self) -> None:
        try:
            self._native.run(self._ready.set)
        except BaseException as error:  # Raised again by `start` or `run`.
            self._error = error
        finally:
            self._ready.set()
            self._ended.set_result(None)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def shutdown(self) -> None:
        """Ends the ORB. It does not wait, so that a servant may call it."""
        self._native.shutdown()

    def __enter__(self) -> ORB:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(10)
        elif self._thread is None:
            self._native.destroy()


def default_orb() -> ORB:
    """The ORB of `rtorb.connect`, which is made at its first use."""
    global _DEFAULT
    with _DEFAULT_LOCK:
        if _DEFAULT is None:
            _DEFAULT = ORB()
        return _DEFAULT


@typing.overload
def connect(
    reference: _Path, idl: None = None, interface: type[_T] = ..., *, timeout: typing.Optional[float] = None
) -> _T: ...


@typing.overload
def connect(
    reference: _Path,
    idl: typing.Union[_Path, Idl, None] = None,
    interface: typing.Optional[str] = None,
    *,
    include: typing.Iterable[_Path] = (),
    timeout: typing.Optional[float] = None,
) -> typing.Any: ...


def connect(*arguments: typing.Any, **options: typing.Any) -> typing.Any:
    """The object of a reference, through the default ORB: see `ORB.connect`."""
    return default_orb().connect(*arguments, **options)


def resolve(name: str, interface: _Interface = None) -> typing.Any:
    """An initial reference of the default ORB."""
    return default_orb().resolve(name, interface)


def _idl(idl: typing.Union[_Path, Idl, None], include: typing.Iterable[_Path]) -> Idl:
    if isinstance(idl, Idl):
        return idl
    return load(*(() if idl is None else (idl,)), include=include)


def _class_named(idl: Idl, name: str) -> typing.Any:
    made = idl._rtorb_class(name)
    if made is None:
        names = idl._rtorb_library.interface_names()
        raise InterfaceNotFound(_unknown("the IDL", "interface", name, names))
    return made


def _reference_text(reference: _Path) -> str:
    """The text of a reference: the argument itself, or the content of the file that it names."""
    text = os.fspath(reference)
    if text.partition(":")[0].lower() in _SCHEMES:
        return text
    try:
        with open(text, encoding="utf-8", errors="replace") as file:
            content = file.read(_REFERENCE_MAX).strip()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{text[:200]!r} is no IOR:, corbaloc: or corbaname:, and cannot be read as a file that holds one ({error})"
        ) from None
    if content.partition(":")[0].lower() not in _SCHEMES:
        raise ValueError(f"the file {text!r} holds no reference: it begins with {content[:60]!r}")
    return content


def interface_class(library: _native.Library, code: _native.TypeCode) -> type:
    """The class of the proxies of an interface."""
    names = {**_names(code), "__slots__": ()}
    interface = library.interface(code.id)
    if code.id == _OBJECT:
        return Object
    if interface is None:
        return type(_own_name(code), (Object,), names)
    # An interface from an interface repository has all operations itself, and its bases may be unknown.
    known = [id for id in interface.ancestors if id != code.id and library.interface(id) is not None]
    bases = [library.class_of(library.parse(id)) for id in known]
    bases = [it for it in bases if isinstance(it, type) and not any(it is not other and issubclass(other, it) for other in bases)]
    own = _own_name(code)
    calls = _Calls(interface)
    skeletons = tuple(it._rtorb_skel for it in bases if hasattr(it, "_rtorb_skel"))
    body = {**names, "_rtorb_interface": interface, **calls.methods(_waiting)}
    body.update(calls.properties())
    tasks = type(f"{own}_async", (_Async,), {"__slots__": (), "__module__": "rtorb.idl", **calls.methods(_awaiting, with_setters=True)})
    for name, operation, _ in interface.attributes():
        setattr(tasks, _python_name(name), property(functools.partial(_awaited, operation)))
    body["_rtorb_async"] = tasks
    body["async_"] = property(tasks, doc=Object.async_.__doc__)
    skeleton = {"__module__": "rtorb.idl", "_rtorb_interface": interface, **calls.methods(_missing)}
    body["_rtorb_skel"] = _type(f"{own}_skel", skeletons, Skeleton, skeleton)
    return _type(own, tuple(bases), Object, body)


def _type(name: str, bases: tuple[type, ...], root: type, body: dict[str, typing.Any]) -> type:
    try:
        return type(name, bases or (root,), body)
    except TypeError:
        # Python has no order for these bases. The class has all their operations itself.
        return type(name, (root,), body)


class _Inputs:
    """The parameters of an operation that a call gives."""

    __slots__ = ("_operation", "_signature", "count")

    def __init__(self, operation: str, parameters: list[inspect.Parameter]) -> None:
        self._operation = operation
        self._signature = inspect.Signature(parameters)
        self.count = len(parameters)

    def ordered(self, given: tuple[typing.Any, ...], named: dict[str, typing.Any]) -> tuple[typing.Any, ...]:
        """The arguments of a call in the order of the parameters."""
        try:
            return self._signature.bind(*given, **named).args
        except TypeError as error:
            raise TypeError(f"{self._operation}(): {error}") from None


_Maker = typing.Callable[[_native.Operation, _Inputs], typing.Any]


def _waiting(operation: _native.Operation, inputs: _Inputs) -> typing.Any:
    """The method of a proxy that calls the operation, and waits for its results."""
    count = inputs.count

    def method(_self: Object, /, *given: typing.Any, **named: typing.Any) -> typing.Any:
        if named or len(given) != count:
            given = inputs.ordered(given, named)
        return _self._rtorb_ref.call(operation, given, _left())

    return method


def _awaiting(operation: _native.Operation, inputs: _Inputs) -> typing.Any:
    """The coroutine of the operation."""

    async def method(_self: _Async, /, *given: typing.Any, **named: typing.Any) -> typing.Any:
        return await _await(_self._rtorb_proxy, operation, inputs.ordered(given, named))

    return method


def _missing(operation: _native.Operation, inputs: _Inputs) -> typing.Any:
    """The method of a servant that does not have the operation."""

    def method(_self: Skeleton, /, *given: typing.Any, **named: typing.Any) -> typing.Any:
        from .CORBA import NO_IMPLEMENT

        raise NO_IMPLEMENT(0, 1)

    return method


class _Calls:
    """Makes the methods of an interface, with the parameters that its operations have."""

    def __init__(self, interface: _native.Interface) -> None:
        self._operations = list(interface.operations())
        self._attributes = interface.attributes()

    def methods(self, make: _Maker, with_setters: bool = False) -> dict[str, typing.Any]:
        methods: dict[str, typing.Any] = {}
        setters = [setter for _, _, setter in self._attributes if setter is not None]
        for operation in self._operations + (setters if with_setters else []):
            own = _python_name(operation.name)
            names = [_python_name(name) for name in operation.inputs()]
            parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
            method = make(operation, _Inputs(own, parameters))
            itself = "self"
            while itself in names:
                itself += "_"
            first = inspect.Parameter(itself, inspect.Parameter.POSITIONAL_ONLY)
            method.__signature__ = inspect.Signature([first, *parameters])
            method.__name__ = method.__qualname__ = own
            method.__doc__ = operation.signature()
            methods[own] = method
        return methods

    def properties(self) -> dict[str, property]:
        made = {}
        for name, getter, setter in self._attributes:
            made[_python_name(name)] = property(
                functools.partial(_get, getter),
                None if setter is None else functools.partial(_set, setter),
                doc=getter.signature(),
            )
        return made


def _get(operation: _native.Operation, proxy: Object) -> typing.Any:
    return proxy._rtorb_ref.call(operation, (), _left())


def _set(operation: _native.Operation, proxy: Object, value: typing.Any) -> None:
    proxy._rtorb_ref.call(operation, (value,), _left())


class _Async:
    """The operations of an object as coroutines."""

    __slots__ = ("_rtorb_proxy",)

    def __init__(self, proxy: Object) -> None:
        self._rtorb_proxy = proxy

    if not typing.TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_unknown(_idl_name(self._rtorb_proxy), "operation or attribute", name, dir(type(self))))


def _awaited(operation: _native.Operation, tasks: _Async) -> typing.Awaitable[typing.Any]:
    return _await(tasks._rtorb_proxy, operation, ())


async def _await(proxy: Object, operation: _native.Operation, arguments: tuple[typing.Any, ...]) -> typing.Any:
    """Starts a call, and awaits its results. Cancelling it gives the call up."""
    loop = asyncio.get_running_loop()
    reference = proxy._rtorb_ref
    if not proxy._rtorb_open:
        # The start of a call waits for a connection if none is open: the loop must not.
        await _connected(loop, reference, _END.get())
        proxy._rtorb_open = True
    try:
        return await _started(loop, reference.start(operation, arguments, _left()))
    except (CORBA.COMM_FAILURE, CORBA.TRANSIENT, CORBA.TIMEOUT):
        # The connection may be gone: the next call opens it beside the loop.
        proxy._rtorb_open = False
        raise


async def _connected(loop: asyncio.AbstractEventLoop, reference: _native.Reference, end: typing.Optional[float]) -> None:
    """Opens the connection beside the loop, until `end`: all threads of the loop's executor may be busy."""
    opening = loop.run_in_executor(None, lambda: reference.connect(_left_until(end)))
    try:
        done, _ = await asyncio.wait([opening], timeout=_left_until(end))
    finally:
        opening.cancel()
    if not done:
        raise CORBA.TIMEOUT(0, CompletionStatus.NO, "TIMEOUT (minor 0x0, COMPLETED_NO): the connection was not open in time")
    opening.result()


async def _started(loop: asyncio.AbstractEventLoop, started: _native.Started) -> typing.Any:
    """Awaits the results of a started call."""
    news = _News.of(loop)
    id = news.new_id()
    try:
        while True:
            woken = news.await_id(loop, id)
            results = started.poll(news.native, id)
            if results is not None:
                return results[0]
            await woken
    finally:
        news.forget(id)
        started.cancel()


def _log_servant_error(operation: str, error: BaseException) -> None:
    _LOG.error("the servant's operation %s raised what its interface does not declare", operation, exc_info=error)


def _end() -> None:
    """Ends all ORBs before the interpreter does, so that no thread of theirs needs it."""
    for orb in list(_ORBS):
        orb.shutdown()
        if orb._thread is not None and orb._thread is not threading.current_thread():
            orb._thread.join(2)


atexit.register(_end)

_OBJECT = "IDL:omg.org/CORBA/Object:1.0"
_SCHEMES = ("ior", "corbaloc", "corbaname", "file")
#: A reference of ten thousand profiles fits.
_REFERENCE_MAX = 1 << 20
_ORBS: weakref.WeakSet[ORB] = weakref.WeakSet()
#: The classes of interfaces that are in no IDL file of their users.
_ASKED: dict[tuple[str, ...], typing.Any] = {}
_ASKED_MAX = 64
_DEFAULT: typing.Optional[ORB] = None
_DEFAULT_LOCK = threading.Lock()
