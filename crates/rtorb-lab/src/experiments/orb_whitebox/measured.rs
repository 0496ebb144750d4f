//! The counts a request of every contestant.

use std::collections::BTreeMap;

use rtorb_results::statistics::{Recorder, Statistics, median};
use rtorb_results::{Labels, ObtainedScheduling, Series, labels};

use super::contestant::{Contestant, Run, Sides};
use crate::contestants::OMNIORB;
use crate::contestants::whitebox::perf::{Phase, Samples, SystemCalls};
use crate::error::LabError;

/// Something that is counted for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    UserLocks,
    ContendedLocks,
    ConditionOperations,
    KernelLocks,
    HeapCalls,
    VoluntarySwitches,
    InvoluntarySwitches,
    SystemCalls,
    /// System calls of one name.
    SystemCall,
    CpuTime,
    /// Processor time of one phase.
    CpuTimeOf(Phase),
}

impl What {
    /// The value of the label `what`.
    fn label(self) -> &'static str {
        match self {
            Self::UserLocks => "user_locks",
            Self::ContendedLocks => "contended_locks",
            Self::ConditionOperations => "condition_operations",
            Self::KernelLocks => "kernel_locks",
            Self::HeapCalls => "heap_calls",
            Self::VoluntarySwitches => "voluntary_switches",
            Self::InvoluntarySwitches => "involuntary_switches",
            Self::SystemCalls => "system_calls",
            Self::SystemCall => "system_call",
            Self::CpuTime => "cpu_time",
            Self::CpuTimeOf(_) => "cpu_time_of",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::CpuTime | Self::CpuTimeOf(_) => "ns",
            _ => "per_request",
        }
    }
}

/// Which of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Measured {
    cells: BTreeMap<Key, Cell>,
    /// In the order in which they were counted.
    pub(super) presets: Vec<&'static str>,
    pub(super) scheduling: Vec<ObtainedScheduling>,
    pub(super) notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The place in `presets`.
    preset: usize,
    clients: u32,
    side: Side,
    what: What,
    system_call: String,
}

/// Counts a request, one of each round.
#[derive(Debug, Default)]
struct Cell {
    rounds: Vec<f64>,
    requests: u64,
    wrong: u64,
}

impl Measured {
    /// Counts a run by what the processes and the kernel count themselves.
    pub(super) fn add_round(
        &mut self,
        preset: &'static str,
        contestant: &mut Contestant,
        run: &Run,
    ) -> Result<(), LabError> {
        let before = contestant.reading()?;
        let wrong = contestant.run(run)?;
        let after = contestant.reading()?;
        for (side, before, after) in [
            (Side::Client, before.client, after.client),
            (Side::Server, before.server, after.server),
        ] {
            let since = after.since(before);
            let (counts, threads) = (since.counts, since.threads);
            let mut counted = vec![
                (What::UserLocks, counts.lock_operations),
                (What::ContendedLocks, counts.contended),
                (What::HeapCalls, counts.heap_calls),
                (What::VoluntarySwitches, threads.voluntary_switches),
                (What::InvoluntarySwitches, threads.involuntary_switches),
                (What::CpuTime, threads.cpu_ns),
            ];
            let conditions = counts.condition_operations;
            counted.extend(conditions.map(|count| (What::ConditionOperations, count)));
            for (what, count) in counted {
                self.add(preset, run, (side, what), count as f64);
            }
            let key = self.key(preset, run.clients(), side, What::UserLocks);
            self.cells.entry(key).or_default().wrong += wrong;
        }
        Ok(())
    }

    /// Adds the system calls of a run. The pause of the high-priority client is none of the ORB's.
    pub(super) fn add_system_calls(
        &mut self,
        preset: &'static str,
        run: &Run,
        calls: Sides<SystemCalls>,
    ) {
        for (side, mut calls) in [(Side::Client, calls.client), (Side::Server, calls.server)] {
            if side == Side::Client && run.period_us > 0 {
                calls.remove("clock_nanosleep");
            }
            let futex = calls.get("futex").copied().unwrap_or(0);
            self.add(preset, run, (side, What::KernelLocks), futex as f64);
            let all: u64 = calls.values().sum();
            self.add(preset, run, (side, What::SystemCalls), all as f64);
            for (name, count) in calls {
                let key = Key {
                    system_call: name,
                    ..self.key(preset, run.clients(), side, What::SystemCall)
                };
                self.add_to(key, run, count as f64);
            }
        }
    }

