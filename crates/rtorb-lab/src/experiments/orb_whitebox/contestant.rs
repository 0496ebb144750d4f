//! A counted server and its counted clients.

use std::path::Path;

use rtorb_host::placement::obtained;
use rtorb_results::ObtainedScheduling;

use crate::contestants::peers::omniorb;
use crate::contestants::whitebox::Priorities;
use crate::contestants::whitebox::clients::LOW_CLIENTS;
use crate::contestants::whitebox::counts::Counts;
use crate::contestants::whitebox::omniorb::{CountedPage, Programs};
use crate::contestants::whitebox::perf::{Perf, Samples, SystemCalls};
use crate::contestants::whitebox::strace::Strace;
use crate::contestants::whitebox::threads::ThreadSums;
use crate::error::LabError;
use crate::processes::{Launcher, Process};

/// Something of the client process, and the same of the server process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides<T> {
    pub(super) client: T,
    pub(super) server: T,
}

/// Calls that are made while something is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Beside the high-priority one.
    pub(super) low_clients: u32,
    /// Of each client.
    pub(super) count: u32,
    /// Of the high-priority client; 0 is as fast as it can.
    pub(super) period_us: u32,
}

impl Run {
    pub(super) fn clients(&self) -> u32 {
        self.low_clients + 1
    }

    pub(super) fn requests(&self) -> u64 {
        u64::from(self.clients()) * u64::from(self.count)
    }
}

/// What a side has counted, and what the kernel has counted for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) counts: Counts,
    pub(super) threads: ThreadSums,
}

impl Reading {
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            counts: self.counts.since(earlier.counts),
            threads: self.threads.since(earlier.threads),
        }
    }
}

/// The two processes.
#[derive(Debug)]
pub(super) struct Contestant {
    // In this order: the clients are ended before the server that they are connected to.
    client: Process,
    server: Process,
    /// Where a process that cannot be asked counts.
    pages: Option<Sides<CountedPage>>,
}

impl Contestant {
    /// Ours.
    pub(super) fn rtorb(
        launcher: &Launcher,
        preset: &str,
        priorities: Priorities,
    ) -> Result<Self, LabError> {
        let [low, high] = [priorities.low, priorities.high].map(|number| number.to_string());
        let role = ["whitebox-server", preset, &low, &high];
        let mut server = launcher.start(&format!("{preset} server"), &role)?;
        let references = server.ready()?;
        let role: Vec<&str> = ["whitebox-clients", preset, &low, &high]
            .into_iter()
            .chain(references.split(' '))
            .collect();
        let mut client = launcher.start(&format!("{preset} clients"), &role)?;
        client.ready()?;
        Ok(Self {
            client,
            server,
            pages: None,
        })
    }

    /// omniORB's, whose clients all call one object: it knows no priorities.
    pub(super) fn omniorb(
        launcher: &Launcher,
        programs: &Programs,
        priorities: Priorities,
        folder: &Path,
    ) -> Result<Self, LabError> {
        let pages = Sides {
            client: CountedPage::new(folder, "client")?,
            server: CountedPage::new(folder, "server")?,
        };
        let start = |name: &str, page: &CountedPage, program: &Path, arguments: &[&str]| {
            let env = page.preloading(programs);
            let program = program.display().to_string();
            let mut role = vec!["exec"];
            role.extend(env.iter().map(String::as_str));
            role.push(&program);
            role.extend_from_slice(arguments);
            launcher.start(&format!("omniorb {name}"), &role)
        };
        let mut arguments = vec!["server", "-ORBendPoint", "giop:tcp:127.0.0.1:"];
        arguments.extend(omniorb::SERVER_OPTIONS);
        let mut server = start("server", &pages.server, &programs.server, &arguments)?;
        let reference = server.ready()?;
        let numbers = [
            u32::from(priorities.low),
            u32::from(priorities.high),
            LOW_CLIENTS,
        ];
        let [low, high, low_clients] = numbers.map(|number| number.to_string());
        let mut arguments = vec![reference.as_str(), &low, &high, &low_clients];
        arguments.extend(omniorb::CLIENT_OPTIONS);
        let mut client = start("clients", &pages.client, &programs.clients, &arguments)?;
        client.ready()?;
        Ok(Self {
            client,
            server,
            pages: Some(pages),
        })
    }

