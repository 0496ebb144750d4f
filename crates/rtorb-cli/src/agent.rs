//! `rtorb lab agent`: runs servers for a laboratory on another host.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use rtorb_lab::processes::agent::AgentSecurity;
use rtorb_lab::processes::agent::protocol::PORT;
use rtorb_lab::processes::agent::server::Server;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::roles::allow_on_agent;

use crate::executable;
use crate::orb_options::{TlsOptions, usage};
use crate::output::{line, note, printable, warn};

/// Run servers for a laboratory on another host, which runs `rtorb measure --agent ADDR:PORT`.
///
/// The agent serves one laboratory after another until Ctrl-C. It ends the servers of a laboratory that disconnects, or whose host
/// answers nothing for eight seconds. A laboratory that it serves can start servers of the laboratory here, and no other program.
///
/// With --tls-certificate, --tls-key and --tls-ca, it serves laboratories that show a certificate of a trusted authority, which have
/// the same options (`rtorb keys` makes the files). Without them, it serves anyone who reaches the port, so it listens only on the
/// loopback interface, or with --insecure.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Address to listen on: one of this host that the laboratory reaches. The servers listen on it too.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = format!("127.0.0.1:{PORT}"), value_parser = address)]
    listen: String,
    /// Listen beyond the loopback interface without TLS: only on a network that you trust.
    #[arg(long, conflicts_with_all = ["tls_certificate", "tls_key", "tls_ca", "tls_crl"])]
    insecure: bool,
    #[command(flatten)]
    tls: TlsOptions,
}

/// Makes the TLS of an agent or of a laboratory; `None` if the options name no file.
pub(crate) fn security(tls: &TlsOptions) -> anyhow::Result<Option<AgentSecurity>> {
    Ok(tls.transport()?.map(|transport| AgentSecurity {
        transport,
        report: Arc::new(warn),
    }))
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
        if !self.tls.is_empty() && !self.tls.has_both_sides() {
            let missing = "an agent with TLS needs --tls-certificate, --tls-key and --tls-ca: it shows a certificate, and wants those of laboratories";
            return Err(usage(missing));
        }
        let security = security(&self.tls)?;
        let secure = security.as_ref();
        let mut server = Server::bind(&self.listen, secure, executable, allow_on_agent, interrupt)?;
        let address = server.address();
        if secure.is_none() && !address.ip().is_loopback() {
            let who = format!("anyone who reaches {address} can start servers here");
            if !self.insecure {
                return Err(usage(format!(
                    "{who}: give --tls-certificate, --tls-key and --tls-ca (`rtorb keys` makes the files), or --insecure on a network that you trust"
                )));
            }
            note!("warning: there is no authentication: {who}");
        }
        line(format!("agent listens on {address}"))?;
        server.run(&mut |text| note!("{}", printable(text)));
        Ok(ExitCode::SUCCESS)
    }
}
