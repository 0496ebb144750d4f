//! What a local check found, in words.

use super::SystemException;
use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use core::fmt;

/// The values that the words of a minor code are about: two types, a name and those like it, a range.
///
/// It is boxed, so that an exception is no larger for it. Only errors of the application's own calls have it, never errors of
/// messages: a peer cannot make a server write text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Detail(String);

impl SystemException {
    /// The same exception with the values that it is about.
    #[must_use]
    #[cold]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(Box::new(Detail(detail.to_string())));
        self
    }

    /// The values that the exception is about, where this process found them: for example both types of a wrong `narrow`.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref().map(|detail| detail.0.as_str())
    }
}