    /// Has the clients call; answers how many answers were wrong.
    pub(super) fn run(&mut self, run: &Run) -> Result<u64, LabError> {
        let question = format!("run {} {} {}", run.low_clients, run.count, run.period_us);
        let answer = self.client.ask(&question)?;
        let wrong = answer
            .strip_prefix("ran ")
            .and_then(|rest| rest.split(' ').next()?.parse().ok());
        wrong.ok_or_else(|| LabError::process(self.client.name(), format!("said {answer:?}")))
    }

    /// The counters as they are now.
    pub(super) fn reading(&mut self) -> Result<Sides<Reading>, LabError> {
        let counts = match &self.pages {
            Some(pages) => Sides {
                client: pages.client.read()?,
                server: pages.server.read()?,
            },
            None => Sides {
                client: own_counts(&mut self.client)?,
                server: own_counts(&mut self.server)?,
            },
        };
        Ok(Sides {
            client: Reading {
                counts: counts.client,
                threads: thread_sums(&self.client)?,
            },
            server: Reading {
                counts: counts.server,
                threads: thread_sums(&self.server)?,
            },
        })
    }

    /// The system calls of a run.
    pub(super) fn system_calls(
        &mut self,
        launcher: &Launcher,
        folder: &Path,
        run: &Run,
    ) -> Result<Sides<SystemCalls>, LabError> {
        let perfs = Sides {
            client: Perf::stat(launcher, folder, self.client.id())?,
            server: Perf::stat(launcher, folder, self.server.id())?,
        };
        let perfs = self.looked_at(perfs, run)?;
        Ok(Sides {
            client: perfs.client.system_calls()?,
            server: perfs.server.system_calls()?,
        })
    }

    /// The same by strace.
    pub(super) fn traced_calls(
        &mut self,
        folder: &Path,
        run: &Run,
    ) -> Result<Sides<SystemCalls>, LabError> {
        let (client, server) = (
            Strace::attach(folder, self.client.id())?,
            Strace::attach(folder, self.server.id())?,
        );
        self.run(run)?;
        Ok(Sides {
            client: client.finish()?,
            server: server.finish()?,
        })
    }

    /// Where the processes were found during a run.
    pub(super) fn samples(
        &mut self,
        launcher: &Launcher,
        folder: &Path,
        run: &Run,
    ) -> Result<Sides<Samples>, LabError> {
        let perfs = Sides {
            client: Perf::record(launcher, folder, self.client.id())?,
            server: Perf::record(launcher, folder, self.server.id())?,
        };
        let perfs = self.looked_at(perfs, run)?;
        Ok(Sides {
            client: perfs.client.samples(&launcher.interrupt)?,
            server: perfs.server.samples(&launcher.interrupt)?,
        })
    }

    /// What the threads of both processes have.
    pub(super) fn scheduling(&self) -> Vec<ObtainedScheduling> {
        [&self.server, &self.client]
            .into_iter()
            .filter_map(|process| obtained(process.name(), process.id()))
            .collect()
    }

    fn looked_at(&mut self, mut perfs: Sides<Perf>, run: &Run) -> Result<Sides<Perf>, LabError> {
        perfs.client.enable()?;
        perfs.server.enable()?;
        self.run(run)?;
        perfs.client.disable()?;
        perfs.server.disable()?;
        perfs.client.await_end();
        perfs.server.await_end();
        Ok(perfs)
    }
}

fn own_counts(process: &mut Process) -> Result<Counts, LabError> {
    let answer = process.ask("counts")?;
    answer
        .parse()
        .map_err(|what: String| LabError::process(process.name(), what))
}

fn thread_sums(process: &Process) -> Result<ThreadSums, LabError> {
    ThreadSums::of(process.id())
        .ok_or_else(|| LabError::process(process.name(), "ended, or /proc cannot be read"))
}
