//! Jobs by deadline that wait for another CPU: no simulated job exceeds its bound.

use super::{behaviour, checked};
use crate::simulator::distributed::Chances;

/// A root of the CPU with a lane: its own code, of which the first `locked` are under a mutex with a ceiling; a call that the other CPU
/// serves for `served`; and then code that is under the mutex as a whole. All times are in us, and 0 leaves a part out.
#[derive(Clone, Copy, Debug)]
struct Root {
    period: u64,
    deadline: u64,
    own: u64,
    locked: u64,
    served: u64,
    then: u64,
}

/// A system of a CPU by deadline, "0", and one with priorities, "1", with roots that only execute there.
#[derive(Clone, Debug)]
struct Set {
    levels: usize,
    roots: Vec<Root>,
    /// The period and the execution of each.
    others: Vec<(u64, u64)>,
}

impl Set {
    fn draw(chances: &mut Chances) -> Self {
        let root = |chances: &mut Chances| {
            let period = 30 + chances.next() % 100;
            Root {
                period,
                deadline: period * (40 + chances.next() % 61) / 100,
                own: 2 + chances.next() % 8,
                locked: [0, 2][chances.below(2)],
                served: [0, 1 + chances.next() % 8][chances.below(2)],
                then: [0, 2 + chances.next() % 4][chances.below(2)],
            }
        };
        let count = 2 + chances.below(3);
        let other = |chances: &mut Chances| (15 + chances.next() % 80, 1 + chances.next() % 6);
        let others = chances.below(3);
        let mut roots: Vec<Root> = (0..count).map(|_| root(chances)).collect();
        // Otherwise a lane cannot have the ceiling.
        if let Some(urgent) = roots.iter_mut().min_by_key(|root| root.deadline) {
            urgent.locked = 2;
        }
        Self {
            levels: 1 + chances.below(4),
            roots,
            others: (0..others).map(|_| other(chances)).collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "name = \"two\"\n[[node]]\nname = \"n\"\ncpus = 2\nscheduling = [\"edf\", \"fixed-priority\"]\nlevels = {}\n[[component]]\nname = \"a\"\n\
             [[component.resource]]\nname = \"log\"\nmutex = \"ceiling\"\n",
            self.levels
        );
        for (index, root) in self.roots.iter().enumerate() {
            let mut calls = Vec::new();
            if root.served > 0 {
                calls.push(format!("{{ to = \"b.serve{index}\" }}"));
            }
            if root.then > 0 {
                calls.push(format!("{{ to = \"a.then{index}\" }}"));
            }
            text += &format!(
                "[[component.behaviour]]\nname = \"root{index}\"\nperiod = \"{}us\"\ndeadline = \"{}us\"\nexecution = \"{}us\"\ncalls = [{}]\n",
                root.period,
                root.deadline,
                root.own,
                calls.join(", ")
            );
            if root.locked > 0 {
                text += &format!(
                    "sections = [{{ resource = \"log\", length = \"{}us\" }}]\n",
                    root.locked
                );
            }
            if root.then > 0 {
                text += &format!(
                    "[[component.behaviour]]\nname = \"then{index}\"\nexecution = \"{0}us\"\nsections = [{{ resource = \"log\", length = \"{0}us\" }}]\n",
                    root.then
                );
            }
        }
        text += "[[component]]\nname = \"b\"\ncpu = 1\n";
        for (index, (period, own)) in self.others.iter().enumerate() {
            text += &format!(
                "[[component.behaviour]]\nname = \"other{index}\"\nperiod = \"{period}us\"\nexecution = \"{own}us\"\n"
            );
        }
        for (index, root) in self.roots.iter().enumerate() {
            if root.served > 0 {
                text += &format!(
                    "[[component.behaviour]]\nname = \"serve{index}\"\nexecution = \"{}us\"\n",
                    root.served
                );
            }
        }
        text
    }
}

/// A job on a level, or on its way there.
#[derive(Clone, Copy, Debug)]
struct Job {
    root: usize,
    arrival: u64,
    /// What is left of its parts: its own code, what the other CPU executes, its code after that.
    left: [u64; 3],
}

impl Job {
    fn part(&self) -> Option<usize> {
        self.left.iter().position(|left| *left > 0)
    }

    /// True if it holds the mutex: it has begun a section and not ended it.
    fn locks(&self, set: &Set) -> bool {
        let root = set.roots[self.root];
        match self.part() {
            Some(0) => self.left[0] < root.own && root.own - self.left[0] < root.locked,
            Some(2) => self.left[2] < root.then,
            _ => false,
        }
    }

    fn due(&self, set: &Set) -> u64 {
        self.arrival + set.roots[self.root].deadline
    }
}

/// Both CPUs, simulated us by us.
struct Run<'a> {
    set: &'a Set,
    /// The priorities of the calls of each root, and of each other root.
    priorities: (&'a [i16], &'a [i16]),
    waiting: Vec<Job>,
    levels: Vec<Job>,
    /// The calls that the other CPU serves: the root and the arrival of the job.
    called: Vec<(usize, u64)>,
    /// The jobs of the other roots: which, when, and how much is left.
    elsewhere: Vec<(usize, u64, u64)>,
    longest: Longest,
}

