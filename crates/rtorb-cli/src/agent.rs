//! `rtorb lab agent`: runs servers for a laboratory on another host.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_lab::processes::agent::protocol::PORT;
use rtorb_lab::processes::agent::server::Server;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::roles::allow_on_agent;

use crate::executable;
use crate::output::{line, note};

/// Run servers for a laboratory on another host, which runs `rtorb measure --agent ADDR:PORT`.
///
/// The agent serves one laboratory after another until Ctrl-C. It ends the servers of a laboratory that disconnects, or whose host
/// answers nothing for eight seconds. There is no authentication: anyone who reaches the port can start the laboratory's servers, and
/// no other program.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Address to listen on: one of this host that the laboratory reaches. The servers listen on it too.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = format!("127.0.0.1:{PORT}"), value_parser = address)]
    listen: String,
}

/// Checks that an address of an agent has a host and a port.
pub(crate) fn address(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':');
    match parts.map(|(host, port)| (host, port.parse::<u16>())) {
        Some((host, Ok(_))) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err(format!(
            "{text:?} is no address of an agent: write ADDR:PORT, such as 192.0.2.7:{PORT}"
        )),
    }
}

impl Agent {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let executable = executable::own()?;
        let mut server = Server::bind(&self.listen, executable, allow_on_agent, interrupt)?;
        let address = server.address();
        if !address.ip().is_loopback() {
            note!(
                "warning: there is no authentication: anyone who reaches {address} can start servers here. Use it only on a network that you trust"
            );
        }
        line(format!("agent listens on {address}"))?;
        server.run(&mut |text| note!("{text}"));
        Ok(ExitCode::SUCCESS)
    }
}
