//! `rtorb-prometheus`: serves the counters of the recorders of this host's processes to Prometheus.
//!
//! The processes notice nothing: their recorders are memory that this one reads for each scrape.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod endpoint;
mod metrics;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;

use crate::metrics::Wanted;

/// Serve what processes call and serve to Prometheus: calls by their outcome, times and queues of each operation, and lanes.
///
/// The processes have -ORBRecorder yes among the options of their ORBs. They are neither stopped nor delayed: their recorders are memory
/// that this command reads for each scrape. A process that starts later is in the next scrape.
///
/// Exit status 1: the address cannot be listened at.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Process ids, or names of processes; without any, all processes that have a recorder and may be read.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Where to serve /metrics. Whoever reaches the address can read the counters.
    #[arg(long, default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
}

fn main() -> ExitCode {
    let Options { targets, listen } = Options::parse();
    match endpoint::serve(listen, &Wanted::new(targets)) {
        Ok(never) => match never {},
        Err(error) => {
            // `eprintln` panics if standard error is closed.
            let _ = writeln!(io::stderr(), "cannot serve {listen}: {error}");
            ExitCode::FAILURE
        }
    }
}
