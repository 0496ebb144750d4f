//! Starts the processes of a system, has them know each other, lets them run, and takes what they have seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use rtorb_host::cpu_use::{CpuUse, Snapshot};
use rtorb_host::description::stolen_ms;
use rtorb_host::kernel_trace::{KernelTrace, RecordedTrace, TraceEvent, TraceScope};
use rtorb_host::placement::Placement;
use rtorb_os::clock::monotonic_ns;
use rtorb_results::ObtainedScheduling;
use rtorb_sched::model::System;

use super::component::roots::Times;
use super::component::{ComponentQuestion, Peers, Seen};
use super::places::{self, Places};
use super::plan::{NOBODY, Plan};
use super::records::{self, Job, JobGap};
use super::watcher::{self, Watched, WatchedCpu, WatchersQuestion};
use crate::contestants::event_channel::Served;
use crate::error::LabError;
use crate::experiment::{Context, Progress};
use crate::processes::child::word;
use crate::processes::questions::Reply;
use crate::processes::readable::nanoseconds;
use crate::processes::{Launcher, Process};

/// What a run brought, before anybody judges it.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// When it began, in ns of CLOCK_MONOTONIC, and when the last job arrived at the latest.
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// All jobs that were done.
    pub(super) jobs: Vec<Job>,
    /// What these lost the CPU for.
    pub(super) gaps: Vec<JobGap>,
    /// How many jobs of each root arrived.
    pub(super) arrivals: BTreeMap<u32, u64>,
    /// Of each CPU of the host.
    pub(super) watched: BTreeMap<usize, Watched>,
    /// For how long each CPU was stolen, in ms.
    pub(super) stolen_ms: BTreeMap<usize, Option<u64>>,
    /// The kernel's record of each CPU.
    pub(super) events: BTreeMap<usize, Vec<TraceEvent>>,
    /// The threads of the system, as the record has them.
    pub(super) threads: BTreeSet<i32>,
    /// What used the CPUs besides the system.
    pub(super) cpu_use: CpuUse,
    /// What was not as it should be.
    pub(super) remarks: Vec<String>,
    /// What the threads had.
    pub(super) scheduling: Vec<ObtainedScheduling>,
}

/// The processes of a system, ended when this is dropped.
struct RunningSystem {
    channels: Vec<Process>,
    components: Vec<Process>,
    watchers: Process,
}

/// Builds the system and lets it run.
///
/// # Errors
/// That a process does not do what it should; or the interrupt.
pub(super) fn conduct(
    (system, plan): (&System, &Plan),
    places: &Places,
    duration: Duration,
    context: &Context,
    progress: &mut dyn Progress,
) -> Result<Evidence, LabError> {
    progress.begin(4);
    progress.step("starting the processes");
    let (mut running, peers) = start((system, plan), places, (duration, context))?;
    progress.step("opening connections");
    let asked_ns = monotonic_ns();
    running.connect(&peers)?;
    // A host that is busy lets the processes hear of the start as slowly as of their peers, or some times more slowly.
    let barrier_ns = (4 * (monotonic_ns() - asked_ns)).clamp(BARRIER_NS, BARRIER_MAX_NS);
    let mut evidence = Evidence {
        scheduling: running.scheduling(),
        ..Evidence::default()
    };
    let cpus: Vec<usize> = places.cpus().into_iter().collect();
    let record = KernelTrace::start(&cpus, record_kib(duration), &TraceScope::RealTime);
    evidence.threads = running.threads();
    let (before, others) = (stolen(places), Snapshot::now());
    progress.step(&format!("running for {} s", duration.as_secs_f64()));
    let times = running.go(barrier_ns, duration)?;
    (evidence.start_ns, evidence.end_ns) = (times.start_ns, times.end_ns);
    sleep_until(times.give_up_ns + SETTLE_NS, context)?;
    evidence.threads.extend(running.threads());
    evidence.keep(record.and_then(KernelTrace::finish));
    let after = stolen(places);
    evidence.cpu_use = Snapshot::now().since(&others, std::process::id());
    let difference = |cpu: &usize, after: &Option<u64>| {
        let before = before.get(cpu).copied().flatten();
        after
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before))
    };
    evidence.stolen_ms = after
        .iter()
        .map(|(cpu, after)| (*cpu, difference(cpu, after)))
        .collect();
    progress.step("taking what was seen");
    running.finish(&mut evidence)?;
    Ok(evidence)
}

