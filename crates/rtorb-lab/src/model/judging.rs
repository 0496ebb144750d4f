//! From what was seen to what it means: each job beside its bound, and each that is longer beside what took the CPU meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use rtorb_recording::activity::Activity;
use rtorb_results::judgement::{
    CpuObserved, Interruption, Judgement, Observed, ObservedStanding, Outlier,
};
use rtorb_sched::model::{CallWay, CheckReport, SchedulingPolicy, Standing, System};

use super::conductor::{Evidence, processor_name};
use super::latencies;
use super::places::{self, Places};
use super::plan::Plan;
use super::records::{Job, JobGap};
use super::timeline::{CROWD_NS, CROWD_TIMES, Caused, RecordedCpu, Taken, Timeline};

/// What was run, and where.
#[derive(Clone, Copy)]
pub(super) struct Ran<'a> {
    pub(super) system: &'a System,
    pub(super) plan: &'a Plan,
    pub(super) checked: &'a CheckReport,
    pub(super) places: &'a Places,
}

/// Judges a run. What took a CPU for `from_ns` and longer is an interruption.
pub(super) fn judge(ran: Ran<'_>, evidence: &Evidence, from_ns: u64) -> Judgement {
    let timelines = timelines(ran, evidence, from_ns);
    let judge = Judge {
        ran,
        evidence,
        ways: ways(ran),
        feeding: feeding(ran),
        timelines: &timelines,
        jobs: by_place(ran, evidence),
    };
    let behaviours = judge.behaviours();
    let chains = judge.chains();
    let cause_effect_chains = latencies::observed(ran, &judge.jobs, &behaviours);
    let standing = behaviours.iter().chain(&chains).map(|one| one.standing);
    let latencies = cause_effect_chains.iter();
    let latencies = latencies.flat_map(|one| [one.data_age.standing, one.reaction_time.standing]);
    // A run may be too short for a latency.
    let standing = standing.chain(latencies.filter(|one| *one != ObservedStanding::Unseen));
    Judgement {
        system: ran.system.name.clone(),
        duration_ns: evidence.end_ns - evidence.start_ns,
        promised: ran.checked.standing == Standing::Holds,
        standing: standing.max().unwrap_or_default(),
        rule: rule(from_ns),
        interruption_from_ns: from_ns,
        cpus: cpus(ran, evidence, &timelines),
        behaviours,
        chains,
        cause_effect_chains,
        interruptions: longest(evidence, &timelines),
        causes: Vec::new(),
        next: Vec::new(),
        remarks: evidence.remarks.clone(),
    }
}

fn rule(from_ns: u64) -> String {
    format!(
        "An interruption is a time of at least {} us during which a thread that reads the clock without pause did not run and no other \
         thread did; or in which, by the kernel's record of switches, wake-ups and interrupts, a thread of the system could run and something \
         else had the CPU, or a thread with a real-time priority could and an ordinary one had it; or during which the kernel kept a job from its own code and let the watcher run. Of the first kind, shorter ones \
         count where within {} ms they are together {CROWD_TIMES} times as long. A response above its bound is explained if the interruptions of the CPUs on its way, from the moment at \
         which each of these was last idle before the arrival (at most {} ms before it) until the end, are together at least as long \
         as the excess. A job is quiet if no interruption met it in that time, on these CPUs or on one that sends work to them.",
        from_ns as f64 / 1e3,
        CROWD_NS / 1_000_000,
        BACK_NS / 1_000_000
    )
}

/// What a run's jobs are judged by.
struct Judge<'a> {
    ran: Ran<'a>,
    evidence: &'a Evidence,
    /// Of each place, the CPUs of the host that it depends on.
    ways: Vec<BTreeSet<usize>>,
    /// Of each CPU, those that work comes from, itself too.
    feeding: BTreeMap<usize, BTreeSet<usize>>,
    timelines: &'a BTreeMap<usize, Timeline>,
    /// Of each place.
    jobs: Vec<Vec<Job>>,
}

