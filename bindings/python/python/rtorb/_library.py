"""The classes of IDL files, made when a program reads them."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import os
import re
import threading
import typing

from . import _native
from ._exceptions import ConversionError, UserException
from ._values import Union

_Path = typing.Union[str, "os.PathLike[str]"]
_Class = typing.TypeVar("_Class")


class Scope:
    """A module of IDL, or all declarations of the files: its declarations are attributes."""

    def __init__(self, name: str) -> None:
        self.__dict__["_rtorb_name"] = name

    if typing.TYPE_CHECKING:
        # The declarations are known when the program runs. `rtorb idl build --python` makes stubs that know them.
        def __getattr__(self, name: str) -> typing.Any: ...

    else:

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(_unknown(self._rtorb_name, "declaration", name, self.__dict__))

    def __repr__(self) -> str:
        return f"<IDL {self._rtorb_name}>"


class Idl(Scope):
    """The declarations of IDL files."""

    def __init__(self, library: _native.Library, name: str) -> None:
        super().__init__(name)
        self.__dict__["_rtorb_library"] = library
        _fill(self, library)

    def _rtorb_class(self, id: str) -> typing.Any:
        """The class of the interface with that name or repository id; None if it is unknown."""
        return _interface_class(self._rtorb_library, id)


def load(*files: _Path, include: typing.Iterable[_Path] = ()) -> Idl:
    """Reads IDL files as one specification. `include` are folders for included files."""
    paths = tuple(os.path.abspath(os.fspath(file)) for file in files)
    folders = tuple(os.fspath(folder) for folder in include) + _environment_folders()
    key = (paths, folders)
    with _LOADED_LOCK:
        kept = _LOADED.get(key)
        if kept is None or any(_age(path) != age for path, age in kept[0].items()):
            if len(_LOADED) >= _LOADED_MAX:
                del _LOADED[next(iter(_LOADED))]
            # Before they are read: a later change is seen.
            named = {path: _age(path) for path in paths}
            if paths:
                library = _native.Library.load(list(paths), list(folders), _make_class)
            else:
                library = _native.Library.standard(_make_class)
            ages = {path: _age(path) for path in library.files()} | named
            kept = ages, Idl(library, ", ".join(os.path.basename(path) for path in paths) or "built in")
            _LOADED[key] = kept
        return kept[1]


def load_text(text: str, name: str = "text.idl") -> Idl:
    """Reads IDL from a text."""
    return Idl(_native.Library.load_text(name, text, _make_class), name)


def implementation(made: type[_Class]) -> type[_Class]:
    """Registers the class of a valuetype's values, a subclass of that of IDL which has the operations as methods:

        @rtorb.implementation
        class Account(Bank.Account):
            def deposit(self, amount):
                self.balance += amount

    Values that arrive by this IDL are objects of it from then on. They are made with the state as arguments, in the order of IDL. Raises TypeError
    if an operation or attribute is missing.
    """
    code = getattr(made, "_rtorb_type", None)
    if not isinstance(made, type) or not isinstance(code, _native.TypeCode) or code.kind != "valuetype":
        raise TypeError(f"{made!r} is no subclass of the class of a valuetype")
    library: _native.Library = getattr(made, "_rtorb_library")
    names = sorted(_python_name(name) for name in library.value_operations(code.id))
    missing = [name for name in names if not hasattr(made, name)]
    if missing:
        raise TypeError(f"{made.__qualname__} lacks {', '.join(missing)} of valuetype {code}")
    library.register(code.id, made)
    return made


def load_beside(module: dict[str, typing.Any], idl: str, include: typing.Iterable[str] = ()) -> None:
    """Puts the declarations of an IDL file into a module, for the files that `rtorb idl build --python` makes."""
    folder = os.path.dirname(os.path.abspath(module["__file__"]))
    found = load(os.path.join(folder, idl), include=[os.path.join(folder, it) for it in include])
    module.update((name, it) for name, it in found.__dict__.items() if not name.startswith("_rtorb"))


def _environment_folders() -> tuple[str, ...]:
    folders = os.environ.get("RTORB_IDL_PATH", "").split(os.pathsep)
    return tuple(folder for folder in folders if folder)


def _age(path: str) -> typing.Optional[int]:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _fill(scope: Scope, library: _native.Library) -> None:
    """Puts all declarations into the scopes in which they are declared."""
    for kind, full_name, content in library.declarations():
        *path, own = (_python_name(part) for part in full_name.split("::"))
        parent: typing.Any = scope
        for place, part in enumerate(path):
            if _own(parent, part) is None:
                _put(parent, part, Scope("::".join(path[: place + 1])))
            parent = _own(parent, part)
        if kind == "module":
            if _own(parent, own) is None:
                _put(parent, own, Scope(full_name))
        elif kind == "constant":
            _put(parent, own, content)
        elif kind == "enumerator":
            id, place = content
            _put(parent, own, library.class_of(library.parse(id))(place))
        elif kind == "bitmask":
            id, flags = content
            members = [(_python_name(name), 1 << position) for name, position in flags]
            made = enum.IntFlag(own, members)  # type: ignore[misc]
            library.register(id, made)
            _put(parent, own, made)
        elif content is not None:
            _declare(parent, own, library.class_of(content), content)


def _declare(parent: typing.Any, own: str, made: typing.Any, code: _native.TypeCode) -> None:
    _put(parent, own, made)
    if not isinstance(made, type):
        return
    if issubclass(made, enum.Enum):
        for member in made:
            if _own(parent, member.name) is None:
                _put(parent, member.name, member)
    for suffix in ["skel", "async"]:
        beside = made.__dict__.get(f"_rtorb_{suffix}")
        if beside is not None:
            _put(parent, f"{own}_{suffix}", beside)


def _own(parent: typing.Any, name: str) -> typing.Any:
    return parent.__dict__.get(name)


def _put(parent: typing.Any, name: str, content: typing.Any) -> None:
    if isinstance(parent, Scope):
        parent.__dict__[name] = content
    elif isinstance(parent, type):
        setattr(parent, name, content)


def _interface_class(library: _native.Library, name: str) -> typing.Any:
    interface = library.interface(name)
    return None if interface is None else library.class_of(library.parse(interface.id))


def _make_class(library: _native.Library, code: _native.TypeCode) -> typing.Any:
    """The class of a type, or the type itself if Python has a class for it."""
    from ._objects import interface_class

    kind = code.kind
    makers = {
        "struct": _struct,
        "exception": _exception,
        "union": _union,
        "enum": _enum,
        "valuetype": _valuetype,
        "interface": interface_class,
    }
    if kind not in makers:
        return code
    plain = code.unaliased()
    if plain != code:
        # A typedef is another name of the class.
        return library.class_of(plain)
    return makers[kind](library, code)


def _names(code: _native.TypeCode) -> dict[str, typing.Any]:
    qualified = ".".join(_native.python_name(part) for part in str(code).split("::"))
    return {"__module__": "rtorb.idl", "__qualname__": qualified, "_rtorb_id": code.id, "_rtorb_type": code}


def _own_name(code: _native.TypeCode) -> str:
    return _python_name(code.name) if _IDENTIFIER.fullmatch(code.name) else "Unnamed"


def _python_name(idl: str, convert: typing.Callable[[str], str] = _native.python_name) -> str:
    """The name in Python of a name in IDL, which a server may have sent. It is an identifier, and hides nothing of Python's classes."""
    if not _IDENTIFIER.fullmatch(idl) or idl.startswith(("__", "_rtorb")):
        raise ConversionError(f"{idl[:80]!r} is no name for Python: names have letters, digits and underscores, and begin with a letter")
    return convert(idl)


