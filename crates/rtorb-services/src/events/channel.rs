//! A channel that an ORB serves.

use super::admin::{ChannelServant, ForConsumers, ForSuppliers};
use super::channel_core::ChannelCore;
use super::config::{ChannelConfig, ChannelError};
use super::consumer::Consumer;
use super::keeper;
use super::lane::Lane;
use super::priority_source::{PrioritySource, RtInfoIsPriority};
use super::statistics::Statistics;
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerAdmin, EventChannel, SupplierAdmin,
};
use crate::stubs::rtec_event::rtorb_events::CountingChannel;
use rtorb::rt::{Policy, Priority, PriorityModel};
use rtorb::{
    ConnectionStrategy, ExceptionKind, Orb, Poa, PoaPolicies, Strategies, SystemException,
    WaitStrategy,
};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::{Arc, mpsc};

/// The part of a channel that cannot change while it runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a channel cannot change while it runs: {0}")]
pub struct CannotReorder(pub(crate) String);

/// A real-time event channel. It ends when it is dropped.
#[derive(Debug)]
#[must_use = "the channel ends when this is dropped"]
pub struct Channel {
    core: Arc<ChannelCore>,
    reference: EventChannel,
    threads: Mutex<Vec<JoinHandle<Option<()>>>>,
}

impl Channel {
    /// Serves a channel on an ORB. An `rt_info` is a CORBA priority.
    ///
    /// The ORB must have connection strategy `multiplexed` and wait strategy `read`, and `Limits::shared_connections_max` must
    /// allow two connections for each consumer. The caller [runs](Orb::run) the ORB. The configured key is the object key of the
    /// channel and the name of its initial reference. Suppliers are served at their own priority (CLIENT_PROPAGATED), or at the
    /// lowest one if their requests carry none.
    ///
    /// # Errors
    /// [`ChannelError`]; nothing is served then. One reason is that the host refuses the priority of a thread, unless the ORB was
    /// built for best effort.
    pub fn serve(orb: &Orb, config: ChannelConfig) -> Result<Self, ChannelError> {
        Self::serve_with(orb, config, Arc::new(RtInfoIsPriority))
    }

    /// Does the same as [`serve`](Self::serve) with another source of priorities for an `rt_info`.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub fn serve_with(
        orb: &Orb,
        config: ChannelConfig,
        priorities: Arc<dyn PrioritySource>,
    ) -> Result<Self, ChannelError> {
        config.check()?;
        check_orb(orb, &config)?;
        let key = config.key.clone();
        let poa = orb.root_poa()?.create_poa(&key, policies())?;
        let core = ChannelCore::new(config, priorities, orb.clone(), poa.clone());
        let core = Arc::new(core);
        let mut threads = Vec::new();
        let served = begin(orb, &core, &mut threads).and_then(|()| activate(orb, &core, &poa));
        match served {
            Ok(reference) => Ok(Self {
                core,
                reference,
                threads: Mutex::new(threads),
            }),
            Err(error) => {
                core.end();
                core.lanes().iter().for_each(|lane| lane.stop());
                join_all(&mut threads);
                poa.destroy();
                Err(error)
            }
        }
    }

    /// The channel's object.
    pub fn reference(&self) -> &EventChannel {
        &self.reference
    }

    #[cfg(feature = "scheduling")]
    pub(crate) fn core(&self) -> &Arc<ChannelCore> {
        &self.core
    }

    /// Changes the channel to the urgencies that a source has now: its lanes exchange their priorities, and its consumers get another
    /// order. Events are neither lost nor repeated. The source must not wait for this channel.
    ///
    /// A channel whose source is a [`Scheduling`](crate::scheduling::Scheduling) of its process follows by
    /// [`reorder_channel`](crate::scheduling::Scheduling::reorder_channel). With a scheduler in another process, ask for its
    /// [`Schedule`](crate::scheduling::Schedule::ask) now and then, and give it to this function when it differs.
    ///
    /// # Errors
    /// [`CannotReorder`]; nothing has changed then.
    pub fn reorder(&self, source: &dyn PrioritySource) -> Result<(), CannotReorder> {
        let reorder = self.core.reorder(source).map_err(CannotReorder)?;
        self.core.carry_out(reorder);
        Ok(())
    }

    /// The counts so far.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    /// True once the channel is ending or has ended, for any reason.
    pub fn is_destroyed(&self) -> bool {
        self.core.is_ending()
    }

    /// Ends the channel: notifies consumers and suppliers, ends its threads and deactivates its objects. Waits for at most
    /// `goodbye_timeout` and one call. If several threads call it, each of them waits until the channel has ended.
    ///
    /// A thread that serves a request of the channel must not call it.
    pub fn destroy(&self) {
        self.core.end();
        // Under the lock, so that another caller waits too.
        join_all(&mut self.threads.lock());
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// The strategies that a channel needs, with the given dispatch strategy.
pub fn strategies(dispatch: rtorb::DispatchStrategy) -> Strategies {
    Strategies::new(CONNECTION, dispatch)
}

/// A consumer's connection belongs to its reference alone.
const CONNECTION: ConnectionStrategy = ConnectionStrategy::Multiplexed {
    wait: WaitStrategy::Read,
};

fn check_orb(orb: &Orb, config: &ChannelConfig) -> Result<(), ChannelError> {
    let Strategies { connection, .. } = orb.strategies();
    if connection != CONNECTION {
        return Err(ChannelError::Strategies { connection });
    }
    // One for events and one for other calls. If the ORB closed one connection for another, it would open it again, and so on.
    let connections = 2 * config.consumers_max;
    let connections_max = orb.limits().shared_connections_max;
    if connections <= connections_max {
        Ok(())
    } else {
        Err(ChannelError::Connections {
            consumers_max: config.consumers_max,
            connections_max,
        })
    }
}

fn policies() -> PoaPolicies {
    PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ClientPropagated,
        server_priority: Priority::MIN,
    })
}

