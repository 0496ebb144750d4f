//! `rtorb events`: real-time event channels, their suppliers, consumers, gateways and federations.

mod federate;
mod followed_scheduler;
mod gateway;
mod list;
mod push;
mod serve;
mod text;
mod watch;

use std::process::ExitCode;
use std::sync::mpsc;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use rtorb::{Orb, OrbError, SystemException};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rtorb_services::events::client;
use rtorb_services::events::gateway::Find;
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::EventChannel;

use crate::output::warn;
use crate::reference::{self, reference_text};

/// Serve and use real-time event channels (TAO's RtecEventChannelAdmin).
#[derive(Debug, Args)]
pub(crate) struct Events {
    #[command(subcommand)]
    subcommand: EventsSubcommand,
}

#[derive(Debug, Subcommand)]
enum EventsSubcommand {
    Serve(Box<serve::Serve>),
    Push(push::Push),
    Watch(watch::Watch),
    List(list::List),
    Gateway(gateway::Gateway),
    Federate(Box<federate::Federate>),
}

impl Events {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.subcommand {
            EventsSubcommand::Serve(serve) => serve.run(),
            EventsSubcommand::Push(push) => push.run(),
            EventsSubcommand::Watch(watch) => watch.run(),
            EventsSubcommand::List(list) => list.run(),
            EventsSubcommand::Gateway(gateway) => gateway.run(),
            EventsSubcommand::Federate(federate) => federate.run(),
        }
    }
}

/// Returns the channel of a REF.
fn channel(orb: &Orb, argument: &str) -> anyhow::Result<EventChannel> {
    let object = reference::object(orb, argument)?;
    client::channel(&object).map_err(|exception| {
        anyhow!("{argument} is not an event channel, or does not reply: {exception}")
    })
}

/// Returns a function that reads the REF each time, because a restarted channel writes another reference to its file.
fn find(orb: &Orb, argument: &str) -> Find {
    let (orb, argument) = (orb.clone(), argument.to_owned());
    Box::new(move || {
        let found = reference_text(&argument).map_err(|error| {
            warn(format!("{argument}: {error}"));
            SystemException::from(rtorb::ExceptionKind::InvObjref)
        })?;
        client::channel_of(&orb, &found.text)
    })
}

/// Starts a thread that serves until the ORB is shut down, and waits until the ORB serves.
fn spawn_server(orb: &Orb) -> anyhow::Result<JoinHandle<Option<Result<(), OrbError>>>> {
    let server = orb.clone();
    let config = ThreadConfig::default();
    let (ready, is_ready) = mpsc::sync_channel(1);
    let serve = move || {
        server.run_with(|| {
            // It is waited for.
            let _ = ready.send(());
            Ok(())
        })
    };
    let thread = spawn("serving", &config, serve).context("cannot start the thread that serves")?;
    if is_ready.recv().is_ok() {
        return Ok(thread);
    }
    if let Ok(Some(ended)) = thread.join() {
        ended?;
    }
    bail!("the ORB ended before it served")
}
