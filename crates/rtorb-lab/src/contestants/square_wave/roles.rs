//! The supplier and the receivers as processes.

use super::oscilloscope::Oscilloscope;
use super::pulse::Pulse;
use super::receiver::Receiver;
use super::supplier::Supplier;
use crate::processes::child::{Role, arguments, arguments_and_rest, is_tcp, lock_memory};
use crate::processes::child::{number, value};

/// From a digital input to a digital output.
pub(crate) const ROLES: &[Role] = &[
    Role::here("put-receiver", |words| {
        let [endpoint, priority, pulse, channel, source] = arguments(words)?;
        let receiver = Receiver::open(endpoint, number(priority)?, &value(pulse)?)?;
        let receiver = match channel {
            NO_CHANNEL => receiver,
            _ => receiver.with_events(channel, number(source)?)?,
        };
        lock_memory();
        receiver.run()
    })
    .on_agent(|words| match words {
        [endpoint, priority, pulse, channel, source] => {
            // Lines of GPIO belong to the host: an agent drives none for a laboratory that it cannot authenticate.
            let has_no_lines = !matches!(value(pulse), Ok(Pulse::Gpio(_)) | Err(_));
            let has_channel = *channel == NO_CHANNEL || channel.starts_with("IOR:");
            let is_priority = number::<u8>(priority).is_ok_and(|priority| priority <= 99);
            is_tcp(endpoint)
                && has_no_lines
                && has_channel
                && is_priority
                && number::<i32>(source).is_ok()
        }
        _ => false,
    }),
    Role::here("oscilloscope", |peers| {
        let peers = peers.iter().map(|peer| number(peer));
        Oscilloscope::open(&peers.collect::<Result<Vec<_>, _>>()?)?.serve()
    }),
    Role::here("put-supplier", |words| {
        let ([channel], receivers) = arguments_and_rest(words)?;
        // Of each receiver the pulse and the reference.
        let receivers = receivers.as_chunks::<2>().0.iter();
        let receivers: Vec<(Pulse, &str)> = receivers
            .map(|[pulse, reference]| Ok((value(pulse)?, *reference)))
            .collect::<Result<_, String>>()?;
        let supplier = Supplier::open(&receivers)?;
        let supplier = match channel {
            NO_CHANNEL => supplier,
            _ => supplier.with_channel(channel),
        };
        lock_memory();
        supplier.serve()
    }),
];

/// In the place of a channel's reference.
const NO_CHANNEL: &str = "none";
