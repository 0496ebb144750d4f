//! The native part of the Python package `rtorb`: values, calls and servants. The classes are made in Python, in `python/rtorb`.
//!
//! The interpreter's lock is never held while something of the ORB runs that may wait: threads of the ORB take it for servants.

mod exceptions;
mod from_python;
mod library;
mod orb;
mod reference;
mod responder;
mod servant;
mod started;
mod to_python;
mod type_code;
mod waiting;

/// The native part of the package `rtorb`.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::library::{Interface, Library, Operation};
    #[pymodule_export]
    use crate::orb::NativeOrb;
    #[pymodule_export]
    use crate::reference::Reference;
    #[pymodule_export]
    use crate::responder::PyResponder;
    #[pymodule_export]
    use crate::started::{News, Started};
    #[pymodule_export]
    use crate::type_code::PyTypeCode;

    #[pyfunction]
    fn python_name(name: &str) -> String {
        rtorb_idl::python::name(name)
    }

    /// The Python name of a member of an exception.
    #[pyfunction]
    fn exception_member(name: &str) -> String {
        rtorb_idl::python::exception_member(name)
    }

    /// The Python name of a member of a union.
    #[pyfunction]
    fn union_member(name: &str) -> String {
        rtorb_idl::python::union_member(name)
    }
}
