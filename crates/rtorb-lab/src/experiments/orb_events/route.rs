//! The way of an event: a supplier, a channel, and a process of consumers, all of one priority on one CPU.

use crate::contestants::Transport;
use crate::contestants::event_channel::system::{Channel, Consumers, Supplier, priority_on};
use crate::contestants::event_channel::{Sending, Served, Subscribers};
use crate::contestants::square_wave::system::Role;
use crate::experiments::prelude::*;

/// Running processes.
#[derive(Debug)]
pub(super) struct Route {
    // In this order: clients are ended before the channel that they are connected to.
    pub(super) supplier: Supplier,
    pub(super) consumers: [Consumers; 1],
    pub(super) channel: Channel,
}

impl Route {
    /// Starts so many consumers, which remember the latencies of so many events.
    pub(super) fn start(
        context: &Context,
        (transport, name): (Transport, &str),
        (served, role): (&Served, Role),
        [count, events_max]: [usize; 2],
    ) -> Result<Self, LabError> {
        let channel = Channel::start(context, transport, name, served)?;
        let priority = priority_on(context, role.priority());
        let subscribers = Subscribers {
            count,
            source: SOURCE,
            priority,
            events_max,
        };
        Ok(Self {
            consumers: [channel.consumers(context, name, &subscribers)?],
            supplier: channel.supplier(context, SOURCE, priority)?,
            channel,
        })
    }

    /// Starts to send one event, a pause, `events` more events, and a pause. Returns when the first event has arrived. Setup happens
    /// with the first event and teardown after the last pause, so neither counts as a cost of the events between them.
    pub(super) fn begin(&mut self, events: u64, sending: &Sending) -> Result<(), LabError> {
        let [consumers] = &mut self.consumers;
        consumers.clear()?;
        self.supplier.begin(&Sending {
            count: events + 1,
            ..sending.clone()
        })?;
        consumers.await_received(1)
    }

    /// Waits until so many events have come after the first one.
    pub(super) fn await_events(&mut self, events: u64) -> Result<(), LabError> {
        self.consumers[0].await_received(events + 1)
    }

    pub(super) fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let clients = [self.supplier.process(), self.consumers[0].process()];
        self.channel.scheduling(clients)
    }
}

const SOURCE: i32 = 1;
