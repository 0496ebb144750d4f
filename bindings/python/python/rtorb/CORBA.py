"""The system exceptions of CORBA, one class for each kind."""

from ._exceptions import CompletionStatus, SystemException
from ._native import TypeCode

__all__ = [
    "CompletionStatus",
    "SystemException",
    "TypeCode",
    "ACTIVITY_COMPLETED",
    "ACTIVITY_REQUIRED",
    "BAD_CONTEXT",
    "BAD_INV_ORDER",
    "BAD_OPERATION",
    "BAD_PARAM",
    "BAD_QOS",
    "BAD_TYPECODE",
    "CODESET_INCOMPATIBLE",
    "COMM_FAILURE",
    "DATA_CONVERSION",
    "FREE_MEM",
    "IMP_LIMIT",
    "INITIALIZE",
    "INTERNAL",
    "INTF_REPOS",
    "INVALID_ACTIVITY",
    "INVALID_TRANSACTION",
    "INV_FLAG",
    "INV_IDENT",
    "INV_OBJREF",
    "INV_POLICY",
    "MARSHAL",
    "NO_IMPLEMENT",
    "NO_MEMORY",
    "NO_PERMISSION",
    "NO_RESOURCES",
    "NO_RESPONSE",
    "OBJECT_NOT_EXIST",
    "OBJ_ADAPTER",
    "PERSIST_STORE",
    "REBIND",
    "THREAD_CANCELLED",
    "TIMEOUT",
    "TRANSACTION_MODE",
    "TRANSACTION_REQUIRED",
    "TRANSACTION_ROLLEDBACK",
    "TRANSACTION_UNAVAILABLE",
    "TRANSIENT",
    "UNKNOWN",
]


class ACTIVITY_COMPLETED(SystemException): ...


class ACTIVITY_REQUIRED(SystemException): ...


class BAD_CONTEXT(SystemException): ...


class BAD_INV_ORDER(SystemException): ...


class BAD_OPERATION(SystemException): ...


class BAD_PARAM(SystemException): ...


class BAD_QOS(SystemException): ...


class BAD_TYPECODE(SystemException): ...


class CODESET_INCOMPATIBLE(SystemException): ...


class COMM_FAILURE(SystemException): ...


class DATA_CONVERSION(SystemException): ...


class FREE_MEM(SystemException): ...


class IMP_LIMIT(SystemException): ...


class INITIALIZE(SystemException): ...


class INTERNAL(SystemException): ...


class INTF_REPOS(SystemException): ...


class INVALID_ACTIVITY(SystemException): ...


class INVALID_TRANSACTION(SystemException): ...


class INV_FLAG(SystemException): ...


class INV_IDENT(SystemException): ...


class INV_OBJREF(SystemException): ...


class INV_POLICY(SystemException): ...


class MARSHAL(SystemException): ...


class NO_IMPLEMENT(SystemException): ...


class NO_MEMORY(SystemException): ...


class NO_PERMISSION(SystemException): ...


class NO_RESOURCES(SystemException): ...


class NO_RESPONSE(SystemException): ...


class OBJECT_NOT_EXIST(SystemException): ...


class OBJ_ADAPTER(SystemException): ...


class PERSIST_STORE(SystemException): ...


class REBIND(SystemException): ...


class THREAD_CANCELLED(SystemException): ...


class TRANSACTION_MODE(SystemException): ...


class TRANSACTION_REQUIRED(SystemException): ...


class TRANSACTION_ROLLEDBACK(SystemException): ...


class TRANSACTION_UNAVAILABLE(SystemException): ...


class TRANSIENT(SystemException): ...


class UNKNOWN(SystemException): ...


class TIMEOUT(SystemException, TimeoutError):
    """The deadline or the timeout of a call passed. It is a TimeoutError too."""
