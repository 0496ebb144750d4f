//! The identity of a distributable thread.

use crate::exception::{Cause, Phase, SystemException, local};
use core::fmt;
use core::str::FromStr;

/// The identity of a distributable thread: 128 random bits, so that no two threads of any processes share one.
///
/// Its text is 32 hexadecimal digits.
///
/// ```
/// use rtorb::rt::ThreadId;
/// let id: ThreadId = "000102030405060708090a0b0c0d0e0f".parse().expect("32 digits");
/// assert_eq!(id.to_bytes()[15], 0x0f);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId([u8; 16]);

impl ThreadId {
    /// Makes the identity of a new thread.
    ///
    /// # Errors
    /// INTERNAL if the host gives no random numbers.
    pub(crate) fn random() -> Result<Self, SystemException> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| no_random_numbers(error.raw_os_error()))?;
        Ok(Self(bytes))
    }

    /// Returns the identity with these bytes (`RTScheduling::Current::IdType`).
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the identity.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

#[cold]
fn no_random_numbers(errno: Option<i32>) -> SystemException {
    let errno = errno.map_or(rustix::io::Errno::IO, rustix::io::Errno::from_raw_os_error);
    local::NO_RANDOM_NUMBERS.with_cause(Cause::host(Phase::Schedule, errno))
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({self})")
    }
}

impl FromStr for ThreadId {
    type Err = core::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A longer or shorter text is as wrong as one with other characters.
        let is_plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(if is_plain { text } else { "no identity" }, 16)?;
        Ok(Self(number.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_random_and_comes_back_from_its_text() {
        let ids = [(); 64].map(|()| ThreadId::random().expect("random numbers"));
        for (place, id) in ids.iter().enumerate() {
            assert_eq!(id.to_string().parse(), Ok(*id));
            assert!(!ids[..place].contains(id));
        }
        // A counter, or a time of the host, would leave bytes equal in all of them.
        for byte in 0..16 {
            assert!(
                ids.iter().any(|id| id.0[byte] != ids[0].0[byte]),
                "byte {byte}"
            );
        }
        for wrong in [
            "",
            "00",
            "+00102030405060708090a0b0c0d0e0f",
            "000102030405060708090a0b0c0d0e0f0",
        ] {
            assert!(wrong.parse::<ThreadId>().is_err(), "{wrong:?}");
        }
    }
}
