//! `rtorb locate`: forwards clients to servers, and starts those that do not run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use rtorb::Orb;
use rtorb_services::location::{LocatorConfig, LocatorError, LocatorEvent, serve};

use crate::background_printer::{BackgroundPrinter, PATIENCE};
use crate::named_file;
use crate::orb_options::{ClientOptions, ServerOptions, option_error, usage};
use crate::output::note;
use crate::reference::builder;
use crate::serving::serve_recorder;
use crate::supervisor;

/// Forward clients to servers wherever these run, and start servers that do not run, until SIGTERM or SIGINT (docs/how-to/service.md).
///
/// Clients use the address of the locator with the object key that the object has in its server. So a reference stays valid when the
/// server starts again on another port or host. It is what other ORBs call an implementation repository.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    mut_arg("listen", |arg| arg.help(
        "Endpoint to listen on: iiop://HOST:PORT, uiop:///PATH, shmiop:///PATH, or inherited://NAME for the sockets with that name which \
         a service manager passed. May be given more than once [default: iiop://127.0.0.1:2811]"
    ))
)]
pub(crate) struct Locate {
    /// File of the servers, in TOML. It is read at the start.
    #[arg(value_name = "FILE")]
    servers: PathBuf,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    client: ClientOptions,
}

impl Locate {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let text = named_file::read_text(&self.servers, FILE_BYTES_MAX)?;
        let wrong = |error: LocatorError| usage(format!("{}: {error}", self.servers.display()));
        let config = LocatorConfig::parse(&text).map_err(wrong)?;
        let usual = builder().listen(&format!("iiop://127.0.0.1:{PORT}"));
        let orb = self.server.apply(&self.client, usual).build();
        let orb = orb.map_err(option_error)?;
        orb.root_poa()?;
        // A client must not wait for the reader of the output.
        let printer = Arc::new(BackgroundPrinter::on_stderr()?);
        let own_printer = Arc::clone(&printer);
        let tell = move |event: LocatorEvent| {
            own_printer.queue(event.to_string());
        };
        serve(&orb, &config, tell).map_err(wrong)?;
        serve_recorder(&orb)?;
        orb.shutdown_on_signals(supervisor::tell_end)?;
        orb.run_with(|| {
            print_start(&orb, &config);
            supervisor::tell_started();
            anyhow::Ok(())
        })?;
        printer.end(PATIENCE);
        Ok(ExitCode::SUCCESS)
    }
}

fn print_start(orb: &Orb, config: &LocatorConfig) {
    for server in &config.servers {
        let objects = server.adapters.iter().map(|path| format!("{path}/..."));
        let objects: Vec<String> = objects.chain(server.keys.iter().cloned()).collect();
        note!("locating {}: {}", server.name, objects.join(", "));
    }
    for endpoint in orb.endpoints() {
        note!("serving at {endpoint}");
    }
}

/// The port of the default endpoint.
const PORT: u16 = 2811;
const FILE_BYTES_MAX: u64 = 1 << 20;

const EXAMPLE: &str = "Example of FILE:
  [[server]]
  name = \"plant\"
  adapters = [\"Plant\"]                          # object keys Plant/...
  keys = [\"Clock\"]                              # bound keys
  reference = \"/run/plant.ior\"                  # or corbaname:, corbaloc:; read again each time
  start = [\"/usr/bin/plantd\", \"--ior-file\", \"/run/plant.ior\"]
  start_timeout_ms = 10000

Clients then use corbaloc::HOST:2811/Plant/valve and corbaloc::HOST:2811/Clock.";
