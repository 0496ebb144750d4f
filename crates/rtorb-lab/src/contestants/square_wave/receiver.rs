//! A receiver: a server with one object, whose servant sets an output and remembers when; where there is an event channel, a
//! consumer of events too.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use rtorb::rt::{Policy, PriorityModel, ThreadpoolLane};
use rtorb::{ExceptionKind, Limits, Orb, Poa, PoaPolicies, Strategies, SystemException};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerServant,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clocks::realtime_ahead_ns;
use super::idl::benchmark::{Put, PutServant};
use super::pulse::{Output, Pulse};
use super::{EDGES_MAX, Edge};
use crate::contestants::event_channel::rtec;
use crate::contestants::real_time::lane;
use crate::processes::questions::{json, serve_beside};

/// A receiver that listens, and does not serve yet.
#[derive(Debug)]
pub struct Receiver {
    orb: Orb,
    reference: String,
    port: Arc<Port>,
    poa: Poa,
    priority: u8,
    events: Option<Events>,
}

/// Whose events set the output too.
#[derive(Clone, Debug)]
struct Events {
    channel: String,
    source: i32,
    consumer: PushConsumer,
}

impl Receiver {
    /// Makes a [`server`] and activates the object.
    ///
    /// # Errors
    /// What the ORB said, or the kernel of the lines.
    pub fn open(endpoint: &str, priority: u8, pulse: &Pulse) -> Result<Self, String> {
        let port = Arc::new(Port::with(pulse.output()?));
        let (orb, poa) = server(endpoint, "put", priority, Limits::default())?;
        let put: Put = poa
            .activate(Arc::clone(&port))
            .map_err(|error| error.to_string())?;
        let reference = orb.object_to_string(put.as_object());
        Ok(Self {
            orb,
            reference,
            port,
            poa,
            priority,
            events: None,
        })
    }

    /// Takes the events of a source too, from the channel of this reference, once it is asked to connect.
    ///
    /// # Errors
    /// What the adapter said.
    pub fn with_events(self, channel: &str, source: i32) -> Result<Self, String> {
        let consumer = self
            .poa
            .activate(Arc::clone(&self.port))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            events: Some(Events {
                channel: channel.to_owned(),
                source,
                consumer,
            }),
            ..self
        })
    }

    /// The reference of its object.
    #[must_use]
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Its ORB, to shut it down.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.orb
    }

    /// Serves, and answers questions on standard input, until that ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub fn run(&self) -> Result<(), String> {
        let port = Arc::clone(&self.port);
        let (orb, priority) = (self.orb.clone(), self.priority);
        let events = self.events.clone();
        let answer = move |question| match (&question, &events) {
            (Question::Connect, Some(events)) => {
                events.connect(&orb, priority)?;
                json(&())
            }
            _ => port.answer(&question),
        };
        serve_beside(&self.orb, &self.reference, answer)
    }

    #[cfg(test)]
    pub(super) fn ask(&self, question: Question) -> Result<Value, String> {
        self.port.answer(&question)
    }
}

/// What a receiver is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// To subscribe to its events.
    Connect,
    /// To forget what was set until now.
    Clear,
    /// How often its output was set.
    Count,
    /// The [`Outputs`].
    Outputs,
}

impl Events {
    fn connect(&self, orb: &Orb, priority: u8) -> Result<(), String> {
        let channel = rtec::channel(orb, &self.channel, priority)?;
        rtec::subscribe(&channel, &self.consumer, self.source, priority).map(drop)
    }
}

/// An ORB with the preset `tao`, and an adapter. With a priority, its objects take that of the calls (CLIENT_PROPAGATED), and are
/// served by a lane of one thread; with 0, the scheduling stays as it is.
pub(in crate::contestants) fn server(
    endpoint: &str,
    adapter: &str,
    priority: u8,
    limits: Limits,
) -> Result<(Orb, Poa), String> {
    let lane = (priority > 0).then(|| lane(priority)).transpose()?;
    let orb = Orb::builder()
        .strategies(Strategies::TAO)
        .limits(limits)
        .lanes(lane)
        .listen(endpoint)
        .build()
        .map_err(|error| error.to_string())?;
    let policies = lane.map_or_else(PoaPolicies::default, propagated);
    let root = orb.root_poa().map_err(|exception| exception.to_string())?;
    let poa = root
        .create_poa(adapter, policies)
        .map_err(|error| error.to_string())?;
    Ok((orb, poa))
}

