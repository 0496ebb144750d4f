//! The text of an error that a local check found.

use super::SystemException;
use core::fmt;

/// The values that the text of a minor code concerns: two types, a name and similar ones, a range.
///
/// It is boxed to keep exceptions small. Only errors of the application's own calls have it, never errors of messages: a peer cannot
/// make a server allocate text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Detail(String);

impl SystemException {
    /// Returns the same exception with the values that it concerns.
    #[must_use]
    #[cold]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(Box::new(Detail(detail.to_string())));
        self
    }

    /// Returns the values that the exception concerns, if this process found them: for example both types of a wrong `narrow`.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref().map(|detail| detail.0.as_str())
    }
}
