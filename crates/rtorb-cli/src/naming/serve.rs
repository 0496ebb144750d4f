//! `rtorb naming serve`: the service itself.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::Args;
use rtorb::Orb;
use rtorb_lab::processes::interrupt::on_signal;
use rtorb_lab::results::write_atomically;
use rtorb_services::naming::client::PORT;
use rtorb_services::naming::{NamingConfig, NamingError, NamingService};

use crate::orb_options::{ClientChoices, Misuse, ServerChoices, in_our_words};

/// Serve names until SIGTERM or SIGINT.
///
/// Without --listen, on port 2809 of the loopback interface, where clients of this host look when nobody tells them more. The
/// root context's key is NameService: corbaloc::HOST:PORT/NameService.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The file in which names are kept; it is made where there is none. What a client was told is done is in it, whatever
    /// happens to the process or the host. Without it, names are kept in memory only.
    #[arg(long, value_name = "PLACE")]
    store: Option<PathBuf>,
    /// Where to write the root context's reference, in whole and only when the service is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Names in all contexts; one more is NO_RESOURCES. Memory for their table is taken at the beginning.
    #[arg(long, value_name = "N")]
    bindings_max: Option<usize>,
    /// Contexts, with a name or without; one more is NO_RESOURCES.
    #[arg(long, value_name = "N")]
    contexts_max: Option<usize>,
    /// Octets of all names and references; more is NO_RESOURCES.
    #[arg(long, value_name = "N")]
    octets_max: Option<usize>,
    /// Iterators that clients have at a time; beyond it, the one unused longest is ended.
    #[arg(long, value_name = "N")]
    iterators_max: Option<usize>,
    #[command(flatten)]
    server: ServerChoices,
    #[command(flatten)]
    client: ClientChoices,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let usual = Orb::builder().listen(&format!("iiop://127.0.0.1:{PORT}"))?;
        let builder = self.server.apply(&self.client, usual);
        let orb = builder
            .and_then(|builder| builder.build())
            .map_err(in_our_words)?;
        let service = NamingService::serve(&orb, self.config()).map_err(in_words)?;
        orb.root_poa()?.manager().activate();
        let ending = orb.clone();
        on_signal(move || ending.shutdown()).context("cannot listen to signals")?;
        if let Some(file) = &self.ior_file {
            let text = format!("{}\n", service.reference().as_object());
            write_atomically(file, text.as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        self.tell(&orb, &service);
        orb.run()?;
        service.end();
        Ok(ExitCode::SUCCESS)
    }

    fn config(&self) -> NamingConfig {
        let usual = NamingConfig::default();
        NamingConfig {
            store: self.store.clone(),
            bindings_max: self.bindings_max.unwrap_or(usual.bindings_max),
            contexts_max: self.contexts_max.unwrap_or(usual.contexts_max),
            octets_max: self.octets_max.unwrap_or(usual.octets_max),
            iterators_max: self.iterators_max.unwrap_or(usual.iterators_max),
            ..usual
        }
    }

    fn tell(&self, orb: &Orb, service: &NamingService) {
        let statistics = service.statistics();
        match &self.store {
            Some(place) => eprintln!(
                "names are kept in {}: {} of them in {} contexts",
                place.display(),
                statistics.bindings,
                statistics.contexts
            ),
            None => {
                eprintln!("names are kept in memory only, and end with this process: see --store")
            }
        }
        for endpoint in orb.endpoints() {
            eprintln!("serving names at {endpoint}");
        }
    }
}

/// What the service says of its configuration or its store.
fn in_words(error: NamingError) -> anyhow::Error {
    let NamingError::Bound { bound, .. } = &error else {
        return anyhow!(error);
    };
    let option = bound.replace('_', "-");
    let told = error.to_string().replacen(bound, &format!("--{option}"), 1);
    anyhow!(Misuse::new(told))
}
