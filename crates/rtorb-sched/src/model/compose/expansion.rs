//! From a root to its tree of segments.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::checked::Layer;
use super::super::composed::{Activation, Part, Segment};
use super::super::system::{Call, CallWay, System};
use super::costs::Costs;
use super::messages::Trip;
use super::segments::{add, part};
use super::{ComposeError, PATH_MAX, SEGMENTS_MAX};

/// What was made so far, of all roots.
pub(super) struct Expansion<'a, 'c> {
    system: &'a System,
    places: BTreeMap<(usize, u32), usize>,
    costs: &'c mut Costs<'a>,
    /// Of each behaviour, whether it and all that it calls stay on one CPU and wait for each other: then a call of it is execution.
    stays: Vec<Option<bool>>,
    segments: Vec<Segment>,
    activations: Vec<Activation>,
    /// Behaviours and segments of all roots.
    followed: usize,
    root: usize,
    /// The paths of this root, and where they end: a call that is made again may end at the same place.
    ended: BTreeSet<(Vec<usize>, usize)>,
    /// What runs by itself when a segment has ended, in the order of the calls.
    waiting: VecDeque<Later>,
}

/// A thread of a behaviour, with the two-way calls that brought it here.
struct Branch {
    /// From the root to the behaviour that runs.
    path: Vec<usize>,
    /// The segment that it executes in.
    at: usize,
    /// At whose priority.
    priority_of: usize,
    /// How many times.
    times: u64,
}

/// A behaviour that a message begins, at a priority of its own.
struct Later {
    path: Vec<usize>,
    after: usize,
    delay: Vec<Part>,
    /// What receives the message.
    received: Part,
}

impl<'a, 'c> Expansion<'a, 'c> {
    pub(super) fn new(
        system: &'a System,
        places: &[(usize, u32)],
        costs: &'c mut Costs<'a>,
    ) -> Self {
        Self {
            system,
            places: places
                .iter()
                .enumerate()
                .map(|(at, place)| (*place, at))
                .collect(),
            costs,
            stays: vec![None; system.behaviours.len()],
            segments: Vec::new(),
            activations: Vec::new(),
            followed: 0,
            root: 0,
            ended: BTreeSet::new(),
            waiting: VecDeque::new(),
        }
    }

    /// What was made.
    pub(super) fn done(self) -> (Vec<Segment>, Vec<Activation>) {
        (self.segments, self.activations)
    }

    /// All that a root begins.
    pub(super) fn expand(&mut self, root: usize) -> Result<(), ComposeError> {
        self.root = root;
        self.ended.clear();
        let place = self.system.place(root);
        let at = self.segment(root, root, place, None, Vec::new())?;
        let clock_ns = self.costs.release_jitter(place.0);
        let clock = part(
            Layer::OperatingSystem,
            "release jitter of the clock",
            1,
            clock_ns,
        );
        let jitter = self.own_jitter(root);
        add(&mut self.segments[at].jitter, clock);
        add(&mut self.segments[at].jitter, jitter);
        self.follow(vec![root], at)?;
        while let Some(later) = self.waiting.pop_front() {
            let behaviour = *later.path.last().unwrap_or(&root);
            let place = self.system.place(behaviour);
            let at = self.segment(behaviour, behaviour, place, Some(later.after), later.delay)?;
            add(&mut self.segments[at].execution, later.received);
            self.follow(later.path, at)?;
        }
        Ok(())
    }

    /// A behaviour with a priority of its own, from its first segment.
    fn follow(&mut self, path: Vec<usize>, at: usize) -> Result<(), ComposeError> {
        let priority_of = *path.last().unwrap_or(&self.root);
        let mut branch = Branch {
            path,
            at,
            priority_of,
            times: 1,
        };
        self.run(&mut branch)
    }

    /// The last behaviour of a path: its own code, then its calls in order.
    fn run(&mut self, branch: &mut Branch) -> Result<(), ComposeError> {
        self.count()?;
        let system = self.system;
        let behaviour = *branch.path.last().unwrap_or(&self.root);
        let described = &system.behaviours[behaviour];
        if branch.path.len() > PATH_MAX {
            let root = &system.behaviours[self.root];
            return Err(ComposeError::TooDeep {
                line: root.line,
                root: root.name.clone(),
                behaviour: described.name.clone(),
            });
        }
        self.execute(branch, behaviour);
        for call in &described.calls {
            match call.way {
                CallWay::TwoWay => self.two_way(branch, call)?,
                CallWay::OneWay => self.oneway(branch, call)?,
                CallWay::Event { channel } => self.event(branch, call, channel)?,
            }
        }
        let ends = (branch.path.clone(), branch.at);
        if self.ended.insert(ends) {
            self.activations.push(Activation {
                behaviour,
                root: self.root,
                path: branch.path.clone(),
                done: branch.at,
            });
        }
        Ok(())
    }

