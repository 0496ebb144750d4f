//! The transports of our ORB as levels of a factor.

use crate::contestants::Transport;
use crate::study::Factor;

/// The transports that every experiment of ours can vary.
pub(super) const TRANSPORTS: Factor = Factor::texts(
    TRANSPORT,
    &[
        Transport::OF_ORB[0].label(),
        Transport::OF_ORB[1].label(),
        Transport::OF_ORB[2].label(),
    ],
);

/// Its label.
pub(super) const TRANSPORT: &str = "transport";
