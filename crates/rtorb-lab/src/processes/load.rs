//! Load in the background while something is measured: what P4 section 2.1 describes, and what makes a kernel take its longest
//! paths; bounded and always ended.
//!
//! A process group for each kind, of SCHED_OTHER and nice 19, on every CPU that the laboratory itself may use. It is ended by
//! SIGKILL when [`RunningLoad`] is dropped, by the death signal when the laboratory itself is killed, and by itself when its
//! time is over.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use rtorb_host::placement::Placement;
use rtorb_os::clock::monotonic_ns;
use tempfile::TempDir;

use crate::effort::Effort;
use crate::error::LabError;
use crate::processes::{Launcher, Process};
use activity::Sign;
pub use generator::Generator;
pub use kind::Kind;

mod activity;
mod disk_folder;
mod generator;
mod kind;
pub(crate) mod own;

/// What runs together. Its text is `none`, `mix`, or names of kinds with commas between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    chosen: Chosen,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Chosen {
    #[default]
    None,
    Mix,
    /// In the order of [`Kind`], each once.
    Kinds(Vec<Kind>),
}

impl Load {
    /// No load.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// All kinds together that suit the place: [`Kind::MIX`] on a host, [`Kind::EMULATED_MIX`] in an emulated machine.
    #[must_use]
    pub fn mix() -> Self {
        Self {
            chosen: Chosen::Mix,
        }
    }

    /// Its kinds when so much is measured, each once.
    #[must_use]
    pub fn kinds(&self, effort: Effort) -> &[Kind] {
        match (&self.chosen, effort) {
            (Chosen::None, _) => &[],
            (Chosen::Kinds(kinds), _) => kinds,
            (Chosen::Mix, Effort::Emulated { .. }) => &Kind::EMULATED_MIX,
            (Chosen::Mix, _) => &Kind::MIX,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.chosen == Chosen::None
    }

    /// Starts it here and on each agent's host, of P4's kinds here by stress-ng where that is installed, otherwise by our own means, and waits until every part of
    /// it has really done something. It runs until the answer is dropped.
    ///
    /// # Errors
    /// [`LabError::Refused`] if there is no disk or no room for it, here or on an agent's host; that it could not be started; or the interrupt.
    pub fn start(
        &self,
        effort: Effort,
        launcher: &Launcher,
        folder: &Path,
    ) -> Result<RunningLoad, LabError> {
        let is_ours = |kind: &Kind| ![Kind::Hog, Kind::Disk].contains(kind);
        let generator = match effort {
            Effort::Emulated { .. } => Generator::Own,
            _ if self.kinds(effort).iter().all(is_ours) => Generator::Own,
            _ => Generator::best(&launcher.interrupt)?,
        };
        self.start_with(effort, launcher, folder, &generator)
    }

    /// The same by the generator that the caller wants.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(
        &self,
        effort: Effort,
        launcher: &Launcher,
        folder: &Path,
        generator: &Generator,
    ) -> Result<RunningLoad, LabError> {
        let launcher = launcher.placed(Placement::default());
        let hosts = (0..launcher.agents.len()).map(|number| launcher.at_host(number));
        let hosts: Vec<Launcher> = hosts.collect();
        let mut running = RunningLoad::default();
        let at_most = time_limit(effort);
        for &kind in self.kinds(effort) {
            let own = match kind {
                Kind::Disk => disk_folder::make(folder)?,
                _ => tempfile::tempdir_in(folder).map_err(LabError::file(folder))?,
            };
            let order = generator.order(kind, own.path(), at_most);
            let process = launcher.spawn(&format!("load {}", kind.name()), &order.role)?;
            running.parts.push(Part {
                kind,
                process,
                sign: order.sign,
                made_by: order.made_by,
                described: order.described,
                agent: None,
                _folder: Some(own),
            });
            for host in &hosts {
                running.parts.push(Part::on_agent(host, kind, at_most)?);
            }
        }
        for part in &mut running.parts {
            part.await_activity(&launcher)?;
        }
        Ok(running)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.chosen {
            Chosen::None => formatter.write_str("none"),
            Chosen::Mix => formatter.write_str("mix"),
            Chosen::Kinds(kinds) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                formatter.write_str(&names.join(","))
            }
        }
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
            Kind::named(name).ok_or_else(|| {
                let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                let names = names.join(", ");
                format!("no load is called {name:?}; there are none, {names}, and mix")
            })
        };
        let mut kinds: Vec<Kind> = text.split(',').map(kind).collect::<Result<_, _>>()?;
        kinds.sort_unstable();
        kinds.dedup();
        Ok(Self {
            chosen: Chosen::Kinds(kinds),
        })
    }
}

/// Load that runs. Dropping it ends it.
#[derive(Debug, Default)]
pub struct RunningLoad {
    parts: Vec<Part>,
}

impl RunningLoad {
    /// Whether all of it still runs.
    ///
    /// # Errors
    /// Which part has ended, and what it said: what was measured since is not under the load that its label names.
    pub fn check(&mut self) -> Result<(), LabError> {
        self.parts.iter_mut().try_for_each(Part::check)
    }

