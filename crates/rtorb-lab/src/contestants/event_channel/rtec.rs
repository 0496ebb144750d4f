//! Being a client of the channel: events with a number and a moment in them, and how suppliers and consumers connect.

use rtorb::Orb;
use rtorb::any::Any;
use rtorb::rt::Priority;
use rtorb_services::stubs::rtec_event::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT,
};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, EventChannel, ProxyPushConsumer, ProxyPushSupplier, Publication,
    SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, EventData, EventHeader, PushConsumer,
};

/// The type of events that say that something fell; the one that follows says that it rose. The first of applications.
pub const FELL: i32 = 16;
/// Octets of a [`Stamp`].
pub const STAMP_BYTES: usize = 16;

/// What an event carries of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its number.
    pub number: u64,
    /// When it was to be sent, in nanoseconds of CLOCK_MONOTONIC: its planned release, or the time of sending if it has none.
    pub release_ns: u64,
}

impl Stamp {
    /// Writes itself over the payload of an event.
    pub fn write(self, payload: &mut [u8]) {
        if let Some((both, _)) = payload.split_first_chunk_mut::<STAMP_BYTES>() {
            both[..8].copy_from_slice(&self.number.to_le_bytes());
            both[8..].copy_from_slice(&self.release_ns.to_le_bytes());
        }
    }

    /// What the payload begins with; `None` when it is too short.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (both, _) = payload.split_first_chunk::<STAMP_BYTES>()?;
        let (number, release_ns) = both.split_first_chunk::<8>()?;
        Some(Self {
            number: u64::from_le_bytes(*number),
            release_ns: u64::from_le_bytes(*release_ns.first_chunk()?),
        })
    }
}

/// An event of that source.
#[must_use]
pub fn event(source: i32, r#type: i32, payload: Vec<u8>) -> Event {
    Event {
        header: EventHeader {
            r#type,
            source,
            // No gateway is meant to pass it on.
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData {
            pad1: 0,
            payload,
            any_value: Any::NULL,
        },
    }
}

/// The channel of this reference. The calling thread takes the CORBA priority, since the channel, which is asked whether it is
/// one, has lanes for no other.
///
/// # Errors
/// That it is none, or does not answer.
pub fn channel(orb: &Orb, reference: &str, priority: u8) -> Result<EventChannel, String> {
    take_priority(orb, priority)?;
    orb.string_to_object(reference)
        .and_then(|object| EventChannel::narrow(&object))
        .map_err(|exception| format!("the event channel: {exception}"))
}

/// Gives the calling thread and its calls a CORBA priority; 0 leaves the scheduling as it is.
///
/// # Errors
/// What the ORB or the host said.
pub fn take_priority(orb: &Orb, priority: u8) -> Result<(), String> {
    if priority == 0 {
        return Ok(());
    }
    Priority::new(priority.into())
        .and_then(|priority| orb.rt_current().set_the_priority(priority))
        .map_err(|exception| exception.to_string())
}

/// Connects a consumer that wants all events of a source, dispatched at that CORBA priority, which the calling thread takes too.
///
/// # Errors
/// What the channel said.
pub fn subscribe(
    channel: &EventChannel,
    consumer: &PushConsumer,
    source: i32,
    priority: u8,
) -> Result<ProxyPushSupplier, String> {
    take_priority(&channel.as_object().orb(), priority)?;
    let admin = channel
        .for_consumers()
        .map_err(|exception| exception.to_string())?
        .ok_or("the channel has no administration of consumers")?;
    let proxy = admin
        .obtain_push_supplier()
        .map_err(|exception| exception.to_string())?
        .ok_or("the channel has no proxy for a consumer")?;
    let wanted = ConsumerQos {
        dependencies: vec![Dependency {
            event: event(source, ANY_TYPE, Vec::new()),
            rt_info: priority.into(),
        }],
        is_gateway: false,
    };
    proxy
        .connect_push_consumer(Some(consumer), &wanted)
        .map_err(|error| format!("a consumer was not connected: {error}"))?;
    Ok(proxy)
}

/// Connects a supplier of the events of a source that nobody needs to tell of its end. The calling thread takes the priority.
///
/// # Errors
/// What the channel said.
pub fn publish(
    channel: &EventChannel,
    source: i32,
    priority: u8,
) -> Result<ProxyPushConsumer, String> {
    take_priority(&channel.as_object().orb(), priority)?;
    let admin = channel
        .for_suppliers()
        .map_err(|exception| exception.to_string())?
        .ok_or("the channel has no administration of suppliers")?;
    let proxy = admin
        .obtain_push_consumer()
        .map_err(|exception| exception.to_string())?
        .ok_or("the channel has no proxy for a supplier")?;
    let offered = SupplierQos {
        publications: vec![Publication {
            event: event(source, FELL, Vec::new()),
            dependency_info: DependencyInfo {
                dependency_type: DependencyTypeT::OneWayCall,
                number_of_calls: 1,
                rt_info: priority.into(),
                rt_info_depended_on: 0,
                enabled: DependencyEnabledTypeT::DependencyEnabled,
            },
        }],
        is_gateway: false,
    };
    proxy
        .connect_push_supplier(None, &offered)
        .map_err(|error| format!("a supplier was not connected: {error}"))?;
    Ok(proxy)
}

/// In a subscription, whatever the type.
const ANY_TYPE: i32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_what_is_too_short_has_none() {
        let stamp = Stamp {
            number: 1 << 40,
            release_ns: u64::MAX,
        };
        let mut payload = vec![0; STAMP_BYTES + 3];
        stamp.write(&mut payload);
        assert_eq!(Stamp::read(&payload), Some(stamp));
        assert_eq!(Stamp::read(&payload[..15]), None);
        assert_eq!(payload[16..], [0; 3]);
    }
}
