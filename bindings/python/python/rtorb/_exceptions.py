"""The bases of all exceptions."""

from __future__ import annotations

import enum
import typing


class CompletionStatus(enum.IntEnum):
    """Whether the operation of a call that failed was carried out."""

    YES = 0
    NO = 1
    MAYBE = 2


class SystemException(Exception):
    """An exception of the ORB, of the network or of the server. `rtorb.CORBA` has a class for each kind."""

    _rtorb_id: typing.ClassVar[str] = "IDL:omg.org/CORBA/UNKNOWN:1.0"

    def __init_subclass__(cls) -> None:
        # Classes of applications keep the id of their base.
        if cls.__module__ == "rtorb.CORBA":
            cls._rtorb_id = f"IDL:omg.org/CORBA/{cls.__name__}:1.0"

    def __init__(
        self,
        minor: int = 0,
        completed: int = CompletionStatus.MAYBE,
        message: str = "",
    ) -> None:
        self.minor = minor
        self.completed = CompletionStatus(completed)
        kind = type(self).__name__
        self.message = message or f"{kind} (minor {minor:#x}, COMPLETED_{self.completed.name})"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> typing.Any:
        return type(self), (self.minor, int(self.completed), self.message)


class UserException(Exception):
    """The base of the exceptions that IDL declares. Their members are attributes."""

    _rtorb_fields: typing.ClassVar[tuple[str, ...]] = ()

    def __init__(self, *values: typing.Any, **named: typing.Any) -> None:
        fields = self._rtorb_fields
        own = type(self).__name__
        if len(values) > len(fields):
            raise TypeError(f"{own} has {len(fields)} members, and {len(values)} are given")
        given = dict(zip(fields, values))
        for name, value in named.items():
            if name not in fields or name in given:
                raise TypeError(f"{own}: {name!r} is no member, or given twice; the members are {', '.join(fields)}")
            given[name] = value
        missing = [name for name in fields if name not in given]
        if missing:
            raise TypeError(f"{own}: the member {missing[0]} is missing")
        super().__init__(*(given[name] for name in fields))
        for name, value in given.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        members = (f"{name}={getattr(self, name)!r}" for name in self._rtorb_fields)
        return f"{type(self).__qualname__}({', '.join(members)})"


class UndeclaredException(UserException):
    """A user exception whose type is in no IDL that is known here."""

    _rtorb_fields = ("repository_id",)


class IdlError(ValueError):
    """IDL is wrong, or cannot be read."""


class InterfaceNotFound(LookupError):
    """No IDL has the interface."""


class ConversionError(ValueError):
    """A value that arrived has no Python object."""
