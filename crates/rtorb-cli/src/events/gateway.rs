//! `rtorb events gateway`: from one channel to another.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rtorb::{Orb, SystemException};
use rtorb_lab::inspect;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::events::client::channel_of;
use rtorb_services::events::gateway::{
    Ends, Find, Gateway as Running, GatewayConfig, GatewayStatistics, News,
};

use crate::NO;
use crate::orb_options::ServerChoices;
use crate::output::{line, print_json};
use crate::reference::{Calling, duration};

/// Bring the consumers of one channel the events of another that they want, until it is interrupted.
///
/// Two gateways in opposite directions join two channels. Exit status 1: a channel could not be reached any more.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    /// The channel that events come from: an IOR:, a corbaloc: or corbaname:, or a file that holds one. It is read again each
    /// time when the gateway connects.
    #[arg(value_name = "FROM")]
    from: String,
    /// The channel that they go to.
    #[arg(value_name = "TO")]
    to: String,
    /// Pushes that wait to be passed on; of more, the oldest is discarded.
    #[arg(long, value_name = "N", default_value_t = GatewayConfig::default().queue_pushes)]
    queue_events: usize,
    /// Octets of them.
    #[arg(long, value_name = "N", default_value_t = GatewayConfig::default().queue_octets)]
    queue_octets: usize,
    /// How urgent its subscription is: an RT_Info of the first channel's scheduler. Without it, what the consumers at the other
    /// one say.
    #[arg(long, value_name = "N")]
    rt_info: Option<i32>,
    /// How often to try in a row before it gives up.
    #[arg(long, value_name = "N", default_value_t = GatewayConfig::default().tries_max,
        value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// How often to ask whether the channels are there.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    ping_every: Duration,
    #[command(flatten)]
    calling: Calling,
    #[command(flatten)]
    server: ServerChoices,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
}

impl Gateway {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals()?;
        let orb = self.calling.serving_orb(&self.server)?;
        let ends = Ends {
            from: find(&orb, &self.from),
            to: find(&orb, &self.to),
        };
        let config = GatewayConfig {
            queue_pushes: self.queue_events,
            queue_octets: self.queue_octets,
            rt_info: self.rt_info,
            tries_max: self.tries,
            ping_every: self.ping_every,
            ..GatewayConfig::default()
        };
        orb.root_poa()?;
        let serving = super::serve_beside(&orb)?;
        let gateway = Running::start(&orb, ends, config, tell)?;
        while !interrupt.requested() && !gateway.has_ended() {
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
        Ok(match gave_up {
            true => ExitCode::from(NO),
            false => ExitCode::SUCCESS,
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
            "{received} events came, {forwarded} went on, {expired} may pass no more gateways, {} were discarded",
            discarded_full + discarded_lost
        ))
    }
}

/// Reads the REF anew each time: a file of a channel that was started again has another one.
fn find(orb: &Orb, argument: &str) -> Find {
    let (orb, argument) = (orb.clone(), argument.to_owned());
    Box::new(move || {
        let text = inspect::reference_text(&argument).map_err(|error| {
            eprintln!("rtorb: {argument}: {error}");
            SystemException::from(rtorb::ExceptionKind::InvObjref)
        })?;
        channel_of(&orb, &text)
    })
}

fn tell(news: &News) {
    eprintln!("gateway: {news}");
}

/// How soon an interrupt is seen.
const LOOK_EVERY_NS: u64 = 50_000_000;
