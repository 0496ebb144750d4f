//! The process that is a component: its lanes and objects, the threads of its roots, and what it answers of a run.
//!
//! It finds whom it calls, opens every way that its threads may take, starts at a given time, and says in the end what it has seen.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rtorb::rt::{Policy, PriorityModel, RequestOrder, ThreadpoolLane};
use rtorb::thread::ThreadConfig;
use rtorb::{Deadlines, Orb, Poa, PoaPolicies, Strategies};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushSupplier;
use rtorb_services::stubs::rtec_event::rtec_event_comm::PushConsumer;
use serde::{Deserialize, Serialize};

use super::plan::{Begins, ComponentPlan, Levels, Subscription};
use super::records::Kept;
use crate::contestants::event_channel::rtec;
use crate::contestants::real_time::corba;
use crate::processes::questions::{Reply, serve_beside};
use roots::{Roots, Times};
use servant::{Performer, Servant};
use ways::{Failures, OfJob, Way};
use work::{Section, Work};

mod gathering;
pub(crate) mod roots;
mod servant;
mod ways;
pub(crate) mod work;

#[allow(missing_docs, clippy::all, reason = "generated")]
pub(crate) mod idl {
    rtorb::include_idl!("model");
}

use idl::model::Behaviour;

/// Whom a component calls, by their places in the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peers {
    /// The reference of each behaviour that is called.
    pub(crate) objects: BTreeMap<u32, String>,
    /// The reference of each behaviour of the same lane with levels, in the lane that passes calls on to it. The component knows them.
    #[serde(skip)]
    pub(crate) passing: BTreeMap<u32, String>,
    /// The reference of each channel.
    pub(crate) channels: Vec<String>,
    /// Who gets which events.
    pub(crate) subscriptions: Vec<Subscription>,
}

/// What a component is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ComponentQuestion {
    /// To find whom it calls, and to subscribe to events.
    Connect(Peers),
    /// To open every way that a thread of it may take.
    Warm,
    /// To let jobs arrive at these times.
    Start(Times),
    /// What was seen: [`Seen`], and two series, the numbers of all jobs and those of all gaps.
    Finish,
}

/// What a component has seen, without its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Jobs that had no room, and gaps that had none.
    pub(crate) beyond_room: (usize, usize),
    /// How many jobs of each root arrived.
    pub(crate) arrivals: BTreeMap<u32, u64>,
    /// And how many of these could not be begun in time.
    pub(crate) skipped: BTreeMap<u32, u64>,
    /// Calls that failed.
    pub(crate) failed: u64,
    /// What the first of them said.
    pub(crate) failure: Option<String>,
}

/// A component that listens, and does not serve yet.
#[derive(Debug)]
pub(crate) struct Component {
    orb: Orb,
    performer: Arc<Performer>,
    objects: BTreeMap<u32, String>,
    consumers: BTreeMap<u32, PushConsumer>,
    /// The roots that a lane with levels serves, by their numbers.
    released: BTreeMap<u32, Behaviour>,
    /// The references of what passes calls on to the lane with levels.
    passing: BTreeMap<u32, String>,
    /// By which its own lanes are warmed, the most urgent first; one for all lanes of a component that has no levels.
    gatherers: Vec<Behaviour>,
    proxies: Vec<ProxyPushSupplier>,
    roots: Roots,
}

impl Component {
    /// Makes the ORB and the objects that the plan of this file says.
    ///
    /// # Errors
    /// What is wrong with the file, or what the ORB said.
    pub(crate) fn open(plan: &Path) -> Result<Self, String> {
        let text = fs::read(plan).map_err(|error| format!("{}: {error}", plan.display()))?;
        let plan: ComponentPlan =
            serde_json::from_slice(&text).map_err(|error| format!("no plan: {error}"))?;
        let orb = orb(&plan)?;
        let performer = Arc::new(Performer {
            work: Work {
                sections: plan.mutexes.iter().copied().map(Section::new).collect(),
                gaps: Kept::with_room(plan.gaps_max),
                give_up_ns: AtomicU64::new(u64::MAX),
            },
            jobs: Kept::with_room(plan.jobs_max),
            gathered: AtomicU32::new(0),
            failures: Failures::default(),
            ways: std::sync::OnceLock::new(),
            plan,
        });
        let mut component = Self {
            orb,
            performer,
            objects: BTreeMap::new(),
            consumers: BTreeMap::new(),
            released: BTreeMap::new(),
            passing: BTreeMap::new(),
            gatherers: Vec::new(),
            proxies: Vec::new(),
            roots: Roots::default(),
        };
        component.activate()?;
        Ok(component)
    }

