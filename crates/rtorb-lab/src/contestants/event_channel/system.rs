//! The channel, its suppliers and its consumers, as the laboratory sees them.

use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_results::ObtainedScheduling;
use serde::de::DeserializeOwned;

use super::channel;
use super::consumers::{self, Latencies, Received};
use super::supplier;
use super::{Sending, Sent, Served, Subscribers};
use crate::contestants::Transport;
use crate::contestants::whitebox::counts::Reading;
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::child::word;
use crate::processes::readable::nanoseconds;
use crate::processes::{Launcher, Process};

/// A running event channel.
#[derive(Debug)]
pub struct Channel {
    process: Process,
    transport: Transport,
}

impl Channel {
    /// Starts one; `name` tells its socket from others.
    ///
    /// # Errors
    /// That it does not start.
    pub fn start(
        context: &Context,
        transport: Transport,
        name: &str,
        served: &Served,
    ) -> Result<Self, LabError> {
        let endpoint = endpoint(context, transport, &format!("channel-{name}"));
        let name = format!("{} event channel", transport.label());
        let role = ["event-channel", &endpoint, &word(served)];
        Ok(Self {
            process: context.launcher.start(&name, &role)?,
            transport,
        })
    }

    /// Starts one over TCP where this launcher starts servers.
    ///
    /// # Errors
    /// That it does not start.
    pub fn start_server(launcher: &Launcher, served: &Served) -> Result<Self, LabError> {
        let endpoint = launcher.server_endpoint();
        let role = ["event-channel", &endpoint, &word(served)];
        Ok(Self {
            process: launcher.start_server("tcp event channel", &role)?,
            transport: Transport::Tcp,
        })
    }

    /// Starts and connects consumers; `name` tells their socket from others.
    ///
    /// # Errors
    /// That the process does not start, or the channel does not take them.
    pub fn consumers(
        &self,
        context: &Context,
        name: &str,
        subscribers: &Subscribers,
    ) -> Result<Consumers, LabError> {
        let endpoint = endpoint(context, self.transport, &format!("consumers-{name}"));
        let channel = self.reference();
        let role = ["event-consumers", &endpoint, channel, &word(subscribers)];
        let name = format!("{} consumers {name}", self.transport.label());
        let mut consumers = Consumers {
            process: context.launcher.start(&name, &role)?,
            count: subscribers.count,
        };
        consumers.ask::<()>(&consumers::Question::Connect)?;
        Ok(consumers)
    }

    /// Starts and connects a supplier of the events of a source.
    ///
    /// # Errors
    /// That it does not start, or the channel does not take it.
    pub fn supplier(
        &self,
        context: &Context,
        source: i32,
        priority: u8,
    ) -> Result<Supplier, LabError> {
        let name = format!("supplier {source}");
        let (source, priority) = (source.to_string(), priority.to_string());
        let role = ["event-supplier", self.reference(), &source, &priority];
        let process = context.launcher.start(&name, &role)?;
        Ok(Supplier { process })
    }

    /// By which clients find it.
    #[must_use]
    pub fn reference(&self) -> &str {
        self.process.text()
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The scheduling of its threads and of its clients'. Its keeper, which may wait and sends no event, is left out.
    #[must_use]
    pub fn scheduling<'a>(
        &self,
        clients: impl IntoIterator<Item = &'a Process>,
    ) -> Vec<ObtainedScheduling> {
        let mut all = self.process.scheduling_by_priority();
        all.extend(
            clients
                .into_iter()
                .flat_map(Process::scheduling_by_priority),
        );
        all.into_iter()
            .filter(|kind| !kind.process.ends_with(KEEPER))
            .collect()
    }

    /// How many events it has discarded until now, over all consumers.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn discarded(&mut self) -> Result<u64, LabError> {
        self.process
            .ask(&channel::Question::Discarded, Duration::ZERO)
    }

    /// What the process has counted of itself, and what the kernel has counted for it.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn counts(&mut self) -> Result<Reading, LabError> {
        Reading::ask(&mut self.process)
    }
}

/// A running process with consumers.
#[derive(Debug)]
pub struct Consumers {
    process: Process,
    /// How many there are.
    pub count: usize,
}

impl Consumers {
    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Forgets what has come: the next event has the number 0.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn clear(&mut self) -> Result<(), LabError> {
        self.ask(&consumers::Question::Clear)
    }

