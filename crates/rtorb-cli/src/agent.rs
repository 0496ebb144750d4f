//! `rtorb lab agent`: runs servers for a laboratory on another host.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_lab::processes::agent::protocol::PORT;
use rtorb_lab::processes::agent::server::Server;
use rtorb_lab::processes::interrupt::Interrupt;

use crate::executable;
use crate::output::line;

/// Run the servers of a laboratory on another host: `rtorb measure --agent ADDR:PORT` there.
///
/// It serves one laboratory after another until Ctrl-C, and ends the servers of one that goes or falls silent. There is no
/// authentication: whoever reaches the port can have the laboratory's servers started, and no other program.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Where to listen: an address of this host that the laboratory reaches. Servers listen on it too.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = format!("127.0.0.1:{PORT}"))]
    listen: String,
}

impl Agent {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let executable = executable::own()?;
        let mut server = Server::bind(&self.listen, executable, interrupt)?;
        let address = server.address();
        if !address.ip().is_loopback() {
            eprintln!(
                "warning: whoever reaches {address} can have servers started here, for there is no authentication: keep it to a network that you trust"
            );
        }
        line(format!("agent listens on {address}"))?;
        server.run(&mut |text| eprintln!("{text}"));
        Ok(ExitCode::SUCCESS)
    }
}
