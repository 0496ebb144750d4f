//! The process that is a component: its lanes and objects, the threads of its roots, and what it answers of a run.
//!
//! It is asked, a line each:
//!
//! ```text
//! connect {"objects":{"3":"IOR:..."},"channels":[],...}   finds whom it calls, subscribes to events
//! connected
//! warm                                                    opens every way that a thread of it may take
//! warmed
//! start 1000 2000 3000                                    from when on jobs arrive, until when, and when all is given up
//! started
//! finish                                                  what was seen, as a line of JSON and records after it
//! {"jobs":1,...}
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rtorb::rt::{Policy, PriorityModel, RequestOrder, ThreadpoolLane};
use rtorb::thread::ThreadConfig;
use rtorb::{Deadlines, Orb, Poa, PoaPolicies, Strategies};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::ProxyPushSupplier;
use rtorb_services::stubs::rtec_event::rtec_event_comm::PushConsumer;
use serde::{Deserialize, Serialize};

use super::plan::{Begins, ComponentPlan, Subscription};
use super::records::Kept;
use crate::contestants::event_channel::rtec;
use crate::contestants::rates::answer_lines;
use crate::contestants::real_time::corba;
use roots::{Roots, Times};
use servant::{Performer, Servant};
use ways::{Failures, Way};
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
    /// The reference of each channel.
    pub(crate) channels: Vec<String>,
    /// Who gets which events.
    pub(crate) subscriptions: Vec<Subscription>,
}

/// What a component has seen, without its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// How many jobs follow.
    pub(crate) jobs: usize,
    /// How many gaps follow these.
    pub(crate) gaps: usize,
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
    /// By which its own lanes are warmed.
    gatherer: Option<Behaviour>,
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
            gatherer: None,
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
    pub(crate) fn run(mut self, ready: impl FnOnce(&str)) -> Result<(), String> {
        let orb = self.orb.clone();
        let objects = serde_json::to_string(&self.objects).map_err(|error| error.to_string())?;
        let questions = move || {
            // An error means that the laboratory is gone, and then it is time to end too.
            let _ = answer_lines(
                BufReader::new(io::stdin()),
                io::stdout(),
                |question, output| self.answer(question, output),
            );
            std::process::exit(0);
        };
        rtorb_os::thread::spawn("questions", &ThreadConfig::default(), questions)
            .map_err(|refused| refused.to_string())?;
        ready(&objects);
        orb.run().map_err(|error| error.to_string())
    }

    fn activate(&mut self) -> Result<(), String> {
        let plan = &self.performer.plan;
        let Some(lane) = plan.lanes.first() else {
            return Ok(());
        };
        if plan.levels.is_some() {
            return self.activate_by_deadline(lane.0);
        }
        let propagated = self.poa("propagated", PriorityModel::ClientPropagated, lane.0)?;
        self.gatherer = Some(
            propagated
                .activate(Servant::gathering(&self.performer))
                .map_err(|error| error.to_string())?,
        );
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
    fn activate_by_deadline(&mut self, lane: u8) -> Result<(), String> {
        let declared = self.poa("by deadline", PriorityModel::ServerDeclared, lane)?;
        let activate = |servant| {
            let object: Result<Behaviour, _> = declared.activate(servant);
            object.map_err(|error| error.to_string())
        };
        self.gatherer = Some(activate(Servant::gathering(&self.performer))?);
        for (index, behaviour) in self.performer.plan.behaviours.iter().enumerate() {
            let object = activate(Servant::of(&self.performer, index))?;
            if let Begins::Periodic { .. } | Begins::Sporadic { .. } = behaviour.begins {
                self.released.insert(behaviour.number, object);
            } else {
                let reference = self.orb.object_to_string(object.as_object());
                self.objects.insert(behaviour.number, reference);
            }
        }
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

    fn answer(&mut self, question: &str, output: &mut impl Write) -> Result<(), String> {
        let (word, rest) = question.split_once(' ').unwrap_or((question, ""));
        let written = match word {
            "connect" => {
                let peers = serde_json::from_str(rest).map_err(|error| error.to_string())?;
                self.connect(&peers)?;
                writeln!(output, "connected")
            }
            "warm" => {
                self.warm()?;
                writeln!(output, "warmed")
            }
            "start" => {
                let times: Times = rest.parse()?;
                self.performer
                    .work
                    .give_up_ns
                    .store(times.give_up_ns, Ordering::Relaxed);
                self.roots.start(times)?;
                writeln!(output, "started")
            }
            "finish" => self.finish()?.write(output),
            _ => return Err(format!("not understood: {question:?}")),
        };
        written.map_err(|error| error.to_string())
    }

    /// Finds whom it calls. The calling thread keeps its scheduling: what channels are asked takes that of the behaviour.
    fn connect(&mut self, peers: &Peers) -> Result<(), String> {
        let (orb, performer) = (self.orb.clone(), Arc::clone(&self.performer));
        let (consumers, peers) = (self.consumers.clone(), peers.clone());
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
        for lane in &self.performer.plan.lanes {
            let gatherer = self.gatherer.as_ref().ok_or("there is no object")?;
            in_all += lane.1;
            gathering::gather((&self.orb, &self.performer), gatherer, *lane, in_all)?;
        }
        self.roots = Roots::spawn(&self.orb, &self.performer, &self.released)?;
        match self.performer.failures.first() {
            None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    fn finish(&mut self) -> Result<Answer, String> {
        let released = self.roots.join()?;
        let performer = &self.performer;
        let mut octets = Vec::new();
        performer.jobs.write(&mut octets);
        performer.work.gaps.write(&mut octets);
        let (jobs, no_room) = performer.jobs.counts();
        let (gaps, no_room_either) = performer.work.gaps.counts();
        let of = |which: fn(&roots::Released) -> u64| {
            let each = released.iter();
            each.map(|(number, released)| (*number, which(released)))
                .collect()
        };
        let seen = Seen {
            // What came while it was written is not in the octets: they say how many there are.
            jobs,
            gaps,
            beyond_room: (no_room, no_room_either),
            arrivals: of(|released| released.arrivals),
            skipped: of(|released| released.skipped),
            failed: performer.failures.count(),
            failure: performer.failures.first(),
        };
        let expected = jobs * 5 * 8 + gaps * 3 * 8;
        if octets.len() == expected {
            Ok(Answer { seen, octets })
        } else {
            Err("it was still at work when it was asked for what it had seen".to_owned())
        }
    }
}

/// A line and the octets after it.
struct Answer {
    seen: Seen,
    octets: Vec<u8>,
}

impl Answer {
    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let line = serde_json::to_string(&self.seen)?;
        writeln!(output, "{line}")?;
        output.write_all(&self.octets)
    }
}

/// Architecture `tao`: a thread has a connection of its own to whom it calls, and a lane shares nothing.
fn orb(plan: &ComponentPlan) -> Result<Orb, String> {
    let lane = |(priority, threads): &(u8, u32)| {
        Ok(ThreadpoolLane {
            lane_priority: corba(*priority)?,
            static_threads: *threads,
            order: match plan.levels {
                Some(_) => RequestOrder::EarliestDeadline,
                None => RequestOrder::Fifo,
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
    Orb::builder()
        .strategies(Strategies::TAO)
        .deadlines(deadlines)
        .lanes(lanes.collect::<Result<Vec<_>, String>>()?)
        // Who waits in an overloaded system waits until that is given up.
        .round_trip_timeout(None)
        .listen("iiop://127.0.0.1:0")
        .build()
        .map_err(|error| error.to_string())
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