/// An adapter whose objects take the priority of the call, or that of the lane when it brings none.
fn propagated(lane: ThreadpoolLane) -> PoaPolicies {
    PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ClientPropagated,
        server_priority: lane.lane_priority,
    })
}

/// The servant.
#[derive(Debug)]
struct Port {
    output: Output,
    /// When each output was set, times two, and its level; room for all of a run.
    set: Vec<AtomicU64>,
    count: AtomicUsize,
    octets: AtomicUsize,
    /// [`Output::sent`] when it was cleared.
    first: AtomicU64,
    /// [`realtime_ahead_ns`] when it was cleared.
    ahead_ns: AtomicI64,
}

impl PutServant for Port {
    fn port(&self, _port_no: i16, value: i16, data: &str) -> Result<(), SystemException> {
        self.set(u64::from(value != 0), data.len())
    }
}

impl PushConsumerServant for Port {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        data.iter().try_for_each(|event| {
            let level = u64::from(event.header.r#type != rtec::FELL);
            self.set(level, event.data.payload.len())
        })
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Port {
    fn with(output: Output) -> Self {
        Self {
            output,
            set: (0..EDGES_MAX).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicUsize::new(0),
            octets: AtomicUsize::new(0),
            first: AtomicU64::new(0),
            ahead_ns: AtomicI64::new(realtime_ahead_ns()),
        }
    }

    fn set(&self, level: u64, octets: usize) -> Result<(), SystemException> {
        let at_ns = self.output.set(level).map_err(|error| {
            let _ = writeln!(io::stderr(), "the output cannot be set: {error}");
            SystemException::from(ExceptionKind::Internal)
        })?;
        let place = self.count.fetch_add(1, Ordering::Relaxed);
        // What has no room is missed when the laboratory counts.
        if let Some(set) = self.set.get(place) {
            set.store(at_ns << 1 | level, Ordering::Release);
        }
        self.octets.fetch_add(octets, Ordering::Relaxed);
        Ok(())
    }

    fn answer(&self, question: &Question) -> Result<Value, String> {
        match question {
            Question::Connect => Err("it takes no events".to_owned()),
            Question::Count => json(&self.count.load(Ordering::Relaxed)),
            Question::Clear => {
                self.output.monitored()?;
                self.count.store(0, Ordering::Relaxed);
                self.octets.store(0, Ordering::Relaxed);
                self.first.store(self.output.sent(), Ordering::Relaxed);
                self.ahead_ns.store(realtime_ahead_ns(), Ordering::Relaxed);
                json(&())
            }
            Question::Outputs => {
                let monitored = self.output.monitored()?;
                json(&Outputs {
                    set: monitored.unwrap_or_else(|| self.remembered()),
                    octets: self.octets.load(Ordering::Relaxed),
                    first: self.first.load(Ordering::Relaxed),
                    realtime_ahead_ns: [self.ahead_ns.load(Ordering::Relaxed), realtime_ahead_ns()],
                })
            }
        }
    }

    fn remembered(&self) -> Vec<Edge> {
        let count = self.count.load(Ordering::Relaxed);
        let set = self.set.iter().take(count);
        set.map(|set| set.load(Ordering::Acquire))
            .map(|both| Edge {
                at_ns: both >> 1,
                level: both & 1,
            })
            .collect()
    }
}

/// What a receiver answers after a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outputs {
    /// Every change of its output, in order.
    pub set: Vec<Edge>,
    /// Octets of `data` in all calls together.
    pub octets: usize,
    /// The number of the first datagram, if the output sends them.
    pub first: u64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC of its host, before and after the run.
    pub realtime_ahead_ns: [i64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_remembered_in_order_until_it_is_cleared() {
        let port = Port::with(Output::Memory);
        let outputs = || {
            let answer = port.answer(&Question::Outputs).unwrap();
            serde_json::from_value::<Outputs>(answer).unwrap()
        };
        for (value, data) in [(1, ""), (0, "four"), (1, "x")] {
            port.port(0, value, data).unwrap();
        }
        let found = outputs();
        let levels: Vec<u64> = found.set.iter().map(|set| set.level).collect();
        assert_eq!((levels, found.octets), (vec![1, 0, 1], 5));
        assert!(found.set.is_sorted_by_key(|set| set.at_ns));
        assert_eq!(port.answer(&Question::Count).unwrap(), 3);
        port.answer(&Question::Clear).unwrap();
        let cleared = outputs();
        assert_eq!((cleared.set, cleared.octets), (Vec::new(), 0));
        assert!(port.answer(&Question::Connect).is_err());
    }
}
