//! What can go wrong in the laboratory itself; an ORB that answers with an exception is a measurement, not an error.

use std::path::PathBuf;
use std::time::Duration;

/// Why a run, or a part of it, did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Somebody asked for the end; what was measured until then holds.
    #[error("interrupted")]
    Interrupted,
    /// No experiment has this name.
    #[error(
        "no experiment is called {:?}:{} `rtorb lab list` shows all names",
        rtorb_sched::text_file::shortened(name),
        nearest.map(|nearest| format!(" did you mean {nearest}?")).unwrap_or_default()
    )]
    UnknownExperiment {
        /// The name that was asked for.
        name: String,
        /// The name that is most like it, if any is.
        nearest: Option<&'static str>,
    },
    /// A child process did not do what it should.
    #[error("{process}: {what}")]
    Process {
        /// Which one: `rtorb tcp server`.
        process: String,
        /// What it did instead.
        what: String,
    },
    /// A child process was silent for too long.
    #[error("{process} did not answer within {} ms", waited.as_millis())]
    Silent {
        /// Which one.
        process: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The agent on another host cannot be used, or an agent cannot be one.
    #[error("the agent at {address}: {what}")]
    Agent {
        /// Where it is or should be.
        address: String,
        /// What is wrong with it.
        what: String,
    },
    /// Results cannot be read, written or compared.
    #[error(transparent)]
    Results(#[from] rtorb_results::Error),
    /// Something that is needed is missing.
    #[error("{what}")]
    Incomplete {
        /// What is missing, and how to get it.
        what: String,
    },
    /// The host forbids or lacks what is needed: no fault of the laboratory.
    #[error("{what}")]
    Refused {
        /// What was refused, and how.
        what: String,
    },
    /// A system that was analysed cannot be run, or is not to be.
    #[error("{what}")]
    Model {
        /// Why, and what to do.
        what: String,
    },
    /// A peer's tools are installed and yet its benchmark program could not be built.
    #[error("{what}")]
    Peer {
        /// What failed, with what the tool printed.
        what: String,
    },
}

impl LabError {
    /// For `map_err` on operations on files.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        |error| rtorb_results::Error::file(path)(error).into()
    }

    pub(crate) fn agent(address: &str, what: impl Into<String>) -> Self {
        Self::Agent {
            address: address.to_owned(),
            what: what.into(),
        }
    }

    /// A folder is not what it must be: what is wrong with it, and what to do.
    #[must_use]
    pub fn folder(folder: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        rtorb_results::Error::folder(folder, what).into()
    }

    /// A process did not do what it should.
    #[must_use]
    pub fn process(process: &str, what: impl Into<String>) -> Self {
        Self::Process {
            process: process.to_owned(),
            what: what.into(),
        }
    }
}
