//! The supplier: a process with a thread for each wave, which calls the wave's receiver at every edge, or sends it an event.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use rtorb::Orb;
use rtorb::thread::ThreadConfig;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushConsumer;
use rtorb_services::stubs::rtec_event::rtec_event_comm::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::idl::benchmark::Put;
use super::pulse::{Input, Pulse};
use super::{Called, EDGES_MAX, Path, Run, Wave};
use crate::contestants::event_channel::rtec;
use crate::contestants::event_channel::supplier::client_orb;
use crate::processes::barrier::Barrier;
use crate::processes::questions::{self, json};

/// The supplier's process.
#[derive(Debug)]
pub struct Supplier {
    orb: Orb,
    /// The reference of the channel through which events go, where there is one.
    channel: Option<String>,
    /// What the channel gave for each receiver's events.
    proxies: BTreeMap<usize, ProxyPushConsumer>,
    /// A pair for each receiver.
    ports: Vec<(Put, Arc<Input>)>,
    prepared: Option<Barrier<u64, Result<Vec<Called>, String>>>,
}

/// What the supplier is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// To make the threads of a run, and warm them up.
    Prepare(Run),
    /// To run, and the edges of each wave with their calls.
    Go,
}

impl Supplier {
    /// Makes an ORB with the preset `tao`, and takes the inputs and the references of the receivers.
    ///
    /// # Errors
    /// What the ORB said, or the kernel of the lines.
    pub fn open(receivers: &[(Pulse, &str)]) -> Result<Self, String> {
        let orb = client_orb()?;
        let port = |(pulse, reference): &(Pulse, &str)| {
            let put = orb
                .string_to_object(reference)
                .and_then(|object| Put::narrow(&object))
                .map_err(|exception| exception.to_string())?;
            Ok((put, Arc::new(pulse.input()?)))
        };
        let ports = receivers.iter().map(port).collect::<Result<_, String>>()?;
        Ok(Self {
            orb,
            channel: None,
            proxies: BTreeMap::new(),
            ports,
            prepared: None,
        })
    }

    /// Can send events too, through the channel of this reference. The events of a receiver's wave have its number, counted
    /// from 1, as their source.
    #[must_use]
    pub fn with_channel(self, reference: &str) -> Self {
        Self {
            channel: Some(reference.to_owned()),
            ..self
        }
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub fn serve(mut self) -> Result<(), String> {
        questions::serve(|question| self.answer(question))
    }

    fn answer(&mut self, question: Question) -> Result<Value, String> {
        match question {
            Question::Prepare(run) => {
                run.check()?;
                self.prepare(&run)?;
                json(&())
            }
            Question::Go => json(&self.go()?),
        }
    }

    /// Starts the threads, has each make a few calls, and leaves them at the barrier.
    fn prepare(&mut self, run: &Run) -> Result<(), String> {
        // Those of a run that never went end here, since nobody can start them any more.
        self.prepared = None;
        let mut barrier = Barrier::default();
        for (number, wave) in run.waves.iter().enumerate() {
            let (put, input) = self
                .ports
                .get(wave.receiver)
                .ok_or_else(|| format!("there is no receiver {}", wave.receiver))?
                .clone();
            let caller = Caller {
                orb: self.orb.clone(),
                to: self.to(run, wave, put)?,
                input,
                wave: wave.clone(),
            };
            let duration_ns = run.duration_ns;
            let name = format!("wave-{number}");
            let prepare = move || caller.prepare(duration_ns);
            barrier.add(&name, &ThreadConfig::default(), prepare)?;
        }
        barrier.await_all()?;
        self.prepared = Some(barrier);
        Ok(())
    }

    /// Where the calls of a wave go; connects a supplier to the channel when the first of its runs goes that way.
    fn to(&mut self, run: &Run, wave: &Wave, put: Put) -> Result<To, String> {
        match run.path {
            Path::Call => Ok(To::Object(put, "d".repeat(run.payload_bytes))),
            Path::Event => {
                let channel = self.channel.as_ref().ok_or("there is no event channel")?;
                let source = source(wave.receiver);
                let proxy = match self.proxies.entry(wave.receiver) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(place) => {
                        let channel = rtec::channel(&self.orb, channel, wave.priority)?;
                        let proxy = rtec::publish(&channel, source, wave.priority)?;
                        place.insert(proxy).clone()
                    }
                };
                let event = |level: i32| {
                    [rtec::event(
                        source,
                        rtec::FELL + level,
                        vec![0; run.payload_bytes],
                    )]
                };
                Ok(To::Channel(proxy, Box::new([event(0), event(1)])))
            }
        }
    }

    /// Opens the barrier and waits for the threads to end.
    fn go(&mut self) -> Result<Vec<Vec<Called>>, String> {
        let prepared = self.prepared.take().ok_or("nothing is prepared")?;
        // Time enough for all of them to hear it before the first edge.
        prepared.run(&(monotonic_ns() + BARRIER_NS))
    }
}

/// The source of the events of a receiver's wave; 0 is everybody.
#[must_use]
pub fn source(receiver: usize) -> i32 {
    i32::try_from(receiver + 1).unwrap_or(i32::MAX)
}

