//! `rtorb events gateway`: forwards events from one channel to another.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::termination::Termination;
use rtorb_services::events::gateway::{
    Ends, Gateway as Running, GatewayConfig, GatewayError, GatewayStatistics, News,
};

use crate::exit_status::FAILED;
use crate::orb_options::{ServerOptions, usage_of, usage_of_field};
use crate::output::{line, note, print_json};
use crate::reference::{CallOptions, duration, text_of};

/// Forward the events of one channel that the consumers of another want, until it is interrupted.
///
/// Two gateways in opposite directions join two channels. Exit status 1: a channel became unreachable.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    /// Source channel: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one. It is read again each time the
    /// gateway connects.
    #[arg(value_name = "FROM")]
    from: String,
    /// Destination channel, in the same form.
    #[arg(value_name = "TO")]
    to: String,
    /// Maximum number of pushes that wait to be forwarded. Beyond it, the oldest is discarded.
    #[arg(long, value_name = "N", default_value_t = GatewayConfig::default().queue_pushes)]
    queue_events: usize,
    /// Maximum size of the waiting pushes in bytes.
    #[arg(long, value_name = "N", default_value_t = GatewayConfig::default().queue_bytes)]
    queue_bytes: usize,
    /// RT_Info of the gateway's subscription, known to the scheduler of FROM [default: the RT_Infos of the consumers at TO].
    #[arg(long, value_name = "N")]
    rt_info: Option<i32>,
    /// Number of failed attempts in a row before the gateway gives up.
    #[arg(long, value_name = "N", default_value_t = GatewayConfig::default().tries_max,
        value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// Interval of pings to the channels.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    ping_every: Duration,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
    #[command(flatten)]
    server: ServerOptions,
}

impl Gateway {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let termination = Termination::watch()?;
        let orb = self.calling.serving_orb(&self.server)?;
        for argument in [&self.from, &self.to] {
            text_of(argument)?;
        }
        let ends = Ends {
            from: super::find(&orb, &self.from),
            to: super::find(&orb, &self.to),
        };
        let config = GatewayConfig {
            queue_pushes: self.queue_events,
            queue_bytes: self.queue_bytes,
            rt_info: self.rt_info,
            tries_max: self.tries,
            ping_every: self.ping_every,
            ..GatewayConfig::default()
        };
        orb.root_poa()?;
        let serving = super::spawn_server(&orb)?;
        let gateway = Running::start(&orb, ends, config, print_news).map_err(gateway_error)?;
        while !termination.has_come() && !gateway.has_ended() {
            sleep_until(monotonic_ns() + LOOK_EVERY_NS);
        }
        let gave_up = gateway.has_ended();
        gateway.stop();
        let statistics = gateway.statistics();
        orb.shutdown();
        if let Ok(Some(served)) = serving.join() {
            served?;
        }
        self.print(&statistics)?;
        Ok(if gave_up {
            ExitCode::from(FAILED)
        } else {
            ExitCode::SUCCESS
        })
    }

    fn print(&self, statistics: &GatewayStatistics) -> anyhow::Result<()> {
        if self.json {
            return print_json(statistics);
        }
        let GatewayStatistics {
            received,
            forwarded,
            expired,
            discarded_full,
            discarded_lost,
            ..
        } = statistics;
        line(format!(
            "{received} events received, {forwarded} forwarded, {expired} expired (ttl), {} discarded",
            discarded_full + discarded_lost
        ))
    }
}

/// Converts an error of the gateway: a wrong option is a usage error, a refusal of the host is not.
fn gateway_error(error: GatewayError) -> anyhow::Error {
    let GatewayError::Config { name, .. } = &error else {
        return anyhow!(error);
    };
    match *name {
        "queue_pushes" => usage_of(&error, name, "--queue-events"),
        "tries_max" => usage_of(&error, name, "--tries"),
        name => usage_of_field(&error, name),
    }
}

fn print_news(news: &News) {
    note!("gateway: {news}");
}

/// The interval of checks for a signal.
const LOOK_EVERY_NS: u64 = 50_000_000;