impl Judge<'_> {
    fn behaviours(&self) -> Vec<Observed> {
        let system = self.ran.system;
        let mut found = Vec::new();
        for (index, behaviour) in system.behaviours.iter().enumerate() {
            let places = self.ran.plan.tree.places.iter().enumerate();
            let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (place, at) in places.filter(|(_, at)| at.behaviour == index) {
                by_root.entry(at.root).or_default().push(place);
            }
            for (root, places) in by_root {
                let root_name = &system.behaviours[root].name;
                let period_ns = self.ran.plan.tree.places.iter();
                let period_ns = period_ns
                    .filter(|at| at.root == root)
                    .map(|at| self.ran.plan.tree.period_ns(system, at));
                let period_ns = period_ns.min().unwrap_or(u64::MAX);
                let known = self.ran.checked.behaviours.iter();
                let mut known = known.filter(|bound| bound.behaviour == behaviour.name);
                let bound_ns = known.next().and_then(|bound| {
                    let mut roots = bound.by_root.iter();
                    let of_root = roots.find(|(name, _)| name == root_name);
                    match of_root {
                        Some((_, bound_ns)) => *bound_ns,
                        None if bound.root == *root_name => bound.bound_ns,
                        None => None,
                    }
                });
                let of = Observed {
                    behaviour: behaviour.name.clone(),
                    bound_ns,
                    deadline_ns: behaviour.deadline_ns.unwrap_or(period_ns),
                    ..self.nothing(index, root)
                };
                found.push(self.observe(&places, of));
            }
        }
        found
    }

    fn chains(&self) -> Vec<Observed> {
        let chains = self.ran.system.chains.iter();
        let tree = &self.ran.plan.tree;
        chains
            .filter_map(|chain| {
                let (first, last) = (*chain.through.first()?, *chain.through.last()?);
                let is_it = |place: &usize| tree.is_way(*place, &chain.through);
                let places: Vec<usize> = (0..tree.places.len()).filter(is_it).collect();
                let mut known = self.ran.checked.chains.iter();
                let bound = known.find(|bound| bound.chain == chain.name);
                let of = Observed {
                    chain: chain.name.clone(),
                    bound_ns: bound.and_then(|bound| bound.bound_ns),
                    deadline_ns: chain.deadline_ns,
                    ..self.nothing(last, first)
                };
                Some(self.observe(&places, of))
            })
            .collect()
    }

    /// Of a behaviour from that root, before anything was looked at.
    fn nothing(&self, behaviour: usize, root: usize) -> Observed {
        let system = self.ran.system;
        let places = self.ran.plan.tree.places.iter();
        let by_deadline =
            system.scheduling(system.placement(behaviour)) == SchedulingPolicy::EarliestDeadline;
        let priority = places
            .filter(|at| at.behaviour == behaviour && at.root == root && !by_deadline)
            .map(|at| i16::from(at.priority));
        Observed {
            root: system.behaviours[root].name.clone(),
            processor: processor_name(system, behaviour),
            priority: priority.max(),
            ..nothing_observed()
        }
    }

    fn observe(&self, places: &[usize], mut of: Observed) -> Observed {
        let mut longest: Vec<Outlier> = Vec::new();
        let mut due: u64 = 0;
        for place in places {
            let at = &self.ran.plan.tree.places[*place];
            let arrivals = self.evidence.arrivals.get(&(at.root as u32));
            due += arrivals.copied().unwrap_or(0).saturating_mul(at.times);
            for job in &self.jobs[*place] {
                self.count(*place, job, &mut of, &mut longest);
            }
        }
        of.skipped = due.saturating_sub(of.count);
        of.misses += of.skipped;
        longest.truncate(OUTLIERS);
        of.outliers = longest;
        let quiet_ns = of.quiet_worst_ns.filter(|quiet_ns| *quiet_ns > 0);
        of.ratio = of
            .bound_ns
            .zip(quiet_ns)
            .map(|(bound_ns, quiet_ns)| bound_ns as f64 / quiet_ns as f64);
        of.standing = match (of.count, of.bound_ns) {
            (0, _) => ObservedStanding::Unseen,
            (_, None) => ObservedStanding::Unbounded,
            _ if of.unexplained > 0 => ObservedStanding::Unexplained,
            _ if of.above > 0 => ObservedStanding::ExplainedByTheHost,
            _ => ObservedStanding::Within,
        };
        of.words = super::words::of(&of);
        of
    }

    fn count(&self, place: usize, job: &Job, of: &mut Observed, longest: &mut Vec<Outlier>) {
        let response_ns = job.end_ns.saturating_sub(job.release_ns);
        of.count += 1;
        of.misses += u64::from(response_ns > of.deadline_ns);
        of.worst_ns = of.worst_ns.max(Some(response_ns));
        if self.is_quiet(place, job) {
            of.quiet_count += 1;
            of.quiet_worst_ns = of.quiet_worst_ns.max(Some(response_ns));
        }
        let excess_ns = response_ns.saturating_sub(of.bound_ns.unwrap_or(u64::MAX));
        let shortest = longest.last().map_or(0, |outlier| outlier.response_ns);
        let is_long = longest.len() < OUTLIERS || response_ns > shortest;
        if excess_ns == 0 && !is_long {
            return;
        }
        let outlier = self.outlier(place, job, excess_ns);
        if excess_ns > 0 {
            of.above += 1;
            of.unexplained += u64::from(outlier.interrupted_ns < excess_ns);
        }
        let at = longest.partition_point(|known| known.response_ns >= response_ns);
        longest.insert(at, outlier);
        longest.truncate(OUTLIERS);
    }

    /// What interruptions may have held the job up, by the CPU.
    fn met<'s>(
        &'s self,
        cpus: &'s BTreeSet<usize>,
        job: &'s Job,
    ) -> impl Iterator<Item = (usize, u64, &'s Taken)> {
        cpus.iter().flat_map(move |cpu| {
            let timeline = self.timelines.get(cpu);
            let since_ns = timeline.map_or(job.release_ns, |timeline| {
                timeline.busy_since(job.release_ns, BACK_NS)
            });
            let met = timeline.into_iter();
            let met = met.flat_map(move |timeline| timeline.within(since_ns, job.end_ns));
            met.map(move |taken| (*cpu, since_ns, taken))
        })
    }

    fn is_quiet(&self, place: usize, job: &Job) -> bool {
        let feeding = self.ways[place]
            .iter()
            .filter_map(|cpu| self.feeding.get(cpu));
        let cpus: BTreeSet<usize> = feeding.flatten().copied().collect();
        self.met(&cpus, job).next().is_none()
    }

    fn outlier(&self, place: usize, job: &Job, excess_ns: u64) -> Outlier {
        let from_start = |at_ns: u64| from_start(self.evidence, at_ns);
        let cpus = &self.ways[place];
        let since = cpus.iter().filter_map(|cpu| self.timelines.get(cpu));
        let since = since.map(|timeline| timeline.busy_since(job.release_ns, BACK_NS));
        let mut interrupted_ns = 0;
        let mut interruptions: Vec<Interruption> = Vec::new();
        for (cpu, since_ns, taken) in self.met(cpus, job) {
            let length_ns = taken.within_ns(since_ns, job.end_ns);
            interrupted_ns += length_ns;
            interruptions.push(Interruption {
                host_cpu: cpu,
                begin_ns: from_start(taken.begin_ns.max(since_ns)),
                length_ns,
                while_idle: taken.while_idle,
                traced: taken.traced,
            });
        }
        interruptions.sort_unstable_by_key(|one| std::cmp::Reverse(one.length_ns));
        interruptions.truncate(INTERRUPTIONS_OF_ONE);
        Outlier {
            sequence: job.number,
            release_ns: from_start(job.release_ns).max(0).unsigned_abs(),
            end_ns: from_start(job.end_ns).max(0).unsigned_abs(),
            response_ns: job.end_ns.saturating_sub(job.release_ns),
            excess_ns,
            window_begin_ns: from_start(since.min().unwrap_or(job.release_ns)),
            interrupted_ns,
            interruptions,
        }
    }
}