    /// Shares the processor time of the rounds out by where the processes were found.
    pub(super) fn add_samples(&mut self, preset: &'static str, run: &Run, samples: Sides<Samples>) {
        for (side, samples) in [
            (Side::Client, samples.client),
            (Side::Server, samples.server),
        ] {
            let all: u64 = samples.values().sum();
            let time = self.value(preset, run.clients(), side, What::CpuTime);
            let (Some(time_ns), true) = (time, all > 0) else {
                continue;
            };
            for phase in Phase::ALL {
                let share = samples.get(&phase).copied().unwrap_or(0) as f64 / all as f64;
                let total_ns = share * time_ns * run.requests() as f64;
                self.add(preset, run, (side, What::CpuTimeOf(phase)), total_ns);
            }
        }
    }

    pub(super) fn add_scheduling(&mut self, scheduling: Vec<ObtainedScheduling>) {
        self.scheduling.extend(scheduling);
    }

    /// Says it once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The median over rounds; `None` when it was not counted.
    pub(super) fn value(&self, preset: &str, clients: u32, side: Side, what: What) -> Option<f64> {
        let preset = self.presets.iter().position(|known| *known == preset)?;
        let key = Key {
            preset,
            clients,
            side,
            what,
            system_call: String::new(),
        };
        median(&self.cells.get(&key)?.rounds)
    }

    /// A value of the client and that of the server.
    pub(super) fn both(&self, preset: &str, clients: u32, what: What) -> Option<Sides<f64>> {
        Some(Sides {
            client: self.value(preset, clients, Side::Client, what)?,
            server: self.value(preset, clients, Side::Server, what)?,
        })
    }

    pub(super) fn series(&self, real_time: bool) -> Vec<Series> {
        let with = |(key, cell): (&Key, &Cell)| Series {
            unit: key.what.unit().to_owned(),
            count: cell.requests,
            statistics: Statistics::of_rounds(&cell.rounds),
            rounds_p50: cell.rounds.clone(),
            wrong: cell.wrong,
            ..Series::from_recorder(self.labels(key, real_time), &Recorder::new())
        };
        self.cells.iter().map(with).collect()
    }

    fn labels(&self, key: &Key, real_time: bool) -> Labels {
        let preset = self.presets[key.preset];
        let orb = if preset == OMNIORB { OMNIORB } else { "rtorb" };
        let mut labels = labels([
            ("orb", orb.into()),
            ("preset", preset.into()),
            ("clients", key.clients.into()),
            ("side", key.side.label().into()),
            ("what", key.what.label().into()),
            ("part", "count".into()),
            ("real_time", real_time.into()),
        ]);
        if let What::CpuTimeOf(phase) = key.what {
            labels.insert("phase".to_owned(), phase.label().into());
        }
        if key.what == What::SystemCall {
            labels.insert("system_call".to_owned(), key.system_call.clone().into());
        }
        labels
    }

    /// Adds what was counted in a run of one side.
    pub(super) fn add(
        &mut self,
        preset: &'static str,
        run: &Run,
        (side, what): (Side, What),
        count: f64,
    ) {
        let key = self.key(preset, run.clients(), side, what);
        self.add_to(key, run, count);
    }

    fn add_to(&mut self, key: Key, run: &Run, count: f64) {
        let cell = self.cells.entry(key).or_default();
        cell.rounds.push(count / run.requests() as f64);
        cell.requests += run.requests();
    }

    fn key(&mut self, preset: &'static str, clients: u32, side: Side, what: What) -> Key {
        let known = self.presets.iter().position(|known| *known == preset);
        let preset = known.unwrap_or_else(|| {
            self.presets.push(preset);
            self.presets.len() - 1
        });
        Key {
            preset,
            clients,
            side,
            what,
            system_call: String::new(),
        }
    }
}
