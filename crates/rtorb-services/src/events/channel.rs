//! A channel on an ORB: serving it, its reference, its counts, its end.

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
use rtorb::{ConnectionStrategy, Orb, Poa, PoaPolicies, Strategies, SystemException, WaitStrategy};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::{Arc, mpsc};

/// A real-time event channel that is served; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the channel ends when this is dropped"]
pub struct Channel {
    core: Arc<ChannelCore>,
    reference: EventChannel,
    threads: Mutex<Vec<JoinHandle<Option<()>>>>,
}

impl Channel {
    /// Serves a channel on that ORB, where an `rt_info` is a CORBA priority.
    ///
    /// The ORB must have connection strategy `multiplexed` and wait strategy `read`, and room in
    /// `Limits::shared_connections_max` for two connections a consumer. It is the caller who
    /// [runs](Orb::run) it. The channel's object is found under the key of the configuration, and as an initial reference of
    /// that name. Suppliers are served at their own priority (CLIENT_PROPAGATED), those that tell none at the lowest.
    ///
    /// # Errors
    /// [`ChannelError`], and then nothing is served; a thread that the host refuses its priority is one, unless the ORB was built
    /// for best effort.
    pub fn serve(orb: &Orb, config: ChannelConfig) -> Result<Self, ChannelError> {
        Self::serve_with(orb, config, Arc::new(RtInfoIsPriority))
    }

    /// As [`serve`](Self::serve), with whoever knows how urgent an `rt_info` is.
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
        let served = begin(orb, &core).and_then(|threads| {
            let reference = activate(orb, &core, &poa)?;
            Ok((threads, reference))
        });
        match served {
            Ok((threads, reference)) => Ok(Self {
                core,
                reference,
                threads: Mutex::new(threads),
            }),
            Err(error) => {
                core.end();
                core.lanes().iter().for_each(|lane| lane.stop());
                poa.destroy();
                Err(error)
            }
        }
    }

    /// The channel's object.
    pub fn reference(&self) -> &EventChannel {
        &self.reference
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    /// True once the channel ends, or has ended, by whoever destroyed it.
    pub fn is_destroyed(&self) -> bool {
        self.core.is_ending()
    }

    /// Ends the channel: tells consumers and suppliers, ends its threads and its objects. Waits for that, `goodbye_timeout` and
    /// one answer at most.
    ///
    /// Not from a thread that serves one of the channel's own requests.
    pub fn destroy(&self) {
        self.core.end();
        let threads = core::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// The choices that a channel needs of its ORB, apart from how suppliers are dispatched.
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
    // One for events and one for questions; a connection that is closed for another would be opened again, and so on.
    let connections = 2 * config.consumers_max;
    let connections_max = orb.limits().shared_connections_max;
    match connections <= connections_max {
        true => Ok(()),
        false => Err(ChannelError::Connections {
            consumers_max: config.consumers_max,
            connections_max,
        }),
    }
}

fn policies() -> PoaPolicies {
    PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ClientPropagated,
        server_priority: Priority::MIN,
    })
}

/// Activates the channel's object and those that make proxies.
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
    orb.bind_object_key(&core.config().key, channel.as_object())?;
    orb.register_initial_reference(&core.config().key, channel.as_object().clone());
    Ok(channel)
}

/// Starts the lanes and the keeper.
fn begin(orb: &Orb, core: &Arc<ChannelCore>) -> Result<Vec<JoinHandle<Option<()>>>, ChannelError> {
    let slots = core.config().consumers_max;
    let mut threads = Vec::new();
    for lane in core.lanes() {
        let (own, lane): (_, Arc<Lane<Consumer>>) = (Arc::clone(core), Arc::clone(lane));
        let priority = lane.priority();
        let begun = begin_thread(
            orb,
            ("lane", priority),
            &core.config().lane_threads,
            move || {
                lane.work(slots, own.subscriptions());
            },
        );
        threads.push(begun?);
    }
    let own = Arc::clone(core);
    let config = ThreadConfig::default();
    let begun = begin_thread(orb, ("keeper", Priority::MIN), &config, move || {
        keeper::work(&own);
    });
    threads.push(begun?);
    Ok(threads)
}

/// A thread of that CORBA priority, by the ORB's mapping and its ways with refusals.
fn begin_thread(
    orb: &Orb,
    (name, priority): (&'static str, Priority),
    config: &ThreadConfig,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<Option<()>>, ChannelError> {
    let refused = |reason: String| ChannelError::Thread {
        thread: name,
        priority,
        reason,
    };
    let (report, reported) = mpsc::sync_channel::<Result<(), SystemException>>(1);
    let current = orb.rt_current();
    let thread = spawn(&format!("events-{name}"), config, move || {
        let set = current.set_the_priority(priority);
        let is_set = set.is_ok();
        // The creator waits for this, so it is there to hear it.
        let _ = report.send(set);
        if is_set {
            work();
        }
    })
    .map_err(|error| refused(error.to_string()))?;
    let set = reported
        .recv()
        .map_err(|_| refused("it ended at once".to_owned()))?;
    set.map_err(|exception| refused(exception.to_string()))?;
    Ok(thread)
}
