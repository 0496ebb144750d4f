//! A counted server and its counted clients.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rtorb_results::ObtainedScheduling;

use super::clients::LOW_CLIENTS;
use super::counts::{Counts, Reading};
use super::perf::{PHASES, Perf, SystemCalls};
use super::strace::Strace;
use super::{Priorities, Run};
use crate::contestants::Transport;
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::Process;

/// The processes, in the order in which they are ended: clients before the server that they are connected to.
pub(crate) const SIDES: [&str; 2] = ["client", "server"];

/// The two processes.
#[derive(Debug)]
pub struct Contestant {
    /// As in [`SIDES`].
    processes: [Process; 2],
    /// Where processes count that cannot be asked.
    pages: Option<[CountedPage; 2]>,
}

/// What was counted in a run, all requests together, by `SIDE WHAT` or `SIDE WHAT OF-WHICH`: `client system_call futex`.
pub type Numbers = BTreeMap<String, f64>;

impl Contestant {
    /// Starts ours.
    ///
    /// # Errors
    /// That a process does not start.
    pub fn rtorb(context: &Context, preset: &str, transport: Transport) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let [low, high] = Priorities::of(launcher).words();
        let endpoint = transport.endpoint_in(context.folder(), &format!("whitebox-{preset}"));
        let endpoint = endpoint.unwrap_or_else(|| launcher.server_endpoint());
        let role = ["whitebox-server", &endpoint, preset, &low, &high];
        let server = launcher.start(&format!("{preset} server"), &role)?;
        let mut role = vec!["whitebox-clients", preset, &low, &high];
        role.extend(server.words());
        let client = launcher.start(&format!("{preset} clients"), &role)?;
        Ok(Self {
            processes: [client, server],
            pages: None,
        })
    }

    /// Starts omniORB's, whose clients all call one object: it knows no priorities.
    ///
    /// # Errors
    /// That a process does not start.
    pub fn omniorb(context: &Context, peer: &OmniOrb) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let pages = each(SIDES, |side| CountedPage::new(context.folder(), side))?;
        let start = |name: &str, page: &CountedPage, program: &Path, arguments: &[&str]| {
            let preload = format!("LD_PRELOAD={}", peer.lock_calls.display());
            let counts = format!("COUNTS={}", page.0.display());
            let program = program.display().to_string();
            let role = [&["exec", "env", &preload, &counts, &program], arguments].concat();
            launcher.start(&format!("omniorb {name}"), &role)
        };
        let [client_page, server_page] = &pages;
        let mut arguments = vec!["server", "-ORBendPoint", "giop:tcp:127.0.0.1:"];
        arguments.extend(omniorb::SERVER_OPTIONS);
        let server = start("server", server_page, &peer.program, &arguments)?;
        let [low, high] = Priorities::of(launcher).words();
        let low_clients = LOW_CLIENTS.to_string();
        let mut arguments = vec![server.text(), &low, &high, &low_clients];
        arguments.extend(omniorb::CLIENT_OPTIONS);
        let client = start("clients", client_page, &peer.whitebox, &arguments)?;
        Ok(Self {
            processes: [client, server],
            pages: Some(pages),
        })
    }

    /// Has the clients call. Answers how many answers were wrong.
    ///
    /// # Errors
    /// That a call failed, or that the process ended or was silent.
    pub fn run(&mut self, run: &Run) -> Result<u32, LabError> {
        self.processes[0].ask(run, run.pauses())
    }

    /// What the processes count themselves in a run, and the kernel for them.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn count(&mut self, run: &Run) -> Result<Numbers, LabError> {
        let before = self.reading()?;
        let wrong = self.run(run)?;
        let after = self.reading()?;
        let mut numbers = Numbers::from([(WRONG.to_owned(), f64::from(wrong))]);
        for (side, (before, after)) in SIDES.into_iter().zip(before.into_iter().zip(after)) {
            let Reading { counts, threads } = after.since(before);
            let counted = [
                ("user_locks", Some(counts.lock_operations)),
                ("contended_locks", Some(counts.contended)),
                ("condition_operations", counts.condition_operations),
                ("heap_calls", Some(counts.heap_calls)),
                ("voluntary_switches", Some(threads.voluntary_switches)),
                ("involuntary_switches", Some(threads.involuntary_switches)),
                ("cpu_time", Some(threads.cpu_ns)),
            ];
            let counted = counted.into_iter();
            numbers.extend(
                counted.filter_map(|(what, count)| Some((format!("{side} {what}"), count? as f64))),
            );
        }
        Ok(numbers)
    }

    /// The system calls of a run, by perf.
    ///
    /// # Errors
    /// As [`Self::run`], or that perf fails.
    pub fn system_calls(&mut self, context: &Context, run: &Run) -> Result<Numbers, LabError> {
        let perfs = each(self.ids(), |id| {
            Perf::stat(&context.launcher, context.folder(), id)
        })?;
        let perfs = self.looked_at(perfs, run)?;
        Ok(named(each(perfs, |perf| perf.system_calls())?, run))
    }

    /// The system calls of a run, by strace.
    ///
    /// # Errors
    /// As [`Self::run`], or that strace fails.
    pub fn traced_calls(&mut self, context: &Context, run: &Run) -> Result<Numbers, LabError> {
        let straces = each(self.ids(), |id| Strace::attach(context.folder(), id))?;
        self.run(run)?;
        Ok(named(each(straces, Strace::finish)?, run))
    }

    /// How often each process was found in each phase during a run.
    ///
    /// # Errors
    /// As [`Self::run`], or that perf fails.
    pub fn samples(&mut self, context: &Context, run: &Run) -> Result<Numbers, LabError> {
        let launcher = &context.launcher;
        let perfs = each(self.ids(), |id| {
            Perf::record(launcher, context.folder(), id)
        })?;
        let perfs = self.looked_at(perfs, run)?;
        let samples = each(perfs, |perf| perf.samples(&launcher.interrupt))?;
        let sides = SIDES.into_iter().zip(&samples);
        let sides = sides.filter(|(_, samples)| !samples.is_empty());
        let all = sides.flat_map(|(side, samples)| {
            PHASES.map(|phase| {
                let count = samples.get(phase).copied().unwrap_or(0);
                (format!("{side} {CPU_TIME_OF} {phase}"), count as f64)
            })
        });
        Ok(all.collect())
    }

    /// What the threads of both processes have.
    #[must_use]
    pub fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let processes = self.processes.iter().rev();
        processes.filter_map(Process::scheduling).collect()
    }

    fn ids(&self) -> [u32; 2] {
        self.processes.each_ref().map(Process::id)
    }

    fn reading(&mut self) -> Result<[Reading; 2], LabError> {
        let Some([client, server]) = &self.pages else {
            return each(self.processes.each_mut(), Reading::ask);
        };
        let [clients, servers] = &self.processes;
        each([(client, clients), (server, servers)], |(page, process)| {
            Reading::with(page.read()?, process)
        })
    }

    fn looked_at(&mut self, mut perfs: [Perf; 2], run: &Run) -> Result<[Perf; 2], LabError> {
        perfs.iter_mut().try_for_each(Perf::enable)?;
        self.run(run)?;
        perfs.iter_mut().try_for_each(Perf::disable)?;
        perfs.iter_mut().for_each(Perf::await_end);
        Ok(perfs)
    }
}