impl Evidence {
    /// Keeps the kernel's record, or says why there is none.
    fn keep(&mut self, record: Result<RecordedTrace, String>) {
        match record {
            Ok(record) => {
                if record.lost > 0 {
                    self.remarks.push(format!(
                        "The kernel's record had no room for {} events: of what came later, the interruptions between two pieces of work \
                         are not known.",
                        record.lost
                    ));
                }
                self.events = record.events;
            }
            Err(why) => self.remarks.push(format!(
                "There is no record of the kernel's switches and interrupts ({why}): interruptions between two pieces of work are not \
                 known, and a response that they made longer is not explained."
            )),
        }
    }
}

/// The size of the record for each CPU.
fn record_kib(duration: Duration) -> u64 {
    ((duration.as_secs_f64() + RECORD_LONGER_S) * RECORD_KIB_A_SECOND).min(RECORD_KIB_MAX) as u64
}

fn stolen(places: &Places) -> BTreeMap<usize, Option<u64>> {
    let cpus = places.cpus().into_iter();
    cpus.map(|cpu| (cpu, stolen_ms(Some(cpu)))).collect()
}

fn start(
    (system, plan): (&System, &Plan),
    places: &Places,
    (duration, context): (Duration, &Context),
) -> Result<(RunningSystem, Peers), LabError> {
    let mut peers = Peers {
        subscriptions: plan.subscriptions.clone(),
        ..Peers::default()
    };
    let mut channels = Vec::new();
    for (channel, lanes) in system.channels.iter().zip(&plan.channels) {
        let cpu = places.of[&(channel.node, channel.cpu)];
        let process = start_channel(&on(context, Some(cpu)), &channel.name, lanes)?;
        peers.channels.push(process.text().to_owned());
        channels.push(process);
    }
    let mut components = Vec::new();
    for (index, plan) in plan.components.iter().enumerate() {
        let path = context.folder().join(format!("component-{index}.json"));
        let text = serde_json::to_vec(plan).map_err(std::io::Error::other);
        text.and_then(|text| fs::write(&path, text))
            .map_err(LabError::file(&path))?;
        let cpu = places.of[&plan.processor];
        let role = ["model-component", &path.to_string_lossy()];
        let launcher = on(context, Some(cpu));
        let process = launcher.start(&format!("component {}", plan.name), &role)?;
        let objects: BTreeMap<u32, String> = serde_json::from_str(process.text())
            .map_err(|error| LabError::process(process.name(), error.to_string()))?;
        peers.objects.extend(objects);
        components.push(process);
    }
    let room = (duration.as_secs_f64() * GAPS_A_SECOND) as usize + GAPS_BESIDE;
    let mut role = vec!["model-watcher".to_owned(), room.to_string()];
    role.extend(places.cpus().iter().map(usize::to_string));
    let watchers = on(context, None).start("watchers", &role)?;
    let running = RunningSystem {
        channels,
        components,
        watchers,
    };
    Ok((running, peers))
}

/// Starts processes on that CPU, whose threads take their priorities themselves.
fn on(context: &Context, cpu: Option<usize>) -> Launcher {
    Launcher {
        agents: Vec::new(),
        ..context.launcher.placed(Placement { cpu, fifo: None })
    }
}

fn start_channel(launcher: &Launcher, name: &str, lanes: &[u8]) -> Result<Process, LabError> {
    let served = Served {
        // One that nobody uses has a lane all the same.
        lanes: if lanes.is_empty() {
            vec![1]
        } else {
            lanes.to_vec()
        },
        queue_events: QUEUE_EVENTS,
        wait_ms: None,
        counts: false,
    };
    let role = ["event-channel", "iiop://127.0.0.1:0", &word(served)];
    launcher.start(&format!("channel {name}"), &role)
}

impl RunningSystem {
    fn connect(&mut self, peers: &Peers) -> Result<(), LabError> {
        self.ask(&ComponentQuestion::Connect(peers.clone()))?;
        // One after the other: a thread that waits for others of its lane serves nobody meanwhile.
        self.ask(&ComponentQuestion::Warm)
    }

    /// Asks each component, one after the other.
    fn ask(&mut self, question: &ComponentQuestion) -> Result<(), LabError> {
        let mut all = self.components.iter_mut();
        all.try_for_each(|component| {
            let seen = component.ask::<Option<Seen>>(question, Duration::ZERO);
            seen.map(drop)
        })
    }

    fn go(&mut self, barrier_ns: u64, duration: Duration) -> Result<Times, LabError> {
        let duration_ns = nanoseconds(duration);
        let start_ns = monotonic_ns() + barrier_ns;
        let times = Times {
            start_ns,
            end_ns: start_ns.saturating_add(duration_ns),
            give_up_ns: start_ns.saturating_add(duration_ns + PATIENCE_NS),
        };
        let until = WatchersQuestion::Start(times.give_up_ns);
        self.watchers
            .ask::<Vec<WatchedCpu>>(&until, Duration::ZERO)?;
        self.ask(&ComponentQuestion::Start(times))?;
        if monotonic_ns() < start_ns {
            Ok(times)
        } else {
            Err(LabError::process(
                "the laboratory",
                "the processes did not hear of the start in time: the host is too busy",
            ))
        }
    }

