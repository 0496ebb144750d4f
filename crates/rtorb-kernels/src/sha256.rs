//! The digest that names images, programs and answers.

use sha2::{Digest, Sha256};

/// The SHA-256 in hexadecimal digits.
pub(crate) fn sha256(octets: &[u8]) -> String {
    Sha256::digest(octets)
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect()
}