def _fields(
    library: _native.Library, code: _native.TypeCode, may_default: bool
) -> list[typing.Any]:
    parts = code.parts()
    optional = [library.is_optional(code, name) for name, _ in parts]
    fields: list[typing.Any] = []
    for place, (name, kind) in enumerate(parts):
        own = _python_name(name) if name else f"member{place}"
        annotation = _ANNOTATIONS.get(kind, object)
        # A default may not stand before a member without one.
        if may_default and all(optional[place:]):
            fields.append((own, annotation, dataclasses.field(default=None)))
        else:
            fields.append((own, annotation))
    return fields


def _struct(library: _native.Library, code: _native.TypeCode) -> type:
    fields = _fields(library, code, may_default=True)
    return dataclasses.make_dataclass(_own_name(code), fields, namespace=_names(code))


def _valuetype(library: _native.Library, code: _native.TypeCode) -> type:
    base = code.content()
    bases = () if base is None else (library.class_of(base.unaliased()),)
    fields = _fields(library, code, may_default=False)
    names = {**_names(code), "_rtorb_library": library}
    return dataclasses.make_dataclass(_own_name(code), fields, bases=bases, namespace=names)


def _exception(library: _native.Library, code: _native.TypeCode) -> type:
    fields = tuple(_python_name(name, _native.exception_member) if name else f"member{place}" for place, (name, _) in enumerate(code.parts()))
    return type(_own_name(code), (UserException,), {**_names(code), "_rtorb_fields": fields})


