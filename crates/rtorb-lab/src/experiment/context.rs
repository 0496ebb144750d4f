//! What an experiment knows of its surroundings.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb_host::Host;
use rtorb_host::idle_states::DmaLatency;
use rtorb_host::placement::Placement;
use rtorb_host::system::cpu_list;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_results::timestamp;
use tempfile::TempDir;

use super::split_mix::SplitMix64;
use super::{Clocks, GpioLines};
use crate::effort::Effort;
use crate::error::LabError;
use crate::processes::Launcher;
use crate::processes::interrupt::Interrupt;
use crate::processes::load::{Load, RunningLoad};

/// What an experiment needs to know of its surroundings.
#[derive(Debug)]
pub struct Context {
    /// How much to measure.
    pub effort: Effort,
    /// The load to measure under; what an experiment that varies it sets beside none.
    pub load: Load,
    /// Real lines for the experiments that measure from a digital input to a digital output: of the more urgent wave first.
    pub gpio: Vec<GpioLines>,
    /// What the user knows of the clocks of the agents' hosts.
    pub clocks: Option<Clocks>,
    /// Tells this run from every other.
    pub run: String,
    /// The host as it was at the beginning.
    pub host: Host,
    /// Starts measured processes.
    pub launcher: Launcher,
    /// For sockets and the like; it is removed when the context is dropped.
    folder: TempDir,
    /// How often samples were marked so far: [`Context::add_marks`].
    marks: AtomicU64,
    /// Held for the whole of a run, where the host allows it; `host` says whether it does.
    _dma_latency: Option<DmaLatency>,
}

impl Context {
    /// For this host, with `executable` as the program that plays the children's roles ([`crate::roles`]).
    ///
    /// # Errors
    /// That no folder for temporary files could be made.
    pub fn new(
        effort: Effort,
        executable: PathBuf,
        interrupt: Interrupt,
    ) -> Result<Self, LabError> {
        let mut host = match effort {
            Effort::Emulated { .. } => Host {
                virtualisation: EMULATOR.to_owned(),
                ..Host::describe_emulated()
            },
            Effort::Glance | Effort::Quick | Effort::Full => Host::describe(),
        };
        let dma_latency = DmaLatency::hold();
        host.cpu_dma_latency_held = dma_latency.is_ok();
        host.cpu_dma_latency_refused = dma_latency.as_ref().err().map(ToString::to_string);
        let placement = Placement::best(&host);
        let folder = tempfile::Builder::new()
            .prefix("rtorb-lab-")
            .tempdir()
            .map_err(|error| {
                let what = format!("{error}. Name a folder that you may write to in TMPDIR");
                LabError::file("the folder for temporary files")(std::io::Error::other(what))
            })?;
        Ok(Self {
            effort,
            load: Load::none(),
            gpio: Vec::new(),
            clocks: None,
            run: run_id(),
            host,
            launcher: Launcher {
                executable,
                placement,
                interrupt,
                agents: Vec::new(),
            },
            folder,
            marks: AtomicU64::new(0),
            _dma_latency: dma_latency.ok(),
        })
    }

    /// A folder of this run's own for sockets and the like.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The seed of a round, rounds counted from 0; `None` where nothing is drawn, which is everywhere but in an emulated machine.
    #[must_use]
    pub fn seed(&self, round: usize) -> Option<u64> {
        self.effort.seeds().map(|_| round as u64 + 1)
    }

    /// To be called when a round begins: in an emulated machine it sleeps for a part of a tick that is drawn from the round's
    /// seed, without which every boot would meet kernel and load at the same moment. Everywhere else it does nothing.
    pub fn begin_round(&self, round: usize) {
        if let Some(seed) = self.seed(round) {
            let phase_ns = SplitMix64::seeded(seed).draw_below(PHASE_NS_MAX);
            sleep_until(monotonic_ns() + phase_ns);
        }
    }

    /// Counts the samples that a probe has marked, and answers how many were marked before: the n-th of these is the
    /// `marked + n`-th since the machine was switched on. It must be told of every probe's answer, or
    /// [`rtorb_results::WorstSample::mark`] is none that an observer could find.
    pub fn add_marks(&self, marks: u64) -> u64 {
        self.marks.fetch_add(marks, Ordering::Relaxed)
    }

    /// What a reader must know of a quick run; `None` for other efforts.
    pub(crate) fn if_quick(&self, note: &str) -> Option<String> {
        (self.effort == Effort::Quick).then(|| note.to_owned())
    }

    /// What a reader must know where measured threads cannot have SCHED_FIFO; `None` where they can.
    pub(crate) fn without_fifo(&self, note: &str) -> Option<String> {
        (!self.launcher.is_real_time()).then(|| note.to_owned())
    }

    /// A CPU beside the measured one; `None` if there is none.
    #[must_use]
    pub fn other_cpu(&self) -> Option<usize> {
        let measured = self.launcher.placement.cpu?;
        let allowed = self.host.cpus_allowed.as_deref().unwrap_or_default();
        cpu_list(allowed).into_iter().find(|cpu| *cpu != measured)
    }

    /// Returns the load of a study that measures without load and with one. It is the load that the user chose, or the mix without a
    /// choice. An emulated machine has its own.
    #[must_use]
    pub fn varied_load(&self) -> Load {
        let is_emulated = self.effort.seeds().is_some();
        if self.load.is_none() && !is_emulated {
            Load::mix()
        } else {
            self.load.clone()
        }
    }

    /// Starts a load for this run, on this host and on those of the first so many agents.
    ///
    /// # Errors
    /// As [`Load::start`].
    pub fn start_load(&self, load: &Load, agents: usize) -> Result<RunningLoad, LabError> {
        let mut launcher = self.launcher.clone();
        launcher.agents.truncate(agents);
        load.start(self.effort, &launcher, self.folder())
    }

    /// Whether the run must end: somebody wants it, or an agent is lost.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.launcher.interrupted()
    }
}

/// The moment and the process: no two runs on a host have both.
fn run_id() -> String {
    format!("{}-{}", timestamp::now(), std::process::id())
}

/// From tick to tick of a kernel with CONFIG_HZ=250.
const PHASE_NS_MAX: u64 = 4_000_000;
/// Told, not found out: from inside it looks like any virtual machine.
const EMULATOR: &str = "QEMU (TCG, icount: emulated, its clock counts instructions)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_emulated_machine_has_seeds() {
        let mut context = Context::new(
            Effort::Emulated {
                seeds: 4,
                full: false,
            },
            "/bin/false".into(),
            Interrupt::new(),
        )
        .unwrap();
        assert_eq!((context.seed(0), context.seed(3)), (Some(1), Some(4)));
        assert_eq!((context.add_marks(10), context.add_marks(5)), (0, 10));
        assert_eq!(context.add_marks(1), 15);
        context.effort = Effort::Quick;
        assert_eq!(context.seed(0), None);
    }
}