/// The longest response of each root of the lane, of each call that one makes, and of each other root.
struct Longest {
    roots: Vec<u64>,
    calls: Vec<u64>,
    others: Vec<u64>,
}

impl<'a> Run<'a> {
    fn of(set: &'a Set, priorities: (&'a [i16], &'a [i16])) -> Self {
        Self {
            set,
            priorities,
            waiting: Vec::new(),
            levels: Vec::new(),
            called: Vec::new(),
            elsewhere: Vec::new(),
            longest: Longest {
                roots: vec![0; set.roots.len()],
                calls: vec![0; set.roots.len()],
                others: vec![0; set.others.len()],
            },
        }
    }

    fn run(mut self, offsets: &[u64], horizon: u64) -> Longest {
        for now in 0.. {
            if now < horizon {
                self.arrive(now, offsets);
            } else if self.waiting.is_empty() && self.levels.is_empty() && self.elsewhere.is_empty()
            {
                break;
            }
            self.dispatch();
            // What ends now lets others go on after it.
            let served = self.most_urgent();
            self.execute(now);
            match served {
                Some(Served::Call(at)) => self.serve(at, now),
                Some(Served::Other(at)) => self.execute_elsewhere(at, now),
                None => {}
            }
        }
        self.longest
    }

    fn arrive(&mut self, now: u64, offsets: &[u64]) {
        let arrives = |at: usize, period: u64| {
            now >= offsets[at] && (now - offsets[at]).is_multiple_of(period)
        };
        for (index, root) in self.set.roots.iter().enumerate() {
            if arrives(index, root.period) {
                self.waiting.push(Job {
                    root: index,
                    arrival: now,
                    left: [root.own, root.served, root.then],
                });
            }
        }
        for (index, (period, own)) in self.set.others.iter().enumerate() {
            if arrives(self.set.roots.len() + index, *period) {
                self.elsewhere.push((index, now, *own));
            }
        }
    }

    /// A level is free when all above it are. The next one goes to a job that is due before the uppermost.
    fn dispatch(&mut self) {
        let set = self.set;
        loop {
            while self.levels.last().is_some_and(|job| job.part().is_none()) {
                self.levels.pop();
            }
            let due = |&at: &usize| self.waiting[at].due(set);
            let uppermost = self.levels.last().map(|job| job.due(set));
            let next = (0..self.waiting.len()).min_by_key(due);
            let next = next.filter(|next| uppermost.is_none_or(|uppermost| due(next) < uppermost));
            match next {
                Some(next) if self.levels.len() < set.levels => {
                    self.levels.push(self.waiting.remove(next));
                }
                _ => return,
            }
        }
    }

    /// Executes what the lane's CPU does: a job that holds the mutex with a ceiling, or the uppermost that does not wait.
    fn execute(&mut self, now: u64) {
        let ready = |job: &Job| matches!(job.part(), Some(0 | 2));
        let holder = self.levels.iter().position(|job| job.locks(self.set));
        let Some(at) = holder.or_else(|| self.levels.iter().rposition(ready)) else {
            return;
        };
        let part = self.levels[at].part().expect("it is ready");
        self.levels[at].left[part] -= 1;
        let job = self.levels[at];
        match job.part() {
            None => self.end(job, now),
            Some(1) if part == 0 => self.called.push((job.root, job.arrival)),
            _ => {}
        }
    }

    fn end(&mut self, job: Job, now: u64) {
        let longest = &mut self.longest.roots[job.root];
        *longest = (*longest).max(now + 1 - job.arrival);
    }

    fn serve(&mut self, at: usize, now: u64) {
        let (root, arrival) = self.called[at];
        let its = |job: &&mut Job| (job.root, job.arrival) == (root, arrival);
        let job = self.levels.iter_mut().find(its).expect("it waits");
        job.left[1] -= 1;
        let job = *job;
        if job.left[1] == 0 {
            self.called.remove(at);
            let longest = &mut self.longest.calls[root];
            *longest = (*longest).max(now + 1 - arrival);
            if job.part().is_none() {
                self.end(job, now);
            }
        }
    }

    fn execute_elsewhere(&mut self, at: usize, now: u64) {
        let (index, arrival, left) = &mut self.elsewhere[at];
        *left -= 1;
        if *left == 0 {
            let longest = &mut self.longest.others[*index];
            *longest = (*longest).max(now + 1 - *arrival);
            self.elsewhere.remove(at);
        }
    }

    /// Returns what the CPU with priorities executes: the most urgent, and of equals the calls first.
    fn most_urgent(&self) -> Option<Served> {
        let (of_roots, of_others) = self.priorities;
        let calls = self.called.iter().enumerate();
        let calls = calls.map(|(at, (root, _))| (of_roots[*root], 1, Served::Call(at)));
        let others = self.elsewhere.iter().enumerate();
        let others = others.map(|(at, (index, ..))| (of_others[*index], 0, Served::Other(at)));
        let first = calls
            .chain(others)
            .max_by_key(|(priority, kind, _)| (*priority, *kind));
        first.map(|(.., served)| served)
    }
}