    /// Serves, and answers questions on standard input, until that ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let orb = self.orb.clone();
        let objects = serde_json::to_string(&self.objects).map_err(|error| error.to_string())?;
        serve_beside(&orb, &objects, move |question| self.answer(question))
    }

    fn activate(&mut self) -> Result<(), String> {
        let plan = &self.performer.plan;
        let Some(lane) = plan.lanes.first() else {
            return Ok(());
        };
        if let Some(levels) = plan.levels {
            return self.activate_by_deadline(levels);
        }
        let propagated = self.poa("propagated", PriorityModel::ClientPropagated, lane.0)?;
        let gathering = Servant::gathering(&self.performer, Vec::new());
        self.gatherers = vec![activated(&propagated, gathering)?; plan.lanes.len()];
        for (index, behaviour) in plan.behaviours.iter().enumerate() {
            let servant = || Servant::of(&self.performer, index);
            let object: Behaviour = match behaviour.begins {
                Begins::Periodic { .. } | Begins::Sporadic { .. } => continue,
                Begins::TwoWay => propagated.activate(servant()),
                Begins::OneWay | Begins::Event => {
                    let priority = behaviour.priority.unwrap_or(lane.0);
                    let model = PriorityModel::ServerDeclared;
                    let declared = self.poa(&behaviour.name, model, priority)?;
                    let consumer = declared.activate(servant());
                    let consumer = consumer.map_err(|error| error.to_string())?;
                    self.consumers.insert(behaviour.number, consumer);
                    declared.activate(servant())
                }
            }
            .map_err(|error| error.to_string())?;
            let reference = self.orb.object_to_string(object.as_object());
            self.objects.insert(behaviour.number, reference);
        }
        Ok(())
    }

    /// Makes the objects of a lane with levels: one for each behaviour.
    fn activate_by_deadline(&mut self, levels: Levels) -> Result<(), String> {
        let model = PriorityModel::ServerDeclared;
        let declared = self.poa("by deadline", model, levels.lowest)?;
        let mut called = Vec::new();
        for (index, behaviour) in self.performer.plan.behaviours.iter().enumerate() {
            let object = activated(&declared, Servant::of(&self.performer, index))?;
            match behaviour.begins {
                Begins::Periodic { .. } | Begins::Sporadic { .. } => {
                    self.released.insert(behaviour.number, object);
                }
                Begins::TwoWay | Begins::OneWay | Begins::Event => {
                    let reference = self.orb.object_to_string(object.as_object());
                    self.objects.insert(behaviour.number, reference);
                    called.push((index, object));
                }
            }
        }
        if levels.passes_on {
            self.activate_passing(levels.releasing(), &called)?;
        }
        let gathering = Servant::gathering(&self.performer, Vec::new());
        self.gatherers.push(activated(&declared, gathering)?);
        Ok(())
    }

    /// Makes the objects of the lane above the levels, which pass events and calls on.
    fn activate_passing(&mut self, lane: u8, called: &[(usize, Behaviour)]) -> Result<(), String> {
        let passing = self.poa("passing on", PriorityModel::ServerDeclared, lane)?;
        for (index, object) in called {
            let behaviour = &self.performer.plan.behaviours[*index];
            let servant = || Servant::passing_on(&self.performer, *index, object.clone());
            if behaviour.begins == Begins::Event {
                let consumer = passing.activate(servant());
                let consumer = consumer.map_err(|error| error.to_string())?;
                self.consumers.insert(behaviour.number, consumer);
            }
            let object = activated(&passing, servant())?;
            let reference = self.orb.object_to_string(object.as_object());
            self.passing.insert(behaviour.number, reference);
        }
        let objects = called.iter().map(|(_, object)| object.clone()).collect();
        let gathering = Servant::gathering(&self.performer, objects);
        self.gatherers.push(activated(&passing, gathering)?);
        Ok(())
    }

    fn poa(&self, name: &str, model: PriorityModel, priority: u8) -> Result<Poa, String> {
        let policies = PoaPolicies::default().with(Policy::PriorityModel {
            model,
            server_priority: corba(priority)?,
        });
        let root = self.orb.root_poa().map_err(|error| error.to_string())?;
        root.create_poa(name, policies)
            .map_err(|error| format!("{name}: {error}"))
    }

    fn answer(&mut self, question: ComponentQuestion) -> Result<Reply<Option<Seen>>, String> {
        match question {
            ComponentQuestion::Connect(peers) => self.connect(&peers)?,
            ComponentQuestion::Warm => self.warm()?,
            ComponentQuestion::Start(times) => {
                let give_up_ns = &self.performer.work.give_up_ns;
                give_up_ns.store(times.give_up_ns, Ordering::Relaxed);
                self.roots.start(times)?;
            }
            ComponentQuestion::Finish => return self.finish(),
        }
        Ok(Reply::default())
    }

    /// Finds whom it calls. The calling thread keeps its scheduling: what channels are asked takes that of the behaviour.
    fn connect(&mut self, peers: &Peers) -> Result<(), String> {
        let (orb, performer) = (self.orb.clone(), Arc::clone(&self.performer));
        let (consumers, mut peers) = (self.consumers.clone(), peers.clone());
        peers.passing.clone_from(&self.passing);
        let connect = move || {
            let ways = performer.plan.behaviours.iter();
            let ways = ways.map(|behaviour| Way::all_of(&orb, behaviour, &peers));
            let ways = ways.collect::<Result<_, String>>()?;
            // It is asked once.
            let _ = performer.ways.set(ways);
            subscribe(&orb, &performer.plan, &consumers, &peers)
        };
        self.proxies = joined("connect", connect)?;
        Ok(())
    }

    /// Opens the ways of every thread of every lane, and of the roots, which wait for the start from then on.
    fn warm(&mut self) -> Result<(), String> {
        let mut in_all = 0;
        for (lane, gatherer) in self.performer.plan.lanes.iter().zip(&self.gatherers) {
            in_all += lane.1;
            gathering::gather((&self.orb, &self.performer), gatherer, *lane, in_all)?;
        }
        self.roots = Roots::spawn(&self.orb, &self.performer, &self.released)?;
        match self.performer.failures.first() {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    fn finish(&mut self) -> Result<Reply<Option<Seen>>, String> {
        let released = self.roots.join()?;
        let performer = &self.performer;
        let found = performer.jobs.all().zip(performer.work.gaps.all());
        let ((jobs, no_room), (gaps, no_room_either)) =
            found.ok_or("it was still at work when it was asked for what it had seen")?;
        let of = |which: fn(&roots::Released) -> u64| {
            let each = released.iter();
            each.map(|(number, released)| (*number, which(released)))
                .collect()
        };
        let seen = Seen {
            beyond_room: (no_room, no_room_either),
            arrivals: of(|released| released.arrivals),
            skipped: of(|released| released.skipped),
            failed: performer.failures.count(),
            failure: performer.failures.first(),
        };
        Ok(Reply {
            value: Some(seen),
            series: vec![jobs, gaps],
        })
    }
}

/// Architecture `tao`: a thread has a connection of its own to whom it calls, and a lane shares nothing.
fn orb(plan: &ComponentPlan) -> Result<Orb, String> {
    let lane = |(priority, threads): &(u8, u32)| {
        Ok(ThreadpoolLane {
            lane_priority: corba(*priority)?,
            static_threads: *threads,
            order: match plan.levels {
                Some(levels) if levels.lowest == *priority => RequestOrder::EarliestDeadline,
                _ => RequestOrder::Fifo,
            },
            ..ThreadpoolLane::default()
        })
    };
    let lanes = plan.lanes.iter().map(lane);
    // By priority, a call that inherits the deadline of a job elsewhere is served however late it is.
    let deadlines = match plan.levels {
        Some(_) => Deadlines::Enforce,
        None => Deadlines::Count,
    };
    let builder = match plan.levels {
        Some(_) => Orb::builder().outbound_transform(OfJob),
        None => Orb::builder(),
    };
    builder
        .strategies(Strategies::TAO)
        .deadlines(deadlines)
        .lanes(lanes.collect::<Result<Vec<_>, String>>()?)
        // Who waits in an overloaded system waits until that is given up.
        .round_trip_timeout(None)
        .listen("iiop://127.0.0.1:0")
        .build()
        .map_err(|error| error.to_string())
}

fn activated(poa: &Poa, servant: Servant) -> Result<Behaviour, String> {
    poa.activate(servant).map_err(|error| error.to_string())
}

fn subscribe(
    orb: &Orb,
    plan: &ComponentPlan,
    consumers: &BTreeMap<u32, PushConsumer>,
    peers: &Peers,
) -> Result<Vec<ProxyPushSupplier>, String> {
    let mut proxies = Vec::new();
    for wanted in &peers.subscriptions {
        let Some(consumer) = consumers.get(&wanted.behaviour) else {
            continue;
        };
        let ours = plan.behaviours.iter();
        let mut ours = ours.filter(|behaviour| behaviour.number == wanted.behaviour);
        let priority = ours.next().and_then(|behaviour| behaviour.priority);
        let priority = priority.ok_or("a consumer of events has no priority")?;
        let reference = peers.channels.get(wanted.channel);
        let reference = reference.ok_or("there is no such channel")?;
        let channel = rtec::channel(orb, reference, priority)?;
        proxies.push(rtec::subscribe(
            &channel,
            consumer,
            wanted.source,
            priority,
        )?);
    }
    Ok(proxies)
}

/// Does something on a thread of its own, which may take any priority.
fn joined<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let thread = rtorb_os::thread::spawn(name, &ThreadConfig::default(), work)
        .map_err(|refused| refused.to_string())?;
    let ended = thread.join().ok().flatten();
    ended.ok_or_else(|| format!("the thread {name} panicked"))?
}