    /// A behaviour's own code, in the segment that it is in.
    fn execute(&mut self, branch: &Branch, behaviour: usize) {
        let described = &self.system.behaviours[behaviour];
        let segment = &mut self.segments[branch.at];
        let code = part(
            Layer::Application,
            &format!("execution of {}", described.name),
            branch.times,
            described.execution.worst_ns(),
        );
        let code = Part {
            code_of: Some(behaviour),
            ..code
        };
        add(&mut segment.execution, code);
        for section in &described.sections {
            // A job waits for a resource once, however often it locks it (Sha, Rajkumar & Lehoczky 1990).
            if !segment.sections.contains(&(behaviour, *section)) {
                segment.sections.push((behaviour, *section));
            }
        }
        if !described.sections.is_empty() {
            let (node, _) = self.system.place(behaviour);
            segment.contended_lock_ns = self.costs.contended_lock(node);
        }
    }

    fn two_way(&mut self, branch: &mut Branch, call: &'a Call) -> Result<(), ComposeError> {
        for called in &call.to {
            let caller = *branch.path.last().unwrap_or(&self.root);
            let is_here = self.system.place(caller) == self.system.place(*called);
            // A count is followed once where nothing but execution comes of it.
            let (rounds, times) = match is_here && self.stays(*called, 0) {
                true => (1, u64::from(call.count)),
                false => (call.count, 1),
            };
            for _ in 0..rounds {
                match is_here {
                    true => self.call_here(branch, *called, call, times)?,
                    false => self.call_there(branch, *called, call)?,
                }
            }
        }
        Ok(())
    }

    /// A call on one CPU: execution of the caller, at its priority.
    fn call_here(
        &mut self,
        branch: &mut Branch,
        called: usize,
        call: &Call,
        times: u64,
    ) -> Result<(), ComposeError> {
        let (node, _) = self.system.place(called);
        let times = branch.times.saturating_mul(times);
        let each_ns = self.costs.call(node, call.payload_octets);
        add(
            &mut self.segments[branch.at].execution,
            part(Layer::Orb, "two-way calls", times, each_ns),
        );
        let mut inner = Branch {
            path: longer(&branch.path, called),
            at: branch.at,
            priority_of: branch.priority_of,
            times,
        };
        self.run(&mut inner)?;
        branch.at = inner.at;
        Ok(())
    }

    /// A call to another CPU: the caller's segment ends, one of the servant's at the caller's priority follows, and then one of the
    /// caller's again.
    fn call_there(
        &mut self,
        branch: &mut Branch,
        called: usize,
        call: &'a Call,
    ) -> Result<(), ComposeError> {
        let caller = *branch.path.last().unwrap_or(&self.root);
        let (here, there) = (self.system.place(caller), self.system.place(called));
        let octets = call.payload_octets;
        let (sent_ns, received_ns) = self.costs.client_side(here.0, octets);
        let client = |ns| part(Layer::Orb, "two-way calls, the client's side", 1, ns);
        add(&mut self.segments[branch.at].execution, client(sent_ns));

        let mut trip = Trip {
            caller,
            called: &self.system.behaviours[called].name,
            line: call.line,
            from: here,
            to: there,
            octets,
        };
        let delay = self.message(&trip)?;
        let at = self.segment(called, branch.priority_of, there, Some(branch.at), delay)?;
        let served_ns = self.costs.server_side(there.0, octets);
        add(
            &mut self.segments[at].execution,
            part(Layer::Orb, "two-way calls, the server's side", 1, served_ns),
        );
        let mut inner = Branch {
            path: longer(&branch.path, called),
            at,
            priority_of: branch.priority_of,
            times: 1,
        };
        self.run(&mut inner)?;

        (trip.from, trip.to, trip.octets) = (there, here, 0);
        let delay = self.message(&trip)?;
        branch.at = self.segment(caller, branch.priority_of, here, Some(inner.at), delay)?;
        add(&mut self.segments[branch.at].execution, client(received_ns));
        Ok(())
    }

    fn oneway(&mut self, branch: &Branch, call: &Call) -> Result<(), ComposeError> {
        let caller = *branch.path.last().unwrap_or(&self.root);
        let here = self.system.place(caller);
        for called in &call.to {
            let there = self.system.place(*called);
            let trip = Trip {
                caller,
                called: &self.system.behaviours[*called].name,
                line: call.line,
                from: here,
                to: there,
                octets: call.payload_octets,
            };
            for _ in 0..call.count {
                let sent_ns = self.costs.send(here.0, call.payload_octets);
                add(
                    &mut self.segments[branch.at].execution,
                    part(Layer::Orb, "sending of oneways", 1, sent_ns),
                );
                let delay = self.message(&trip)?;
                let received_ns = self.costs.server_side(there.0, call.payload_octets);
                self.count()?;
                self.waiting.push_back(Later {
                    path: longer(&branch.path, *called),
                    after: branch.at,
                    delay,
                    received: part(Layer::Orb, "receiving of oneways", 1, received_ns),
                });
            }
        }
        Ok(())
    }