enum Served {
    Call(usize),
    Other(usize),
}

#[test]
fn no_job_that_waits_for_another_cpu_exceeds_a_bound() {
    let mut chances = Chances(41);
    let (mut compared, mut beyond_execution) = (0, 0);
    for _ in 0..250 {
        let set = Set::draw(&mut chances);
        let answer = checked(&set.text());
        if answer.loading.components[0].lacks_lane.is_some() {
            continue;
        }
        let bound_us = |name: String| {
            let bound_ns = behaviour(&answer, &name).bound_ns;
            bound_ns.map_or(u64::MAX, |ns| ns / 1_000)
        };
        let priorities = |component: usize, name: &str, count: usize| -> Vec<i16> {
            let of = &answer.loading.components[component].priorities;
            let of = |index| {
                let mut all = of.iter();
                let found = all.find(|(known, _)| *known == format!("{name}{index}"));
                found.map_or(0, |(_, priority)| *priority)
            };
            (0..count).map(of).collect()
        };
        let of_roots = priorities(0, "a.root", set.roots.len());
        let of_others = priorities(1, "b.other", set.others.len());
        for run in 0..4 {
            let periods = set.roots.iter().map(|root| root.period);
            let periods = periods.chain(set.others.iter().map(|other| other.0));
            let offsets: Vec<u64> = periods
                .map(|period| [0, chances.next() % period][usize::from(run > 0)])
                .collect();
            let simulated = Run::of(&set, (&of_roots, &of_others));
            let Longest {
                roots,
                calls,
                others,
            } = simulated.run(&offsets, 1_500);
            for (index, root) in set.roots.iter().enumerate() {
                let end_of = if root.then > 0 { "then" } else { "root" };
                for (name, reached) in [
                    (format!("a.root{index}"), roots[index]),
                    (format!("a.{end_of}{index}"), roots[index]),
                    (format!("b.serve{index}"), calls[index]),
                ] {
                    if name.starts_with("b.") && root.served == 0 {
                        continue;
                    }
                    let bound = bound_us(name.clone());
                    assert!(
                        reached <= bound,
                        "{name}: {reached} > {bound}: {set:?} {offsets:?}"
                    );
                    compared += u32::from(bound < u64::MAX);
                }
                beyond_execution += u32::from(roots[index] > root.own + root.served + root.then);
            }
            for (index, reached) in others.iter().enumerate() {
                let bound = bound_us(format!("b.other{index}"));
                assert!(
                    *reached <= bound,
                    "other{index}: {reached} > {bound}: {set:?}"
                );
            }
        }
    }
    assert!(compared > 2_000, "{compared} responses");
    assert!(beyond_execution > 500, "{beyond_execution} of {compared}");
}

/// `quick` waits for 5 ms of another CPU, and `slow` may not begin meanwhile.
const WAITS: &str = r#"
name = "waits"
[[node]]
name = "n"
cpus = 2
scheduling = ["edf", "fixed-priority"]
[[component]]
name = "a"
[[component.behaviour]]
name = "quick"
period = "20ms"
execution = "1ms"
calls = [{ to = "b.serve" }, { to = "a.then" }]
[[component.behaviour]]
name = "then"
execution = "1ms"
[[component.behaviour]]
name = "slow"
period = "40ms"
execution = "3ms"
[[component]]
name = "b"
cpu = 1
[[component.behaviour]]
name = "serve"
execution = "5ms"
"#;

#[test]
fn the_time_of_a_call_counts_as_execution() {
    let answer = checked(WAITS);
    let bound_ms = |name: &str| behaviour(&answer, name).bound_ns.map(|ns| ns / 1_000_000);
    // 1 ms, 5 ms elsewhere, and 1 ms; `slow` waits for all of it.
    assert_eq!(bound_ms("b.serve"), Some(6));
    assert_eq!(bound_ms("a.then"), Some(7));
    assert_eq!(bound_ms("a.slow"), Some(3 + 7));
    let then = behaviour(&answer, "a.then");
    let waits = then
        .shares
        .iter()
        .find(|share| share.what == "waiting for b.serve");
    assert_eq!(waits.map(|share| share.ns), Some(5_000_000));
    assert_eq!(then.sensitivity, None);
    // One job of each deadline, on its level.
    let lane = &answer.loading.components[0];
    assert_eq!((&lane.lacks_lane, lane.lanes[0].threads), (&None, 2));
    assert_eq!(answer.loading.components[1].lanes.len(), 1);
}

#[test]
fn a_call_that_leads_back_has_no_lane() {
    let back = "name = \"serve\"\ncalls = [{ to = \"a.then\" }]";
    let answer = checked(&WAITS.replace("name = \"serve\"", back));
    let words = answer.loading.components[0].lacks_lane.clone();
    let words = words.unwrap_or_default();
    assert!(
        words.starts_with("a.quick waits for another CPU, which calls a.then back"),
        "{words}"
    );
}