/// A behaviour or chain of which nothing was observed.
pub(super) fn nothing_observed() -> Observed {
    Observed {
        standing: ObservedStanding::Unseen,
        ..Observed::default()
    }
}

fn from_start(evidence: &Evidence, at_ns: u64) -> i64 {
    at_ns
        .cast_signed()
        .saturating_sub(evidence.start_ns.cast_signed())
}

fn by_place(ran: Ran<'_>, evidence: &Evidence) -> Vec<Vec<Job>> {
    let mut jobs = vec![Vec::new(); ran.plan.tree.places.len()];
    for job in &evidence.jobs {
        if let Some(ours) = jobs.get_mut(job.place as usize) {
            ours.push(*job);
        }
    }
    jobs
}

fn host_cpu(ran: Ran<'_>, behaviour: usize) -> usize {
    let at = ran.system.placement(behaviour);
    let host_cpu = ran.places.of.get(&(at.node, at.cpu));
    host_cpu.copied().unwrap_or(0)
}

/// The CPUs by which a place is called from its caller on: the channel's, if it is by an event, and its own.
fn cpus_of_step(ran: Ran<'_>, place: usize) -> BTreeSet<usize> {
    let tree = &ran.plan.tree;
    let at = &tree.places[place];
    let mut cpus = BTreeSet::from([host_cpu(ran, at.behaviour)]);
    let caller = at.caller.map(|caller| tree.places[caller].behaviour);
    let call = caller.and_then(|caller| ran.system.behaviours[caller].calls.get(at.call));
    if let Some(CallWay::Event { channel }) = call.map(|call| call.way) {
        let channel = &ran.system.channels[channel];
        cpus.extend(ran.places.of.get(&(channel.node, channel.cpu)));
    }
    cpus
}

