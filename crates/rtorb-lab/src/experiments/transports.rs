//! The transports of our ORB as levels of a factor.

use rtorb_results::Labels;

use crate::contestants::Transport;
use crate::study::{Factor, Value};

/// The transports that every experiment of ours can vary.
pub(super) const TRANSPORTS: Factor = Factor {
    label: TRANSPORT,
    levels: &[
        Value::Text(Transport::OF_ORB[0].label()),
        Value::Text(Transport::OF_ORB[1].label()),
        Value::Text(Transport::OF_ORB[2].label()),
    ],
};

/// ` over unix`, or nothing for the transport that goes without saying.
pub(super) fn over(labels: &Labels) -> String {
    match labels.get(TRANSPORT) {
        Some(transport) if *transport != Transport::Tcp.label().into() => {
            format!(" over {transport}")
        }
        _ => String::new(),
    }
}

/// The same behind the id of a claim: `.unix`.
pub(super) fn id_of(labels: &Labels) -> String {
    over(labels).replace(" over ", ".")
}

/// Its label.
pub(super) const TRANSPORT: &str = "transport";