    /// From now on, each sleeps for so long over an event: its thread is taken, and no other one's CPU.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn work(&mut self, time: Duration) -> Result<(), LabError> {
        let time_ns = nanoseconds(time);
        self.ask(&consumers::Question::Work(time_ns))
    }

    /// How many events the consumer with the fewest has, and all together.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn received(&mut self) -> Result<(u64, u64), LabError> {
        let Received { fewest, all } = self.ask(&consumers::Question::Received)?;
        Ok((fewest, all))
    }

    /// Waits until each has so many events.
    ///
    /// # Errors
    /// That they do not come, or that the process ended.
    pub fn await_received(&mut self, events: u64) -> Result<(), LabError> {
        let mut fewest = 0;
        let have_come = within(RECEIPT_TIMEOUT, || {
            fewest = self.received()?.0;
            Ok(fewest >= events)
        })?;
        if have_come {
            return Ok(());
        }
        let what = format!("the last of its consumers has {fewest} of {events} events");
        Err(LabError::process(self.process.name(), what))
    }

    /// The latencies of the first so many events, and what was lost or came twice.
    ///
    /// # Errors
    /// That the process ended or was silent.
    pub fn latencies(&mut self, events: u64) -> Result<Latencies, LabError> {
        self.ask(&consumers::Question::Latencies(events as usize))
    }

    fn ask<A: DeserializeOwned>(&mut self, question: &consumers::Question) -> Result<A, LabError> {
        self.process.ask(question, Duration::ZERO)
    }
}

/// A running process with a supplier.
#[derive(Debug)]
pub struct Supplier {
    process: Process,
}

impl Supplier {
    /// Sends, and waits until all of these consumers have all events. What they had before is forgotten.
    ///
    /// # Errors
    /// What a process said, or that it ended or was silent.
    pub fn send(&mut self, sending: &Sending, to: &mut [Consumers]) -> Result<Sent, LabError> {
        to.iter_mut().try_for_each(Consumers::clear)?;
        self.begin(sending)?;
        let sent = self.finish(sending.lasting() + RECEIPT_TIMEOUT)?;
        let mut each = to.iter_mut();
        each.try_for_each(|consumers| consumers.await_received(sending.count))?;
        Ok(sent)
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Begins to send, a few milliseconds from now.
    ///
    /// # Errors
    /// What the supplier said, or that the process ended.
    pub fn begin(&mut self, sending: &Sending) -> Result<(), LabError> {
        self.ask(&supplier::Question::Start(sending.clone()), Duration::ZERO)
    }

    /// Waits until all are sent, which may take as long as `within`.
    ///
    /// # Errors
    /// What the supplier said, or that the process ended or was silent.
    pub fn finish(&mut self, within: Duration) -> Result<Sent, LabError> {
        self.ask(&supplier::Question::Finish, within)
    }

    /// Has it send no more.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn stop(&mut self) -> Result<Sent, LabError> {
        self.ask(&supplier::Question::Stop, Duration::ZERO)
    }

    fn ask<A: DeserializeOwned>(
        &mut self,
        question: &supplier::Question,
        within: Duration,
    ) -> Result<A, LabError> {
        self.process.ask(question, within)
    }
}

/// Where a process listens; `name` is that of its socket, where it has one.
#[must_use]
pub fn endpoint(context: &Context, transport: Transport, name: &str) -> String {
    let endpoint = transport.endpoint_in(context.folder(), name);
    endpoint.unwrap_or_else(|| "iiop://127.0.0.1:0".to_owned())
}

/// Asks again until it is so, or the time is over.
///
/// # Errors
/// What `is_so` met.
pub fn within(
    timeout: Duration,
    mut is_so: impl FnMut() -> Result<bool, LabError>,
) -> Result<bool, LabError> {
    let deadline_ns = monotonic_ns() + nanoseconds(timeout);
    loop {
        if is_so()? {
            return Ok(true);
        }
        if monotonic_ns() >= deadline_ns {
            return Ok(false);
        }
        std::thread::sleep(POLL);
    }
}

/// The priority, if threads have any on this host; otherwise 0, which leaves the scheduling as it is.
#[must_use]
pub fn priority_on(context: &Context, priority: u8) -> u8 {
    let fifo = context.launcher.placement.fifo;
    fifo.map_or(0, |_| priority)
}

/// For a thousand consumers of a machine that is busy with something else.
pub const RECEIPT_TIMEOUT: Duration = Duration::from_secs(20);
/// How a kind of threads ends that is the keeper's alone.
const KEEPER: &str = ": events-keeper";
/// Short beside a run, long beside the answer to a question.
const POLL: Duration = Duration::from_millis(2);