/// Of each place the CPUs on its way from the root, those of calls that somebody on the way waits for too.
fn ways(ran: Ran<'_>) -> Vec<BTreeSet<usize>> {
    let tree = &ran.plan.tree;
    let steps: Vec<BTreeSet<usize>> = (0..tree.places.len())
        .map(|place| cpus_of_step(ran, place))
        .collect();
    // With those that it waits for: callers come before those whom they call.
    let mut waits = steps.clone();
    for place in (0..tree.places.len()).rev() {
        let at = &tree.places[place];
        let Some(caller) = at.caller else { continue };
        let calls = &ran.system.behaviours[tree.places[caller].behaviour].calls;
        if calls
            .get(at.call)
            .is_some_and(|call| call.way == CallWay::TwoWay)
        {
            let theirs = waits[place].clone();
            waits[caller].extend(theirs);
        }
    }
    let all = |place| {
        let way = tree.way(place).into_iter();
        way.flat_map(|step| steps[step].union(&waits[step]).copied().collect::<Vec<_>>())
            .collect()
    };
    (0..tree.places.len()).map(all).collect()
}

/// Of each CPU those from which work comes, over others too.
fn feeding(ran: Ran<'_>) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut from: BTreeMap<usize, BTreeSet<usize>> = ran
        .places
        .cpus()
        .into_iter()
        .map(|cpu| (cpu, BTreeSet::from([cpu])))
        .collect();
    let ways = ways(ran);
    for (place, at) in ran.plan.tree.places.iter().enumerate() {
        let cpu = host_cpu(ran, at.behaviour);
        from.entry(cpu).or_default().extend(&ways[place]);
    }
    // As often as there are CPUs: then whatever is reachable was reached.
    for _ in 0..from.len() {
        let known = from.clone();
        for sources in from.values_mut() {
            let more = sources.iter().filter_map(|cpu| known.get(cpu)).flatten();
            let more: Vec<usize> = more.copied().collect();
            sources.extend(more);
        }
    }
    from
}

