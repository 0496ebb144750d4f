//! A consumer whose connection does what a test says.

use super::*;
use crate::events::event::Message;
use crate::events::filter::{FilterKind, FilterLimits};
use crate::events::outlet::{NotSent, Progress};
use crate::stubs::rtec_event::rtec_event_channel_admin::ConsumerQos;
use rtorb::SystemException;
use rtorb::rt::Priority;

/// An outlet that is never asked.
#[derive(Debug)]
struct Unasked;

impl Outlet for Unasked {
    fn push(&self, _: Message<'_>) -> Result<Progress, NotSent> {
        unreachable!("it is not open")
    }
    fn flush(&self) -> Result<Progress, SystemException> {
        unreachable!("it is not open")
    }
    fn open(&self) -> Result<(), SystemException> {
        Ok(())
    }
    fn ask(&self) -> Result<(), SystemException> {
        Ok(())
    }
    fn say_goodbye(&self) {}
}

/// A consumer in that slot that nothing is ever sent to.
pub(crate) fn unconnected(slot: usize) -> Arc<Consumer> {
    let qos = ConsumerQos {
        dependencies: Vec::new(),
        is_gateway: false,
    };
    let limits = FilterLimits::default();
    let subscription = Subscription::build(&qos, FilterKind::Basic, &limits, 0).expect("empty");
    let place = Place {
        number: slot as u64,
        slot,
        lane: Arc::new(Lane::new(Priority::MIN, 16)),
        turn_after_ns: None,
    };
    let config = ChannelConfig {
        queue_octets: 16 << 10,
        ..ChannelConfig::default()
    };
    let ends = (Arc::new(Mailbox::new(16)), &config);
    Arc::new(Consumer::new(place, subscription, Arc::new(Unasked), ends))
}