    /// What makes the load, for the parameters of the results: each program with its version, and for each kind what it does.
    #[must_use]
    pub fn generator(&self) -> String {
        let mut last = "";
        let mut words = Vec::with_capacity(2 * self.parts.len());
        for part in self.parts.iter().filter(|part| part.agent.is_none()) {
            if part.made_by != last {
                words.push(part.made_by.as_str());
                last = &part.made_by;
            }
            words.push(&part.described);
        }
        let mut made = words.join("; ");
        let agents: BTreeSet<&str> = self.parts.iter().filter_map(Part::agent).collect();
        if !agents.is_empty() {
            let agents = Vec::from_iter(agents).join(", ");
            made += &format!("; the same kinds by {} at {agents}", Generator::Own.name());
        }
        made
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
    /// What shows that it has begun; `None` for one that says so.
    sign: Option<Sign>,
    made_by: String,
    described: String,
    /// The agent on whose host it runs.
    agent: Option<String>,
    /// Removed when the process is gone, for which fields are dropped in their order.
    _folder: Option<TempDir>,
}

impl Part {
    /// Starts a kind on the host of the only agent of this launcher.
    fn on_agent(host: &Launcher, kind: Kind, at_most: Duration) -> Result<Self, LabError> {
        let seconds = at_most.as_secs().to_string();
        let role = ["agent-load", kind.name(), &seconds];
        let process = host.spawn_server(&format!("load {}", kind.name()), &role)?;
        Ok(Self {
            kind,
            process,
            sign: None,
            made_by: Generator::Own.name(),
            described: kind.described(),
            agent: host.agent().map(|agent| agent.address().to_owned()),
            _folder: None,
        })
    }

    fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    fn await_activity(&mut self, launcher: &Launcher) -> Result<(), LabError> {
        let Some(sign) = self.sign else {
            self.process.await_ready()?;
            let how = self.process.text();
            if !how.is_empty() {
                self.described = format!("{} {how}", self.described);
            }
            return Ok(());
        };
        let deadline_ns = monotonic_ns() + START_NS_MAX;
        loop {
            if launcher.interrupted() {
                return Err(LabError::Interrupted);
            }
            self.check()?;
            if sign.is_seen(self.process.id()) {
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
        Effort::Glance => 5,
        Effort::Quick => 15,
        Effort::Full | Effort::Emulated { full: true, .. } => FULL_MINUTES,
        // Virtual ones: the longest experiment takes some seconds a seed.
        Effort::Emulated { seeds, .. } => (5 + u64::from(seeds)).min(FULL_MINUTES),
    };
    Duration::from_secs(minutes * 60)
}

/// A host that is busy already gives little time to nice 19.
const START_NS_MAX: u64 = 60_000_000_000;
const POLL: Duration = Duration::from_millis(10);
/// As many as P4 had.
const HOGS: usize = 5;
/// Written in whole, then given back.
const FILE_BYTES: u64 = 64 << 20;
/// Forced to the disk after each of these.
const WRITE_BYTES: usize = 64 << 10;
const FULL_MINUTES: u64 = 240;
/// The memory of the process that is forked.
const TOUCHED_BYTES: usize = 32 << 20;
/// Mapped, touched, unmapped.
const MAPPED_BYTES: usize = 64 << 20;
/// That many write, and as many read.
const PIPE_ENDS: usize = 10;
/// Of the small datagrams.
const DATAGRAM_BYTES: usize = 64;
const TIMERS: usize = 200;
const UNIX_PAIRS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_as_it_is_written() {
        let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        let several = ["none", "mix", "disk,network", "fork,unix"];
        for text in all.into_iter().chain(several) {
            assert_eq!(text.parse::<Load>().unwrap().to_string(), text);
        }
        let kinds: Load = "unix,hog,unix,disk".parse().unwrap();
        assert_eq!(kinds.to_string(), "hog,disk,unix");
        let refused = "hog,pigeon".parse::<Load>().unwrap_err();
        assert!(refused.contains("pigeon") && refused.contains("tmpfs"));
        assert!("".parse::<Load>().is_err());
    }

    #[test]
    fn the_mix_is_what_suits_the_place() {
        let (host, emulated) = (
            Effort::Quick,
            Effort::Emulated {
                seeds: 4,
                full: false,
            },
        );
        assert_eq!(Load::mix().kinds(host), Kind::MIX);
        assert_eq!(Load::mix().kinds(emulated), Kind::EMULATED_MIX);
        assert!(Load::none().kinds(emulated).is_empty());
        let named: Load = "disk".parse().unwrap();
        assert_eq!(named.kinds(emulated), [Kind::Disk]);
        let all = Kind::EMULATED_MIX
            .iter()
            .chain(&[Kind::Disk, Kind::Network]);
        assert_eq!(all.count(), Kind::ALL.len());
    }

    #[test]
    fn every_load_ends_some_time() {
        let emulated = |seeds| time_limit(Effort::Emulated { seeds, full: false });
        assert!(emulated(1) < emulated(20));
        assert_eq!(emulated(u16::MAX), time_limit(Effort::Full));
    }
}
