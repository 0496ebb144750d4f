//! The subcommands of the laboratory, and what a process of it does before any of them.

use std::process::ExitCode;

use clap::Subcommand;
use rtorb_kernels::guest;
use rtorb_lab::LabError;
use rtorb_lab::contestants::whitebox::{CountingAllocator, stop_counting};

use crate::{check, cubit, lab, measure, model, top, trace, why};

/// Subcommands of the laboratory.
#[derive(Debug, Subcommand)]
pub(crate) enum Laboratory {
    Measure(measure::Measure),
    Check(check::Check),
    Lab(lab::Lab),
    Model(model::Model),
    Top(top::Top),
    Trace(trace::Trace),
    Why(why::Why),
    Cubit(cubit::Cubit),
    /// A measured process; `measure` and `lab run` start it.
    #[command(hide = true)]
    Child {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

impl Laboratory {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Measure(measure) => measure.run(),
            Self::Check(check) => check.run(),
            Self::Lab(lab) => lab.run(),
            Self::Model(model) => model.run(),
            Self::Top(top) => top.run(),
            Self::Trace(trace) => trace.run(),
            Self::Why(why) => why.run(),
            Self::Cubit(cubit) => cubit.run(),
            Self::Child { arguments } => Ok(rtorb_lab::roles::play(&arguments)),
        }
    }
}

/// The system's allocator, which counts heap calls in the measured processes that start to count. In all others, and in all other
/// commands, a heap call costs one relaxed load more.
#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// Stops the counters of this process. If it is the first process of an emulated machine, it boots, and the exit status is returned.
pub(crate) fn start() -> Option<ExitCode> {
    stop_counting();
    guest::is_guest().then(|| {
        guest::boot();
        ExitCode::FAILURE
    })
}

/// Returns true if another command line, or another content of a named file, would correct an error of the laboratory.
pub(crate) fn is_wrong_use(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref::<rtorb_results::Error>() {
        return error.is_refusal();
    }
    match error.downcast_ref::<LabError>() {
        Some(LabError::Results(error)) => error.is_refusal(),
        Some(
            LabError::UnknownExperiment { .. }
            | LabError::Incomplete { .. }
            | LabError::Model { .. },
        ) => true,
        _ => false,
    }
}
