//! `rtorb cubit`: the benchmark pair.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use rtorb::rt::{Policy, Priority, PriorityModel};
use rtorb::{Orb, OrbError, PoaPolicies};
use rtorb_lab::contestants::burst::{Burst, Samples, Verb};
use rtorb_lab::contestants::cubit::{self, Bench};
use rtorb_lab::contestants::operations::Operation;
use rtorb_lab::contestants::server::Server;
use rtorb_results::statistics::Recorder;
use rtorb_results::summary::microseconds;
use serde_json::json;

use crate::exit_status::FAILED;
use crate::named_file;
use crate::orb_options::{ClientOptions, ServerOptions, option_error, usage};
use crate::output::{line, note, print_json};
use crate::reference::{self, CallOptions};

/// The benchmark server and client.
#[derive(Debug, Args)]
pub(crate) struct Cubit {
    #[command(subcommand)]
    subcommand: CubitSubcommand,
}

#[derive(Debug, Subcommand)]
enum CubitSubcommand {
    Serve(Serve),
    Bench(BenchArguments),
}

/// Serve a Cubit until a client calls its `shutdown`, or until SIGTERM or SIGINT.
#[derive(Debug, Args)]
struct Serve {
    /// File to write the reference to [default: standard output]. It is written atomically, when the server is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Priority model of the Cubit: client_propagated, calls have the client's priority; or server_declared, the server's own.
    #[arg(long, value_name = "MODEL", value_parser = priority_model)]
    priority_model: Option<PriorityModel>,
    /// CORBA priority of the Cubit, or of calls that carry none.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "priority_model",
        value_parser = clap::value_parser!(i16).range(0..))]
    server_priority: i16,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    client: ClientOptions,
}

/// Time calls to a Cubit, single ones or many in flight, and check every result.
#[derive(Debug, Args)]
struct BenchArguments {
    /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Operation to call: void, oneway, octet, short, long, struct, union, any, longseq, octetseq or manyseq.
    #[arg(long, value_name = "NAME", default_value = "void")]
    op: Operation,
    /// Number of calls to time.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    count: u32,
    /// Keep N calls in flight on one connection, 1 to 1024. Each is timed from its start until its result is taken, the oldest
    /// first. Unless other options choose, the connection strategy is multiplexed and the wait strategy leader_followers. Not for
    /// oneway, which has no reply.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    in_flight: Option<u16>,
    /// Number of elements of a sequence [default: 16 octets, 4 longs or 4 structs].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    len: Option<u32>,
    /// Deadline of each call, which the server learns: 5ms, 2s. A call that misses it ends the run with TIMEOUT.
    #[arg(long, value_name = "TIME", value_parser = reference::duration)]
    deadline: Option<Duration>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl Cubit {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.subcommand {
            CubitSubcommand::Serve(serve) => serve.run(),
            CubitSubcommand::Bench(bench) => bench.run(),
        }
    }
}

impl Serve {
    fn run(self) -> anyhow::Result<ExitCode> {
        let server = self.open().map_err(option_error)?;
        server.orb().shutdown_on_signals(|| ())?;
        server.orb().run_with(|| {
            let text = server.references().join(" ");
            match &self.ior_file {
                Some(file) => named_file::write(file, format!("{text}\n").as_bytes())?,
                None => line(text)?,
            }
            for endpoint in server.orb().endpoints() {
                note!("serving a Cubit at {endpoint}");
            }
            anyhow::Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn open(&self) -> Result<Server, OrbError> {
        let builder = self.server.apply(&self.client, Orb::builder());
        let mut policies = PoaPolicies::default();
        if let Some(model) = self.priority_model {
            policies = policies.with(Policy::PriorityModel {
                model,
                server_priority: Priority::new(self.server_priority)?,
            });
        }
        cubit::open(builder, policies)
    }
}

impl BenchArguments {
    fn run(&self) -> anyhow::Result<ExitCode> {
        if self.in_flight.is_some() && self.op == Operation::Oneway {
            return Err(usage(
                "a oneway has no reply, so that it is not in flight: choose another --op, or leave out --in-flight",
            ));
        }
        let orb = match self.in_flight {
            Some(_) => self.calling.starting_orb()?,
            None => self.calling.orb()?,
        };
        let object = reference::object(&orb, &self.reference)?;
        let object = reference::with_deadline(object, self.deadline);
        let mut bench = Bench::new(&object).map_err(|exception| anyhow!("{exception}"))?;
        if let Some(calls) = self.in_flight {
            bench = bench.keeping_in_flight(calls.into());
        }
        let len = self.len.map_or(self.op.default_len(), |len| len as usize);
        let count = self.count as usize;
        let burst = Burst {
            verb: Verb::Call,
            operation: self.op,
            len: if self.op.is_sequence() { len } else { 0 },
            warm_up: WARM_UP.min(count),
            count,
            budget_ns: u64::MAX,
            request_bytes: 0,
            reply_bytes: 0,
            period_ns: 0,
        };
        let samples = bench.burst(&burst).map_err(|error| anyhow!(error))?;
        self.print(&burst, &samples)?;
        Ok(if samples.wrong == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }

    fn print(&self, burst: &Burst, samples: &Samples) -> anyhow::Result<()> {
        let mut recorder = Recorder::new();
        recorder.record_all(&samples.times_ns);
        let times = recorder.statistics();
        if self.json {
            let mut answer = json!({
                "operation": burst.operation.name(),
                "count": recorder.count(),
                "len": burst.len,
                "wrong": samples.wrong,
                "calls_per_second": samples.calls_per_second(),
                "latency_ns": times,
            });
            if let Some(calls) = self.in_flight {
                answer["in_flight"] = calls.into();
            }
            return print_json(&answer);
        }
        let (name, wrong) = (burst.operation, samples.wrong);
        line(format!(
            "{name}: {} calls, {wrong} wrong results",
            recorder.count()
        ))?;
        if let (Some(calls), Some(rate)) = (self.in_flight, samples.calls_per_second()) {
            line(format!("{calls} in flight: {rate:.0} calls/s"))?;
        }
        let rows = [
            ("min", times.min),
            ("mean", times.mean),
            ("stddev", times.stddev),
            ("p50", times.p50),
            ("p90", times.p90),
            ("p99", times.p99),
            ("p99.9", times.p99_9),
            ("max", times.max),
        ];
        rows.into_iter()
            .try_for_each(|(name, ns)| line(format!("{name:>7}  {:>9} us", microseconds(ns))))
    }
}

fn priority_model(text: &str) -> Result<PriorityModel, String> {
    match text {
        "client_propagated" => Ok(PriorityModel::ClientPropagated),
        "server_declared" => Ok(PriorityModel::ServerDeclared),
        _ => Err("the models are client_propagated and server_declared".to_owned()),
    }
}

/// The number of calls that open the connection and fill the caches.
const WARM_UP: usize = 100;