class IdlEnum(enum.IntEnum):
    """The base of the enums of IDL: ordered as declared, and printed by name."""

    __str__ = enum.Enum.__str__


def _enum(library: _native.Library, code: _native.TypeCode) -> type:
    members = [(_python_name(name), place) for place, name in enumerate(code.parts())]
    names = _names(code)
    make: typing.Any = IdlEnum
    made: type = make(_own_name(code), members, module=names["__module__"], qualname=names["__qualname__"])
    setattr(made, "_rtorb_id", code.id)
    setattr(made, "_rtorb_type", code)
    return made


def _union(library: _native.Library, code: _native.TypeCode) -> type:
    discriminator = code.content()
    assert discriminator is not None
    converted: dict[str, typing.Callable[[int], typing.Any]] = {"boolean": bool, "text": chr}
    if discriminator.kind == "enum":
        enumeration = library.class_of(discriminator.unaliased())
        converted["enum"] = enumeration
    convert = converted.get(discriminator.kind, int)
    labels: dict[typing.Any, str] = {}
    members: dict[str, typing.Any] = {}
    default = None
    for name, label in code.parts():
        own = _python_name(name, _native.union_member)
        if label is None:
            default = own
        else:
            labels.setdefault(convert(label), own)
            members.setdefault(own, convert(label))
    if default is not None:
        members.setdefault(default, _free_label(labels, convert))
    made = {**_names(code), "_rtorb_labels": labels, "_rtorb_members": members, "_rtorb_default": default}
    return type(_own_name(code), (Union,), made)


def _free_label(labels: dict[typing.Any, str], convert: typing.Callable[[int], typing.Any]) -> typing.Any:
    """The first discriminator that is no label."""
    for number in range(len(labels) + 1):
        try:
            if convert(number) not in labels:
                return convert(number)
        except ValueError:
            break
    return None


def _unknown(where: str, what: str, name: str, known: typing.Iterable[str]) -> str:
    """A message for a name that is unknown, with names like it."""
    public = [it for it in known if not it.startswith("_rtorb") and not it.startswith("__")]
    near = difflib.get_close_matches(name, public, n=3)
    advice = f"; did you mean {' or '.join(f'`{it}`' for it in near)}?" if near else ""
    return f"{where} has no {what} `{name}`{advice}"


_ANNOTATIONS: dict[str, type] = {
    "boolean": bool,
    "integer": int,
    "real": float,
    "text": str,
    "sequence": list,
}
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
#: The age of each file that was read, and its declarations, by the named files and the folders.
_LOADED: dict[typing.Any, tuple[dict[str, typing.Optional[int]], Idl]] = {}
_LOADED_LOCK = threading.RLock()
#: The most sets of files whose classes are kept.
_LOADED_MAX = 64
