//! The expansion of a root to its tree of segments.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::composition::{Activation, Part, Segment, Wait};
use super::super::report::Layer;
use super::super::system::{Call, CallWay, Placement, System};
use super::costs::Costs;
use super::messages::Transfer;
use super::segments::{add, part};
use super::{ComposeError, PATH_MAX, SEGMENTS_MAX};
use crate::holistic::SchedulingPolicy;

/// The segments of all roots so far.
pub(super) struct Expansion<'a, 'c> {
    system: &'a System,
    places: BTreeMap<Placement, usize>,
    costs: &'c mut Costs<'a>,
    /// For each behaviour, whether it and all its callees run on one CPU and wait for each other: then a call of it is mere
    /// execution.
    stays: Vec<Option<bool>>,
    segments: Vec<Segment>,
    activations: Vec<Activation>,
    /// The number of behaviours and segments of all roots.
    followed: usize,
    root: usize,
    /// The paths of this root with their ends: a repeated call may end in the same segment.
    ended: BTreeSet<(Vec<usize>, usize)>,
    /// The behaviours that messages release after a segment, in the order of the calls.
    waiting: VecDeque<PendingBehaviour>,
}

/// The execution of a thread: the path of two-way calls up to the running behaviour.
struct Branch {
    /// The behaviours from the root to the running one.
    path: Vec<usize>,
    /// The segment in which it executes.
    at: usize,
    /// The behaviour whose priority it has.
    priority_of: usize,
    /// The number of executions.
    times: u64,
}

/// A behaviour that a message releases, at a priority of its own.
struct PendingBehaviour {
    path: Vec<usize>,
    after: usize,
    delay: Vec<Part>,
    /// The reception of the message.
    received: Vec<Part>,
}

impl<'a, 'c> Expansion<'a, 'c> {
    pub(super) fn new(system: &'a System, places: &[Placement], costs: &'c mut Costs<'a>) -> Self {
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

    /// Returns the segments and the activations.
    pub(super) fn done(self) -> (Vec<Segment>, Vec<Activation>) {
        (self.segments, self.activations)
    }

    /// Expands all that a root releases.
    pub(super) fn expand(&mut self, root: usize) -> Result<(), ComposeError> {
        self.root = root;
        self.ended.clear();
        let place = self.system.placement(root);
        let at = self.segment(root, root, place, None, Vec::new())?;
        let clock_ns = self.costs.release_jitter(place.node);
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
            let place = self.system.placement(behaviour);
            let at = self.segment(behaviour, behaviour, place, Some(later.after), later.delay)?;
            self.segments[at].begins_early = true;
            for received in later.received {
                add(&mut self.segments[at].execution, received);
            }
            self.follow(later.path, at)?;
        }
        Ok(())
    }

    /// Runs a behaviour with its own priority, from its first segment.
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

    /// Runs the last behaviour of a path: its own code, then its calls in order.
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

    /// Adds a behaviour's own code to its segment.
    fn execute(&mut self, branch: &Branch, behaviour: usize) {
        let described = &self.system.behaviours[behaviour];
        let segment = &mut self.segments[branch.at];
        let code = part(
            Layer::Application,
            &format!("execution of {}", described.name),
            branch.times,
            self.system.urgent_ns(behaviour),
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
            let node = self.system.placement(behaviour).node;
            segment.contended_lock_ns = self.costs.contended_lock(node);
        }
    }

