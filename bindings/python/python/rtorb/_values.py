"""Values that have no class of their own in Python."""

from __future__ import annotations

import typing


class Any:
    """A value with its IDL type: `rtorb.Any("sequence<long>", [1, 2])`.

    The type is a text in IDL, a TypeCode, or a class of an IDL file. Where an operation expects an any, bool, int, float, str, bytes,
    None, and the objects of IDL's classes stand for themselves.
    """

    __slots__ = ("type", "value")

    def __init__(self, type: typing.Any, value: typing.Any) -> None:
        self.type = type
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Any):
            return NotImplemented
        return str(self.type) == str(other.type) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"rtorb.Any({str(self.type)!r}, {self.value!r})"


_MISSING: typing.Any = object()


class Union:
    """The base of the unions of IDL: `d` is the discriminator, and `v` the value of the member that it selects.

    `Shape(radius=2.0)` chooses the member's first label; `Shape(d, v)` states both.
    """

    #: The name of the member for each label.
    _rtorb_labels: typing.ClassVar[dict[typing.Any, str]] = {}
    #: The label by which each member is chosen.
    _rtorb_members: typing.ClassVar[dict[str, typing.Any]] = {}
    _rtorb_default: typing.ClassVar[typing.Optional[str]] = None

    def __init__(self, d: typing.Any = _MISSING, v: typing.Any = None, **member: typing.Any) -> None:
        if member:
            name, value = next(iter(member.items()))
            if len(member) > 1 or v is not None or d is not _MISSING and self._member(d) != name:
                raise TypeError(f"{type(self).__name__} has one member at a time")
            if name not in self._rtorb_members:
                names = ", ".join(self._rtorb_members)
                raise TypeError(f"{type(self).__name__} has no member {name!r}; it has {names}")
            d = self._rtorb_members[name] if d is _MISSING else d
            v = value
        elif d is _MISSING:
            raise TypeError(f"{type(self).__name__} needs a discriminator or a member")
        self.d = d
        self.v = v

    @classmethod
    def _member(cls, d: typing.Any) -> typing.Optional[str]:
        return cls._rtorb_labels.get(d, cls._rtorb_default)

    def __getattr__(self, name: str) -> typing.Any:
        if name in self._rtorb_members:
            if self._member(self.d) == name:
                return self.v
            raise AttributeError(f"the discriminator {self.d!r} of this {type(self).__name__} does not select {name}")
        raise AttributeError(f"{type(self).__name__} has no member {name}; it has {', '.join(self._rtorb_members)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Union) or type(self) is not type(other):
            return NotImplemented
        return bool(self.d == other.d and self.v == other.v)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        member = self._member(self.d)
        if member is None:
            return f"{type(self).__qualname__}(d={self.d!r})"
        return f"{type(self).__qualname__}(d={self.d!r}, {member}={self.v!r})"