/// Where an edge goes.
enum To {
    /// With the data of each call.
    Object(Put, String),
    /// With the events of a fall and of a rise.
    Channel(ProxyPushConsumer, Box<[[Event; 1]; 2]>),
}

/// What one thread has.
struct Caller {
    orb: Orb,
    to: To,
    input: Arc<Input>,
    wave: Wave,
}

impl Caller {
    /// Makes a few calls, and returns what makes those of the run.
    fn prepare(
        self,
        duration_ns: u64,
    ) -> Result<impl FnOnce(u64) -> Result<Vec<Called>, String>, String> {
        self.take_priority()?;
        for _ in 0..WARM_UP_CALLS {
            self.call(0).map_err(|error| format!("warm-up: {error}"))?;
        }
        let all = vec![Called::default(); EDGES_MAX];
        Ok(move |begin_ns| self.run(begin_ns, duration_ns, all))
    }

    fn run(
        &self,
        begin_ns: u64,
        duration_ns: u64,
        mut all: Vec<Called>,
    ) -> Result<Vec<Called>, String> {
        let mut count = 0;
        let mut edges = self.input.edges(&self.wave, begin_ns, duration_ns)?;
        for called in &mut all {
            let Some(edge) = edges.wait()? else { break };
            let running_ns = monotonic_ns();
            self.call(edge.level)?;
            *called = Called {
                edge_ns: edge.at_ns,
                running_ns,
                reply_ns: monotonic_ns(),
                level: edge.level,
            };
            count += 1;
        }
        all.truncate(count);
        Ok(all)
    }

    /// The thread and its calls have the wave's priority from here on.
    fn take_priority(&self) -> Result<(), String> {
        rtec::take_priority(&self.orb, self.wave.priority)
    }

    fn call(&self, level: u64) -> Result<(), String> {
        let done = match &self.to {
            // A receiver has one port.
            To::Object(put, data) => put.port(0, i16::from(level != 0), data),
            To::Channel(proxy, events) => proxy.push(&events[usize::from(level != 0)]),
        };
        let priority = self.wave.priority;
        done.map_err(|exception| format!("a call of priority {priority}: {exception}"))
    }
}

/// For the connection, and what the ORB makes for a thread's first call.
pub(super) const WARM_UP_CALLS: usize = 5;
const BARRIER_NS: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use rtorb_os::thread::spawn;

    use super::*;
    use crate::contestants::square_wave::Latencies;
    use crate::contestants::square_wave::receiver::{Outputs, Question as Asked, Receiver};

    #[test]
    fn every_edge_sets_the_output_of_its_own_receiver_to_its_level() {
        let open = || Receiver::open("iiop://127.0.0.1:0", 0, &Pulse::Timer).unwrap();
        let receivers = [open(), open()];
        let serving = receivers.each_ref().map(|receiver| {
            let orb = receiver.orb().clone();
            spawn("receiver", &ThreadConfig::default(), move || orb.run()).unwrap()
        });
        let references = receivers.each_ref().map(Receiver::reference);
        let mut supplier =
            Supplier::open(&references.map(|reference| (Pulse::Timer, reference))).unwrap();
        assert!(supplier.answer(Question::Go).is_err());
        let wave = |receiver, period_ns| Wave {
            receiver,
            priority: 0,
            period_ns,
            lead_ns_max: 0,
        };
        let run = Run {
            duration_ns: 40_000_000,
            payload_bytes: 100_000,
            path: Path::Call,
            waves: vec![wave(1, 4_000_000), wave(0, 10_000_000)],
        };
        supplier.prepare(&run).unwrap();
        for receiver in &receivers {
            receiver.ask(Asked::Clear).unwrap();
        }
        let waves = supplier.go().unwrap();
        for (called, (receiver, edges)) in waves.iter().zip([(1, 10), (0, 4)]) {
            let answer = receivers[receiver].ask(Asked::Outputs).unwrap();
            let outputs: Outputs = serde_json::from_value(answer).unwrap();
            let found = Latencies::of(called, &outputs.set).unwrap();
            assert_eq!((called.len(), found.wrong), (edges, 0));
            assert_eq!(outputs.octets, edges * run.payload_bytes);
            let [call, wakeup, request, round_trip] = &found.parts_ns;
            for edge in 0..edges {
                assert_eq!(call[edge], wakeup[edge] + request[edge]);
                assert!(request[edge] <= round_trip[edge]);
            }
        }
        for (receiver, thread) in receivers.iter().zip(serving) {
            receiver.orb().shutdown();
            thread.join().unwrap().unwrap().unwrap();
        }
    }

    #[test]
    fn a_wave_without_a_receiver_is_refused() {
        let mut supplier = Supplier::open(&[]).unwrap();
        let run = Run {
            duration_ns: 1,
            payload_bytes: 0,
            path: Path::Call,
            waves: vec![Wave {
                receiver: 3,
                priority: 0,
                period_ns: 1,
                lead_ns_max: 0,
            }],
        };
        let error = supplier.prepare(&run).unwrap_err();
        assert!(error.contains("no receiver 3"), "{error}");
    }
}
