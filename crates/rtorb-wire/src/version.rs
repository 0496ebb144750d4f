//! Versions of GIOP and of profiles.

use core::fmt;

/// A version of GIOP, or of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Always 1 so far.
    pub major: u8,
    /// 0 to 2.
    pub minor: u8,
}

impl Version {
    /// GIOP 1.0.
    pub const V1_0: Self = Self { major: 1, minor: 0 };
    /// GIOP 1.1.
    pub const V1_1: Self = Self { major: 1, minor: 1 };
    /// GIOP 1.2.
    pub const V1_2: Self = Self { major: 1, minor: 2 };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
