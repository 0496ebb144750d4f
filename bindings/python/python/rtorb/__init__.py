"""CORBA for Python: call and serve objects by their IDL, with nothing to generate.

    import rtorb
    motor = rtorb.connect("motor.ior", idl="motor.idl")
    print(motor.turn(90))
"""

from . import CORBA
from ._exceptions import (
    CompletionStatus,
    ConversionError,
    IdlError,
    InterfaceNotFound,
    SystemException,
    UndeclaredException,
    UserException,
)
from ._library import implementation, load, load_beside, load_text
from ._native import TypeCode
from ._objects import ORB, Object, Skeleton, connect, default_orb, resolve, timeout
from ._values import Any, Union

__all__ = [
    "CORBA",
    "ORB",
    "Any",
    "CompletionStatus",
    "ConversionError",
    "IdlError",
    "InterfaceNotFound",
    "Object",
    "Skeleton",
    "SystemException",
    "TypeCode",
    "UndeclaredException",
    "Union",
    "UserException",
    "connect",
    "default_orb",
    "implementation",
    "load",
    "load_beside",
    "load_text",
    "resolve",
    "timeout",
]
