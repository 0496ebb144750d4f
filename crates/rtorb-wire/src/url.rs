//! References as URLs.

use crate::DecodeError;

/// What is wrong with the text of a reference; each is BAD_PARAM with the minor code [`minor`](Self::minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// No `IOR:`, `corbaloc:`, `corbaname:` or `file:` before it.
    #[error("a reference begins with IOR:, corbaloc:, corbaname: or file://")]
    Scheme,
    /// An address that cannot be understood.
    #[error("{0} in an address")]
    Address(&'static str),
    /// A key or a name that cannot be understood.
    #[error("{0}")]
    SchemeSpecificPart(&'static str),
    /// Anything else.
    #[error("{0}")]
    Other(&'static str),
    /// The octets behind `IOR:` are no reference.
    #[error("not a reference: {0}")]
    Reference(DecodeError),
}

impl UrlError {
    /// The standard minor code of BAD_PARAM, without the vendor: 7 to 10.
    pub const fn minor(self) -> u32 {
        match self {
            Self::Scheme => 7,
            Self::Address(_) => 8,
            Self::SchemeSpecificPart(_) => 9,
            Self::Other(_) | Self::Reference(_) => 10,
        }
    }
}