fn timelines(ran: Ran<'_>, evidence: &Evidence, from_ns: u64) -> BTreeMap<usize, Timeline> {
    let tree = &ran.plan.tree;
    let mut own_ends: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for job in &evidence.jobs {
        own_ends.insert((job.place, job.number), job.own_end_ns);
    }
    let cause_ns = |job: &Job| {
        let caller = tree.places.get(job.place as usize).and_then(|at| at.caller);
        let of_caller = caller.and_then(|caller| own_ends.get(&(caller as u32, job.number)));
        of_caller.copied().unwrap_or(job.release_ns)
    };
    let cpu_of = |place: u32| {
        let at = tree.places.get(place as usize)?;
        Some(host_cpu(ran, at.behaviour))
    };
    let mut jobs: BTreeMap<usize, Vec<Caused>> = BTreeMap::new();
    for job in &evidence.jobs {
        if let Some(cpu) = cpu_of(job.place) {
            let caused = Caused {
                job: *job,
                cause_ns: cause_ns(job),
            };
            jobs.entry(cpu).or_default().push(caused);
        }
    }
    let mut gaps: Vec<JobGap> = evidence.gaps.clone();
    gaps.sort_unstable_by_key(|gap| (gap.place, gap.number, gap.begin_ns));
    let activity = Activity::of_events(&evidence.events, &BTreeMap::new());
    let cpus = ran.places.cpus().into_iter();
    cpus.map(|cpu| {
        let jobs = jobs.remove(&cpu).unwrap_or_default();
        let watched = evidence.watched.get(&cpu);
        let recorded = RecordedCpu::of(&activity, cpu, &evidence.threads, from_ns);
        (
            cpu,
            Timeline::of(&jobs, &gaps, watched, (&recorded, from_ns)),
        )
    })
    .collect()
}

fn cpus(
    ran: Ran<'_>,
    evidence: &Evidence,
    timelines: &BTreeMap<usize, Timeline>,
) -> Vec<CpuObserved> {
    let each = timelines.iter();
    each.map(|(cpu, timeline)| {
        let (begin_ns, end_ns) = (evidence.start_ns, evidence.end_ns);
        let lengths = timeline.within(begin_ns, end_ns);
        let lengths: Vec<u64> = lengths
            .map(|taken| taken.within_ns(begin_ns, end_ns))
            .collect();
        let plays = ran
            .places
            .of
            .iter()
            .filter(|(_, host_cpu)| *host_cpu == cpu);
        CpuObserved {
            host_cpu: *cpu,
            processors: plays
                .map(|(one, _)| places::name(ran.system, *one))
                .collect(),
            interruptions: lengths.len() as u64,
            interrupted_ns: lengths.iter().sum(),
            longest_ns: lengths.iter().copied().max().unwrap_or(0),
            stolen_ms: evidence.stolen_ms.get(cpu).copied().flatten(),
            busy_ns: timeline.busy_ns(begin_ns, end_ns),
            ordinary: timeline.given_within(begin_ns, end_ns),
        }
    })
    .collect()
}

fn longest(evidence: &Evidence, timelines: &BTreeMap<usize, Timeline>) -> Vec<Interruption> {
    let mut all: Vec<Interruption> = Vec::new();
    for (cpu, timeline) in timelines {
        let met = timeline.within(evidence.start_ns, evidence.end_ns);
        all.extend(met.map(|taken| Interruption {
            host_cpu: *cpu,
            begin_ns: from_start(evidence, taken.begin_ns),
            length_ns: taken.end_ns - taken.begin_ns,
            while_idle: taken.while_idle,
            traced: taken.traced,
        }));
    }
    all.sort_unstable_by_key(|one| std::cmp::Reverse(one.length_ns));
    all.truncate(INTERRUPTIONS);
    all
}

/// How far back interruptions are looked for.
const BACK_NS: u64 = 1_000_000_000;
const OUTLIERS: usize = 16;
const INTERRUPTIONS_OF_ONE: usize = 8;
const INTERRUPTIONS: usize = 64;

#[cfg(test)]
mod tests;
