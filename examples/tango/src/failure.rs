//! Failures as Tango's clients expect them: a reason that programs compare, and a description for people.

use rtorb::SystemException;

use crate::tango::{DevError, DevFailed, ErrSeverity, NamedDevError};

/// A failure with one cause. `reason` is a name such as `API_AttrNotFound`; `origin` is the place that found the failure.
#[must_use]
pub fn failed(reason: &str, desc: impl Into<String>, origin: &str) -> DevFailed {
    let error = DevError {
        reason: reason.to_owned(),
        severity: ErrSeverity::Err,
        desc: desc.into(),
        origin: origin.to_owned(),
    };
    DevFailed {
        errors: vec![error],
    }
}

/// The failure of one attribute of a call that writes several.
pub(crate) fn named(name: &str, index: usize, failure: DevFailed) -> NamedDevError {
    NamedDevError {
        name: name.to_owned(),
        index_in_call: i32::try_from(index).unwrap_or(i32::MAX),
        err_list: failure.errors,
    }
}

/// The failure of a call that the ORB ended.
pub(crate) fn of_orb(exception: &SystemException, origin: &str) -> DevFailed {
    failed("API_CorbaException", exception.to_string(), origin)
}