/// Activates the channel's object and its administrations.
fn activate(orb: &Orb, core: &Arc<ChannelCore>, poa: &Poa) -> Result<EventChannel, ChannelError> {
    let consumers: ConsumerAdmin = poa.activate(ForConsumers(Arc::clone(core)))?;
    let suppliers: SupplierAdmin = poa.activate(ForSuppliers(Arc::clone(core)))?;
    let servant = ChannelServant {
        core: Arc::clone(core),
        consumers,
        suppliers,
    };
    let channel: CountingChannel = poa.activate(servant)?;
    let channel = EventChannel::from(channel);
    core.bind_key(channel.as_object())?;
    orb.register_initial_reference(&core.config().key, channel.as_object().clone());
    Ok(channel)
}

/// Waits until all threads have ended.
fn join_all(threads: &mut Vec<JoinHandle<Option<()>>>) {
    for thread in threads.drain(..) {
        // A thread that panicked has ended as well.
        let _ = thread.join();
    }
}

/// Starts the threads of the lanes and the keeper. After an error, `threads` has those that run.
fn begin(
    orb: &Orb,
    core: &Arc<ChannelCore>,
    threads: &mut Vec<JoinHandle<Option<()>>>,
) -> Result<(), ChannelError> {
    let slots = core.config().consumers_max;
    for lane in core.lanes() {
        let (own, lane): (_, Arc<Lane<Consumer>>) = (Arc::clone(core), Arc::clone(lane));
        let priority = lane.priority();
        let current = orb.rt_current();
        let begun = begin_thread(
            orb,
            "lane",
            priority,
            &core.config().lane_threads,
            move || {
                lane.work(slots, own.subscriptions(), |priority| {
                    // Another lane of this channel had it, so the host permits it. If the host has changed its mind, the thread
                    // keeps its priority.
                    let _ = current.set_the_priority(priority);
                });
            },
        );
        threads.push(begun?);
    }
    let own = Arc::clone(core);
    let config = ThreadConfig::default();
    let begun = begin_thread(orb, "keeper", Priority::MIN, &config, move || {
        keeper::work(&own);
    });
    threads.push(begun?);
    Ok(())
}

/// Starts a thread with a CORBA priority. The ORB maps it and decides what a refusal means.
#[expect(
    clippy::disallowed_methods,
    reason = "the creator waits until the thread has begun, and holds no lock"
)]
fn begin_thread(
    orb: &Orb,
    name: &'static str,
    priority: Priority,
    config: &ThreadConfig,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<Option<()>>, ChannelError> {
    let refused = |reason: String, is_mapped| ChannelError::Thread {
        thread: name,
        priority,
        reason,
        is_mapped,
    };
    let (report, reported) = mpsc::sync_channel::<Result<(), SystemException>>(1);
    let current = orb.rt_current();
    let thread = spawn(&format!("events-{name}"), config, move || {
        let set = current.set_the_priority(priority);
        let is_set = set.is_ok();
        // The creator waits for this report.
        let _ = report.send(set);
        if is_set {
            work();
        }
    })
    .map_err(|error| refused(error.to_string(), true))?;
    let failure = match reported.recv() {
        Ok(Ok(())) => return Ok(thread),
        Ok(Err(exception)) => {
            let is_mapped = exception.kind != ExceptionKind::DataConversion;
            refused(exception.to_string(), is_mapped)
        }
        Err(_) => refused("it ended at once".to_owned(), true),
    };
    // It ends without work.
    let _ = thread.join();
    Err(failure)
}
