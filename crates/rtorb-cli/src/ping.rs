//! `rtorb ping`: checks whether an object replies, where, and how fast.

use std::process::ExitCode;

use clap::Args;
use rtorb_dynamic::inspect::ping::{Pong, ping};
use rtorb_sched::model::rounded;

use crate::exit_status::FAILED;
use crate::output::{line, print_json, warn};
use crate::reference::{self, CallOptions};

/// Check whether an object exists, and time its replies.
///
/// Exit status 0: the object replied every time. 1: it did not; the message says why and what to do.
#[derive(Debug, Args)]
pub(crate) struct Ping {
    /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Number of calls.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl Ping {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let orb = self.calling.orb()?;
        let object = reference::object(&orb, &self.reference)?;
        if let Some(advice) = self.calling.priority_advice(&object) {
            warn(advice);
        }
        let pong = ping(&object, self.count);
        if self.json {
            print_json(&pong)?
        } else {
            print(&pong)?
        }
        Ok(if pong.alive {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

fn print(pong: &Pong) -> anyhow::Result<()> {
    if !pong.type_id.is_empty() {
        line(format!("type:      {}", pong.type_id))?;
    }
    for endpoint in &pong.endpoints {
        line(format!("endpoint:  {endpoint}"))?;
    }
    if let Some(times) = pong.round_trip_ns {
        let (min, median, max) = (rounded(times.min), rounded(times.p50), rounded(times.max));
        line(format!(
            "replies:   {} (round trip: min {min}, median {median}, max {max})",
            pong.answers
        ))?;
    }
    if let Some(trouble) = &pong.trouble {
        warn(trouble);
    }
    Ok(())
}