    /// The threads of the system: those of its components and channels.
    fn threads(&self) -> BTreeSet<i32> {
        let all = self.components.iter().chain(&self.channels);
        let folders = all.map(|process| format!("/proc/{}/task", process.id()));
        let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let ids = entries.flatten().map(|entry| entry.file_name());
        ids.filter_map(|id| id.to_str()?.parse().ok()).collect()
    }

    /// What the threads have, without those for what may wait.
    fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let all = self.components.iter().chain(&self.channels);
        let mut found: Vec<_> = all.flat_map(Process::scheduling_by_priority).collect();
        found.retain(|kind| kind.policy == "SCHED_FIFO");
        found
    }

    fn finish(&mut self, evidence: &mut Evidence) -> Result<(), LabError> {
        for component in &mut self.components {
            finish_component(component, evidence)?;
        }
        let reply = self
            .watchers
            .ask_for_series(&WatchersQuestion::Finish, Duration::ZERO)?;
        let watched = watcher::read(reply).map_err(|what| LabError::process("watchers", what))?;
        evidence.watched = watched.into_iter().collect();
        for (cpu, watched) in &evidence.watched {
            if watched.beyond_room > 0 {
                evidence.remarks.push(format!(
                    "The watcher of CPU {cpu} had no room for {} gaps: from then on its idle times are not known.",
                    watched.beyond_room
                ));
            }
        }
        Ok(())
    }
}

fn finish_component(component: &mut Process, evidence: &mut Evidence) -> Result<(), LabError> {
    let Reply { value, series } =
        component.ask_for_series::<Option<Seen>>(&ComponentQuestion::Finish, Duration::ZERO)?;
    let (Some(seen), [jobs, gaps]) = (value, &series[..]) else {
        let what = "did not say what it has seen";
        return Err(LabError::process(component.name(), what));
    };
    evidence.jobs.extend(records::read::<5, Job>(jobs));
    // What was done for practice is no job.
    let gaps = records::read::<3, JobGap>(gaps);
    evidence.gaps.extend(gaps.filter(|gap| gap.place != NOBODY));
    evidence.arrivals.extend(seen.arrivals);
    let name = component.name();
    let (jobs, gaps) = seen.beyond_room;
    if jobs > 0 {
        evidence.remarks.push(format!(
            "{name} had no room for {jobs} jobs: they count as never done."
        ));
    }
    if gaps > 0 {
        evidence.remarks.push(format!(
            "{name} had no room for {gaps} gaps in its work: what took the CPU then is not known."
        ));
    }
    if let Some(failure) = seen.failure {
        let failed = seen.failed;
        evidence.remarks.push(format!(
            "{name}: {failed} jobs failed, the first of them with: {failure}."
        ));
    }
    Ok(())
}

/// Sleeps, and wakes now and then to see whether the run should end.
fn sleep_until(end_ns: u64, context: &Context) -> Result<(), LabError> {
    loop {
        if context.interrupted() {
            return Err(LabError::Interrupted);
        }
        let left_ns = end_ns.saturating_sub(monotonic_ns());
        if left_ns == 0 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_nanos(left_ns.min(POLL_NS)));
    }
}

/// The processor of each place of the tree, as `NODE/CPU`.
pub(super) fn processor_name(system: &System, behaviour: usize) -> String {
    let at = system.placement(behaviour);
    places::name(system, (at.node, at.cpu))
}

/// For all processes to hear of the start, at least.
const BARRIER_NS: u64 = 1_000_000_000;
/// For them to hear of it on a host that is busy.
const BARRIER_MAX_NS: u64 = 5_000_000_000;
/// For jobs that arrived before the end to be done.
const PATIENCE_NS: u64 = 1_000_000_000;
/// For what was given up to come to its end.
const SETTLE_NS: u64 = 200_000_000;
const POLL_NS: u64 = 100_000_000;
/// Room of a watcher: each time that a CPU begins to be busy, and each interruption.
const GAPS_A_SECOND: f64 = 20_000.0;
const GAPS_BESIDE: usize = 40_000;
/// Room for some 10,000 events a second, each of which takes up to 80 bytes.
const RECORD_KIB_A_SECOND: f64 = 800.0;
/// From the start of the processes to the end, beside the run.
const RECORD_LONGER_S: f64 = 3.0;
/// Of each CPU.
const RECORD_KIB_MAX: f64 = 32.0 * 1_024.0;
/// Of a consumer that is behind.
const QUEUE_EVENTS: usize = 1_024;