/// The same of each side.
fn each<T, U>(
    [client, server]: [T; 2],
    of: impl Fn(T) -> Result<U, LabError>,
) -> Result<[U; 2], LabError> {
    Ok([of(client)?, of(server)?])
}

/// Counts of system calls. The pauses of clients are none of the ORB's.
fn named(sides: [SystemCalls; 2], run: &Run) -> Numbers {
    let mut numbers = Numbers::new();
    for (side, mut calls) in SIDES.into_iter().zip(sides) {
        if side == SIDES[0] && !run.pauses().is_zero() {
            calls.remove("clock_nanosleep");
        }
        let futex = calls.get("futex").copied().unwrap_or(0);
        let all: u64 = calls.values().sum();
        numbers.insert(format!("{side} kernel_locks"), futex as f64);
        numbers.insert(format!("{side} system_calls"), all as f64);
        let each = calls.into_iter();
        numbers
            .extend(each.map(|(name, count)| (format!("{side} system_call {name}"), count as f64)));
    }
    numbers
}

/// A page that a process with the counting library writes and we read.
#[derive(Debug)]
struct CountedPage(PathBuf);

impl CountedPage {
    fn new(folder: &Path, side: &str) -> Result<Self, LabError> {
        let path = folder.join(format!("counts-{side}"));
        fs::write(&path, [0; PAGE_BYTES]).map_err(LabError::file(&path))?;
        Ok(Self(path))
    }

    /// What was counted until now.
    fn read(&self) -> Result<Counts, LabError> {
        let page = fs::read(&self.0).map_err(LabError::file(&self.0))?;
        let (counters, _) = page.as_chunks();
        // The order is that of `enum counter` in ../peers/omniorb/lock_calls.c.
        let counter = |index: usize| {
            counters
                .get(index)
                .map_or(0, |eight| u64::from_le_bytes(*eight))
        };
        Ok(Counts {
            lock_operations: counter(0),
            contended: counter(1),
            heap_calls: counter(2),
            condition_operations: Some(counter(3)),
        })
    }
}

/// The number of wrong answers.
pub(crate) const WRONG: &str = "wrong";
/// The number of requests.
pub(crate) const REQUESTS: &str = "requests";
/// The samples of a phase, by which the processor time is shared out.
pub(crate) const CPU_TIME_OF: &str = "cpu_time_of";
/// As much as the library maps.
const PAGE_BYTES: usize = 4096;
