//! The transports of our ORB as levels of a factor.

use crate::study::Factor;

/// The transports that every experiment of ours can vary.
pub(super) const TRANSPORTS: Factor = Factor::texts(TRANSPORT, &["tcp", "unix", "shm"]);

/// Its label.
pub(super) const TRANSPORT: &str = "transport";
