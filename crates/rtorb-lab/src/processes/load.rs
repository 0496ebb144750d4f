//! Load in the background while something is measured: what P4 section 2.1 describes, bounded and always ended.
//!
//! A process group for each kind, of SCHED_OTHER and nice 19, on every CPU that the laboratory itself may use. It is ended by
//! SIGKILL when [`RunningLoad`] is dropped, by the death signal when the laboratory itself is killed, and by itself when its
//! time is over.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use tempfile::TempDir;

use crate::error::LabError;
use crate::experiment::{Context, Effort};
use crate::processes::placement::Placement;
use crate::processes::{Launcher, Process};
pub use generator::Generator;

mod activity;
mod disk_folder;
mod generator;
pub(crate) mod own;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Five threads or processes of low priority that compute without end.
    Hog,
    /// Files are written, forced to the disk and removed.
    Disk,
    /// Octets are sent through the loopback device as fast as it takes them.
    Network,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Hog, Self::Disk, Self::Network];

    /// Its name as the command and the label `load` have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hog => "hog",
            Self::Disk => "disk",
            Self::Network => "network",
        }
    }
}

/// Which kinds run together. Its text is `none`, `mix` for all of them, or names with commas between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    kinds: Vec<Kind>,
}

impl Load {
    /// No load.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// All kinds together, as P4 has them.
    #[must_use]
    pub fn mix() -> Self {
        Self {
            kinds: Kind::ALL.to_vec(),
        }
    }

    /// Its kinds, each once.
    #[must_use]
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Starts it by stress-ng where that is installed, otherwise by our own means, and waits until every part of it has
    /// really done something. It runs until the answer is dropped.
    ///
    /// # Errors
    /// That it could not be started, that there is no disk or no room for it, or the interrupt.
    pub fn start(&self, context: &Context) -> Result<RunningLoad, LabError> {
        if self.is_none() {
            return Ok(RunningLoad::default());
        }
        let generator = Generator::best(&context.launcher.interrupt)?;
        self.start_with(context, &generator)
    }

    /// The same by the generator that the caller wants.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(
        &self,
        context: &Context,
        generator: &Generator,
    ) -> Result<RunningLoad, LabError> {
        let launcher = Launcher {
            placement: Placement::default(),
            ..context.launcher.clone()
        };
        let mut running = RunningLoad {
            parts: Vec::new(),
            made_by: generator.name(),
        };
        let at_most = time_limit(context.effort);
        for &kind in &self.kinds {
            let folder = match kind {
                Kind::Disk => disk_folder::make(context.folder())?,
                Kind::Hog | Kind::Network => tempfile::tempdir_in(context.folder())
                    .map_err(LabError::file(context.folder()))?,
            };
            let order = generator.order(kind, folder.path(), at_most)?;
            let role: Vec<&str> = order.role.iter().map(String::as_str).collect();
            let process = launcher.start(&format!("load {}", kind.name()), &role)?;
            running.made_by.push_str(&order.described);
            running.parts.push(Part {
                kind,
                process,
                _folder: folder,
            });
        }
        for part in &mut running.parts {
            part.await_activity(context)?;
        }
        Ok(running)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return formatter.write_str("none");
        }
        if self.kinds.len() == Kind::ALL.len() {
            return formatter.write_str("mix");
        }
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        formatter.write_str(&names.join(","))
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => return Ok(Self::none()),
            "mix" => return Ok(Self::mix()),
            _ => {}
        }
        let kind = |name: &str| {
            let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
            known.ok_or_else(|| {
                format!("no load is called {name:?}; there are none, hog, disk, network, and mix for the three together")
            })
        };
        let mut kinds: Vec<Kind> = text.split(',').map(kind).collect::<Result<_, _>>()?;
        kinds.sort_unstable();
        kinds.dedup();
        Ok(Self { kinds })
    }
}

/// Load that runs. Dropping it ends it.
#[derive(Debug, Default)]
pub struct RunningLoad {
    parts: Vec<Part>,
    made_by: String,
}

impl RunningLoad {
    /// Whether all of it still runs.
    ///
    /// # Errors
    /// Which part has ended, and what it said: what was measured since is not under the load that its label names.
    pub fn check(&mut self) -> Result<(), LabError> {
        self.parts.iter_mut().try_for_each(Part::check)
    }

    /// What makes the load, for the parameters of the results: the program, its version, and for each kind what it does.
    #[must_use]
    pub fn generator(&self) -> String {
        self.made_by.clone()
    }

    /// The process group of each kind: all of its processes are in it.
    #[must_use]
    pub fn groups(&self) -> Vec<(Kind, u32)> {
        let group = |part: &Part| (part.kind, part.process.id());
        self.parts.iter().map(group).collect()
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        // All are told before one is waited for.
        self.parts.iter().for_each(|part| part.process.kill_group());
        self.parts
            .iter_mut()
            .for_each(|part| part.process.await_group_end());
    }
}

/// One kind that runs.
#[derive(Debug)]
struct Part {
    kind: Kind,
    process: Process,
    /// Removed when the process is gone, for which fields are dropped in their order.
    _folder: TempDir,
}

impl Part {
    fn await_activity(&mut self, context: &Context) -> Result<(), LabError> {
        let deadline_ns = monotonic_ns() + START_NS_MAX;
        loop {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            self.check()?;
            if activity::is_seen(self.kind, self.process.id()) {
                return Ok(());
            }
            if monotonic_ns() > deadline_ns {
                let what = format!("has done nothing for {} s", START_NS_MAX / 1_000_000_000);
                return Err(LabError::process(self.process.name(), what));
            }
            std::thread::sleep(POLL);
        }
    }

    fn check(&mut self) -> Result<(), LabError> {
        match self.process.ended() {
            None => Ok(()),
            Some(how) => Err(LabError::process(
                self.process.name(),
                format!("ended while something was measured under it: {how}"),
            )),
        }
    }
}

/// After this time a load ends by itself, whatever has become of the laboratory; no experiment takes that long.
fn time_limit(effort: Effort) -> Duration {
    let minutes = match effort {
        Effort::Glance | Effort::Emulated { .. } => 5,
        Effort::Quick => 15,
        Effort::Full => 240,
    };
    Duration::from_secs(minutes * 60)
}

/// A host that is busy already gives little time to nice 19.
const START_NS_MAX: u64 = 20_000_000_000;
const POLL: Duration = Duration::from_millis(10);
/// As many as P4 had.
const HOGS: usize = 5;
/// Written in whole, then given back.
const FILE_BYTES: u64 = 64 << 20;
/// Forced to the disk after each of these.
const WRITE_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_as_it_is_written() {
        for text in ["none", "mix", "hog", "disk,network"] {
            assert_eq!(text.parse::<Load>().unwrap().to_string(), text);
        }
        assert_eq!("network,hog,disk".parse::<Load>(), Ok(Load::mix()));
        assert!("hog,pigeon".parse::<Load>().unwrap_err().contains("pigeon"));
        assert!("".parse::<Load>().is_err());
    }
}