    fn two_way(&mut self, branch: &mut Branch, call: &'a Call) -> Result<(), ComposeError> {
        for called in &call.to {
            let caller = *branch.path.last().unwrap_or(&self.root);
            let is_here = self.system.placement(caller) == self.system.placement(*called);
            // A count is expanded once if the call is mere execution.
            let (rounds, times) = if is_here && self.stays(*called, 0) {
                (1, u64::from(call.count))
            } else {
                (call.count, 1)
            };
            for _ in 0..rounds {
                if is_here {
                    self.call_here(branch, *called, call, times)?;
                } else {
                    self.call_there(branch, *called, call)?;
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
        let node = self.system.placement(called).node;
        let times = branch.times.saturating_mul(times);
        let each_ns = self.costs.call(node, call.payload_bytes);
        add(
            &mut self.segments[branch.at].execution,
            part(Layer::Orb, "two-way calls", times, each_ns),
        );
        self.segments[branch.at].calls_here = true;
        // The client lingers for its reply, and the server for the next request.
        self.linger(branch.at, call, times.saturating_mul(2));
        let mut inner = Branch {
            path: longer(&branch.path, called),
            at: branch.at,
            priority_of: branch.priority_of,
            times,
        };
        self.run(&mut inner)?;
        branch.at = inner.at;
        self.segments[branch.at].calls_here = true;
        Ok(())
    }

    /// A call to another CPU: the caller's segment ends; a segment of the servant at the caller's priority follows, and then
    /// another of the caller.
    fn call_there(
        &mut self,
        branch: &mut Branch,
        called: usize,
        call: &'a Call,
    ) -> Result<(), ComposeError> {
        let caller = *branch.path.last().unwrap_or(&self.root);
        let (here, there) = (self.system.placement(caller), self.system.placement(called));
        let bytes = call.payload_bytes;
        let (sent_ns, received_ns) = self.costs.client_side(here.node, bytes);
        let client = |ns| part(Layer::Orb, "two-way calls, the client's side", 1, ns);
        add(&mut self.segments[branch.at].execution, client(sent_ns));
        self.linger(branch.at, call, 1);

        let mut transfer = Transfer {
            caller,
            called: &self.system.behaviours[called].name,
            line: call.line,
            from: here,
            to: there,
            bytes,
        };
        let delay = self.message(&transfer)?;
        let at = self.segment(called, branch.priority_of, there, Some(branch.at), delay)?;
        let served_ns = self.costs.server_side(there.node, bytes);
        add(
            &mut self.segments[at].execution,
            part(Layer::Orb, "two-way calls, the server's side", 1, served_ns),
        );
        self.linger(at, call, 1);
        let mut inner = Branch {
            path: longer(&branch.path, called),
            at,
            priority_of: branch.priority_of,
            times: 1,
        };
        self.run(&mut inner)?;

        (transfer.from, transfer.to, transfer.bytes) = (there, here, 0);
        let delay = self.message(&transfer)?;
        let by_deadline = self.system.scheduling(here) == SchedulingPolicy::EarliestDeadline;
        let mut meanwhile = self.segments[at..].iter();
        // A call that leads back to this CPU has no lane.
        let keeps_level = by_deadline && meanwhile.all(|one| one.processor != self.places[&here]);
        let (after, delay, waits_for) = if keeps_level {
            let wait = Wait {
                callee: called,
                sent_by: branch.at,
                replied_by: inner.at,
                delay,
            };
            (branch.at, Vec::new(), Some(wait))
        } else {
            (inner.at, delay, None)
        };
        branch.at = self.segment(caller, branch.priority_of, here, Some(after), delay)?;
        self.segments[branch.at].waits_for = waits_for;
        add(&mut self.segments[branch.at].execution, client(received_ns));
        Ok(())
    }

    /// Adds the time that a thread takes before it sleeps: it delays whatever is less urgent, each time.
    fn linger(&mut self, segment: usize, call: &Call, times: u64) {
        let lingering = part(
            Layer::Orb,
            "lingering in shared memory",
            times,
            call.lingering_ns,
        );
        add(&mut self.segments[segment].execution, lingering);
    }

    fn oneway(&mut self, branch: &Branch, call: &Call) -> Result<(), ComposeError> {
        let caller = *branch.path.last().unwrap_or(&self.root);
        let here = self.system.placement(caller);
        for called in &call.to {
            let there = self.system.placement(*called);
            let transfer = Transfer {
                caller,
                called: &self.system.behaviours[*called].name,
                line: call.line,
                from: here,
                to: there,
                bytes: call.payload_bytes,
            };
            for _ in 0..call.count {
                let sent_ns = self.costs.send(here.node, call.payload_bytes);
                add(
                    &mut self.segments[branch.at].execution,
                    part(Layer::Orb, "sending of oneways", 1, sent_ns),
                );
                let delay = self.message(&transfer)?;
                let received_ns = self.costs.server_side(there.node, call.payload_bytes);
                let passed_on = self.passing_on((caller, *called), call);
                self.count()?;
                self.waiting.push_back(PendingBehaviour {
                    path: longer(&branch.path, *called),
                    after: branch.at,
                    delay,
                    received: vec![
                        part(Layer::Orb, "receiving of oneways", 1, received_ns),
                        passed_on,
                    ],
                });
            }
        }
        Ok(())
    }

    /// An event: the push, the channel's work at the supplier's priority, and for each consumer the channel's work and its own at
    /// the consumer's priority.
    fn event(&mut self, branch: &Branch, call: &Call, channel: usize) -> Result<(), ComposeError> {
        let system = self.system;
        let supplier = *branch.path.last().unwrap_or(&self.root);
        let channel = &system.channels[channel];
        let here = system.placement(supplier);
        let middle = Placement {
            node: channel.node,
            cpu: channel.cpu,
        };
        let (consumers, bytes) = (call.to.len() as u64, call.payload_bytes);
        for _ in 0..call.count {
            let push_ns = self.costs.event(here.node, consumers, bytes).push_ns;
            add(
                &mut self.segments[branch.at].execution,
                part(Layer::Orb, "pushing of events", 1, push_ns),
            );
            let push = Transfer {
                caller: supplier,
                called: &channel.name,
                line: call.line,
                from: here,
                to: middle,
                bytes,
            };
            let delay = self.message(&push)?;
            let at = self.segment(supplier, branch.priority_of, middle, Some(branch.at), delay)?;
            self.segments[at].begins_early = true;
            let cost = self.costs.event(middle.node, consumers, bytes);
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
                let there = system.placement(*consumer);
                let sent = self.segment(*consumer, *consumer, middle, Some(at), Vec::new())?;
                self.segments[sent].begins_early = true;
                add(
                    &mut self.segments[sent].execution,
                    part(
                        Layer::Orb,
                        "event channel, for each consumer",
                        1,
                        cost.delivery_ns,
                    ),
                );
                let delay = self.message(&Transfer {
                    called: &system.behaviours[*consumer].name,
                    from: middle,
                    to: there,
                    ..push
                })?;
                let received_ns = self.costs.event(there.node, consumers, bytes).consumer_ns;
                let passed_on = self.passing_on((supplier, *consumer), call);
                self.waiting.push_back(PendingBehaviour {
                    path: longer(&branch.path, *consumer),
                    after: sent,
                    delay,
                    received: vec![
                        part(Layer::Orb, "receiving of events", 1, received_ns),
                        passed_on,
                    ],
                });
            }
        }
        Ok(())
    }

    /// Returns the oneway call by which a lane above the levels passes a message on.
    fn passing_on(&mut self, (caller, called): (usize, usize), call: &Call) -> Part {
        let is_passed_on = self.system.is_passed_on(caller, call.way, called);
        let node = self.system.placement(called).node;
        let each_ns = if is_passed_on {
            let sent_ns = self.costs.send(node, call.payload_bytes);
            sent_ns.saturating_add(self.costs.server_side(node, call.payload_bytes))
        } else {
            0
        };
        part(Layer::Orb, "passing on to the lane with levels", 1, each_ns)
    }

    /// Creates a segment with the kernel's blocking.
    fn segment(
        &mut self,
        behaviour: usize,
        priority_of: usize,
        place: Placement,
        after: Option<usize>,
        delay: Vec<Part>,
    ) -> Result<usize, ComposeError> {
        self.count()?;
        self.costs.uses(place.node);
        let mut blocking = Vec::new();
        let blocking_ns = self.costs.blocking(place.node);
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
            begins_early: false,
            calls_here: false,
            waits_for: None,
            delay,
            jitter: Vec::new(),
            execution: Vec::new(),
            blocking,
            sections: Vec::new(),
            contended_lock_ns: 0,
        });
        Ok(self.segments.len() - 1)
    }

    fn message(&mut self, transfer: &Transfer<'_>) -> Result<Vec<Part>, ComposeError> {
        transfer.delay(self.system, self.costs)
    }

    /// Returns the release jitter that the file gives a root.
    fn own_jitter(&self, behaviour: usize) -> Part {
        let described = &self.system.behaviours[behaviour];
        let what = format!("release jitter of {}", described.name);
        part(Layer::Application, &what, 1, described.jitter_ns)
    }

    fn stays(&mut self, behaviour: usize, nested: usize) -> bool {
        if let Some(known) = self.stays[behaviour] {
            return known;
        }
        // A behaviour that calls itself does not; the expansion detects it.
        self.stays[behaviour] = Some(false);
        let system = self.system;
        let place = system.placement(behaviour);
        let stays = nested < PATH_MAX
            && system.behaviours[behaviour].calls.iter().all(|call| {
                let here = |called: &usize| {
                    system.placement(*called) == place && self.stays(*called, nested + 1)
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