    /// The push, the channel's work at the supplier's priority, and for each consumer the channel's work and its own at the consumer's.
    fn event(&mut self, branch: &Branch, call: &Call, channel: usize) -> Result<(), ComposeError> {
        let system = self.system;
        let supplier = *branch.path.last().unwrap_or(&self.root);
        let channel = &system.channels[channel];
        let (here, middle) = (system.place(supplier), (channel.node, channel.cpu));
        let (consumers, octets) = (call.to.len() as u64, call.payload_octets);
        for _ in 0..call.count {
            let push_ns = self.costs.event(here.0, consumers, octets).push_ns;
            add(
                &mut self.segments[branch.at].execution,
                part(Layer::Orb, "pushing of events", 1, push_ns),
            );
            let push = Trip {
                caller: supplier,
                called: &channel.name,
                line: call.line,
                from: here,
                to: middle,
                octets,
            };
            let delay = self.message(&push)?;
            let at = self.segment(supplier, branch.priority_of, middle, Some(branch.at), delay)?;
            let cost = self.costs.event(middle.0, consumers, octets);
            add(
                &mut self.segments[at].execution,
                part(
                    Layer::Orb,
                    "event channel, for each event",
                    1,
                    cost.channel_ns,
                ),
            );
            for consumer in &call.to {
                let there = system.place(*consumer);
                let sent = self.segment(*consumer, *consumer, middle, Some(at), Vec::new())?;
                add(
                    &mut self.segments[sent].execution,
                    part(
                        Layer::Orb,
                        "event channel, for each consumer",
                        1,
                        cost.delivery_ns,
                    ),
                );
                let delay = self.message(&Trip {
                    called: &system.behaviours[*consumer].name,
                    from: middle,
                    to: there,
                    ..push
                })?;
                let received_ns = self.costs.event(there.0, consumers, octets).consumer_ns;
                self.waiting.push_back(Later {
                    path: longer(&branch.path, *consumer),
                    after: sent,
                    delay,
                    received: part(Layer::Orb, "receiving of events", 1, received_ns),
                });
            }
        }
        Ok(())
    }

    /// A new segment with what the kernel may keep from it.
    fn segment(
        &mut self,
        behaviour: usize,
        priority_of: usize,
        place: (usize, u32),
        after: Option<usize>,
        delay: Vec<Part>,
    ) -> Result<usize, ComposeError> {
        self.count()?;
        self.costs.uses(place.0);
        let mut blocking = Vec::new();
        let blocking_ns = self.costs.blocking(place.0);
        let sections = "kernel sections that cannot be preempted";
        add(
            &mut blocking,
            part(Layer::OperatingSystem, sections, 1, blocking_ns),
        );
        self.segments.push(Segment {
            behaviour,
            root: self.root,
            priority_of,
            processor: self.places[&place],
            after,
            delay,
            jitter: Vec::new(),
            execution: Vec::new(),
            blocking,
            sections: Vec::new(),
            contended_lock_ns: 0,
        });
        Ok(self.segments.len() - 1)
    }

    fn message(&mut self, trip: &Trip<'_>) -> Result<Vec<Part>, ComposeError> {
        trip.delay(self.system, self.costs)
    }

    /// How much later than its arrival the file says that a root may be released.
    fn own_jitter(&self, behaviour: usize) -> Part {
        let described = &self.system.behaviours[behaviour];
        let what = format!("release jitter of {}", described.name);
        part(Layer::Application, &what, 1, described.jitter_ns)
    }

    fn stays(&mut self, behaviour: usize, nested: usize) -> bool {
        if let Some(known) = self.stays[behaviour] {
            return known;
        }
        // What calls itself does not: it is found out where it is followed.
        self.stays[behaviour] = Some(false);
        let system = self.system;
        let place = system.place(behaviour);
        let stays = nested < PATH_MAX
            && system.behaviours[behaviour].calls.iter().all(|call| {
                let here = |called: &usize| {
                    system.place(*called) == place && self.stays(*called, nested + 1)
                };
                call.way == CallWay::TwoWay && call.to.iter().all(here)
            });
        self.stays[behaviour] = Some(stays);
        stays
    }

    fn count(&mut self) -> Result<(), ComposeError> {
        self.followed += 1;
        if self.followed <= SEGMENTS_MAX {
            return Ok(());
        }
        let root = &self.system.behaviours[self.root];
        Err(ComposeError::TooMany {
            line: root.line,
            root: root.name.clone(),
        })
    }
}

fn longer(path: &[usize], behaviour: usize) -> Vec<usize> {
    let mut path = path.to_vec();
    path.push(behaviour);
    path
}
