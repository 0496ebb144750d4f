//! `rtorb events serve`: a channel.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use rtorb::rt::Priority;
use rtorb::{DispatchStrategy, Limits, ObjectRef, Orb};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::results::write_atomically;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::events::filter::FilterKind;
use rtorb_services::events::plain::{PlainChannel, PlainConfig};
use rtorb_services::events::{
    Channel, ChannelConfig, ChannelError, Dispatching, WhenFull, strategies,
};
use rtorb_services::naming::client::{Context, Existing, Name, parse_name};

use super::list;
use crate::orb_options::{ClientChoices, Misuse, ServerChoices, in_our_words};
use crate::output::print_json;
use crate::reference::{builder, duration};

/// Serve an event channel until SIGTERM or SIGINT, or until somebody destroys it.
///
/// It is found under the key EventService: corbaloc::HOST:PORT/EventService. At the end it says what it has counted.
#[derive(Debug, Args)]
#[command(mut_arg("lanes", |arg| arg.help(
    "The CORBA priorities of the channel's lanes, most urgent first, each with a thread: 50,30,10. With --dispatch lanes, \
     suppliers are served by two threads of each as well [default: 0]"
)))]
pub(super) struct Serve {
    /// Where to write the channel's reference, in whole and only when it is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Which thread hands events to consumers.
    #[arg(long, value_name = "NAME", value_enum, default_value = "priority")]
    dispatching: DispatchingName,
    /// How subscriptions are read: groups that end where the next begins, or that say how many children they have.
    #[arg(long, value_name = "NAME", value_enum, default_value = "basic")]
    filtering: Filtering,
    /// Events that wait for one consumer.
    #[arg(long, value_name = "N")]
    queue_events: Option<usize>,
    /// Octets of them.
    #[arg(long, value_name = "N")]
    queue_octets: Option<usize>,
    /// Octets of one event; a larger one is discarded.
    #[arg(long, value_name = "N")]
    event_octets: Option<usize>,
    /// What becomes of an event for whose consumer there is no room: discard_oldest, discard_newest, wait:TIME (the supplier
    /// waits), disconnect (the consumer).
    #[arg(long, value_name = "POLICY", value_parser = when_full)]
    when_full: Option<WhenFull>,
    /// Consumers at a time.
    #[arg(long, value_name = "N")]
    consumers_max: Option<usize>,
    /// Suppliers at a time.
    #[arg(long, value_name = "N")]
    suppliers_max: Option<usize>,
    /// How long a consumer may take nothing while events wait for it, before it is dropped.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    hang_timeout: Option<Duration>,
    /// How often consumers and suppliers of which nothing is heard are asked whether they are there.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ping_every: Option<Duration>,
    /// Bind the channel to this name in the naming service (--init-ref NameService=REF says where that is).
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Serve a plain face as well (CosEventChannelAdmin, push only), and write its reference here.
    #[arg(long, value_name = "FILE")]
    cos_ior_file: Option<PathBuf>,
    /// The type of the events that plain suppliers push.
    #[arg(long, value_name = "N", default_value_t = PlainConfig::default().event_type, requires = "cos_ior_file",
        value_parser = clap::value_parser!(i32).range(16..))]
    cos_type: i32,
    /// Their source.
    #[arg(long, value_name = "N", default_value_t = PlainConfig::default().source, requires = "cos_ior_file",
        value_parser = clap::value_parser!(i32).range(1..))]
    cos_source: i32,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerChoices,
    #[command(flatten)]
    client: ClientChoices,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DispatchingName {
    /// The supplier's thread where it has the lane's priority, the lane's thread otherwise.
    Priority,
    /// Always the supplier's thread.
    Reactive,
    /// Always the lane's thread.
    Lanes,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Filtering {
    Basic,
    Prefix,
}

impl Serve {
    pub(super) fn run(mut self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals()?;
        let config = self.config()?;
        let orb = self.orb(&config)?;
        let channel = Channel::serve(&orb, config).map_err(in_words)?;
        let poa = orb.root_poa()?;
        let serving = super::serve_beside(&orb)?;
        let plain = match &self.cos_ior_file {
            Some(_) => Some(PlainChannel::serve(
                &poa,
                channel.reference(),
                self.plain(),
            )?),
            None => None,
        };
        let named = match &self.name {
            Some(name) => Some(Named::bind(&orb, name, channel.reference().as_object())?),
            None => None,
        };
        if let (Some(plain), Some(file)) = (&plain, &self.cos_ior_file) {
            write_reference(file, plain.reference().as_object())?;
        }
        if let Some(file) = &self.ior_file {
            write_reference(file, channel.reference().as_object())?;
        }
        for endpoint in orb.endpoints() {
            eprintln!("serving an event channel at {endpoint}, key EventService");
        }
        while !interrupt.requested() && !channel.is_destroyed() && !serving.is_finished() {
            sleep_until(monotonic_ns() + LOOK_EVERY_NS);
        }
        if let Some(named) = named {
            named.unbind();
        }
        drop(plain);
        let statistics = channel.statistics();
        channel.destroy();
        orb.shutdown();
        if let Ok(Some(served)) = serving.join() {
            served?;
        }
        match self.json {
            true => print_json(&statistics)?,
            false => list::print(&statistics)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn config(&mut self) -> anyhow::Result<ChannelConfig> {
        let usual = ChannelConfig::default();
        let lanes = match self.server.take_lanes() {
            Some(text) => lanes(&text).map_err(|error| anyhow!(Misuse::new(error)))?,
            None => usual.lanes.clone(),
        };
        let each: Vec<String> = lanes
            .iter()
            .map(|lane| format!("{}:2", lane.get()))
            .collect();
        self.server.set_lanes(each.join(","));
        let queue_octets = self.queue_octets.unwrap_or(usual.queue_octets);
        Ok(ChannelConfig {
            lanes,
            dispatching: match self.dispatching {
                DispatchingName::Priority => Dispatching::Priority,
                DispatchingName::Reactive => Dispatching::Reactive,
                DispatchingName::Lanes => Dispatching::Lanes,
            },
            filter: match self.filtering {
                Filtering::Basic => FilterKind::Basic,
                Filtering::Prefix => FilterKind::Prefix,
            },
            when_full: self.when_full.unwrap_or(usual.when_full),
            consumers_max: self.consumers_max.unwrap_or(usual.consumers_max),
            suppliers_max: self.suppliers_max.unwrap_or(usual.suppliers_max),
            queue_events: self.queue_events.unwrap_or(usual.queue_events),
            event_octets_max: self
                .event_octets
                .unwrap_or(usual.event_octets_max.min(queue_octets)),
            queue_octets,
            hang_timeout: self.hang_timeout.unwrap_or(usual.hang_timeout),
            ping_every: self.ping_every.unwrap_or(usual.ping_every),
            ..usual
        })
    }

    fn orb(&self, config: &ChannelConfig) -> anyhow::Result<Orb> {
        let usual = builder()
            .strategies(strategies(DispatchStrategy::ThreadPerConnection))
            .limits(config.limits(Limits::default()));
        let chosen = self.server.apply(&self.client, usual);
        chosen
            .and_then(|builder| builder.build())
            .map_err(in_our_words)
    }

    fn plain(&self) -> PlainConfig {
        PlainConfig {
            event_type: self.cos_type,
            source: self.cos_source,
            ..PlainConfig::default()
        }
    }
}

/// A name that the channel has while it is served.
struct Named {
    root: Context,
    name: Name,
}

impl Named {
    fn bind(orb: &Orb, text: &str, channel: &ObjectRef) -> anyhow::Result<Self> {
        let name = parse_name(text)
            .map_err(|error| anyhow!(Misuse::new(format!("--name {text}: {error}"))))?;
        let root = Context::root(orb).context(
            "no naming service to bind --name in: start one with `rtorb naming serve`, or say where one is with \
             --init-ref NameService=REF",
        )?;
        root.bind(&name, channel, Existing::Replace)
            .with_context(|| format!("--name {text}"))?;
        Ok(Self { root, name })
    }

    fn unbind(&self) {
        if let Err(failure) = self.root.unbind(&self.name) {
            eprintln!("rtorb: the channel's name stays bound: {failure}");
        }
    }
}

fn write_reference(file: &Path, object: &ObjectRef) -> anyhow::Result<()> {
    write_atomically(file, format!("{object}\n").as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))
}

/// What is wrong with a choice is misuse; what the host refuses is not.
fn in_words(error: ChannelError) -> anyhow::Error {
    match &error {
        ChannelError::Config { .. } | ChannelError::Strategies { .. } => {
            anyhow!(Misuse::new(error.to_string()))
        }
        _ => anyhow!(error),
    }
}

fn lanes(text: &str) -> Result<Vec<Priority>, String> {
    let wrong = |part: &str| {
        format!("--lanes {text}: {part:?} is no CORBA priority (0 to 32767): write 50,30,10")
    };
    text.split(',')
        .map(|part| {
            let number: i16 = part.trim().parse().map_err(|_| wrong(part))?;
            Priority::new(number).map_err(|_| wrong(part))
        })
        .collect()
}

fn when_full(text: &str) -> Result<WhenFull, String> {
    match text.split_once(':') {
        None if text == "discard_oldest" => Ok(WhenFull::DiscardOldest),
        None if text == "discard_newest" => Ok(WhenFull::DiscardNewest),
        None if text == "disconnect" => Ok(WhenFull::Disconnect),
        Some(("wait", time)) => Ok(WhenFull::Wait {
            at_most: duration(time)?,
        }),
        _ => Err("there are discard_oldest, discard_newest, wait:TIME, disconnect".to_owned()),
    }
}

/// How soon an interrupt is seen.
const LOOK_EVERY_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_priorities() {
        let numbers: Vec<i16> = lanes("50, 30,10")
            .unwrap()
            .iter()
            .map(|lane| lane.get())
            .collect();
        assert_eq!(numbers, [50, 30, 10]);
        for wrong in ["", "50,", "-1", "50:2", "40000"] {
            assert!(lanes(wrong).unwrap_err().contains("50,30,10"), "{wrong}");
        }
    }

    #[test]
    fn policies_for_a_full_queue_are_named() {
        let wait = WhenFull::Wait {
            at_most: Duration::from_millis(5),
        };
        assert_eq!(when_full("wait:5ms"), Ok(wait));
        assert_eq!(when_full("disconnect"), Ok(WhenFull::Disconnect));
        assert!(when_full("drop").unwrap_err().contains("discard_oldest"));
        assert!(when_full("wait:soon").unwrap_err().contains("500ms"));
    }
}
