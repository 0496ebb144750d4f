//! `rtorb naming serve`: serves names.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use rtorb::Orb;
use rtorb_results::is_wrong_path;
use rtorb_services::naming::client::PORT;
use rtorb_services::naming::{NamingConfig, NamingError, NamingService, StoreError};

use crate::named_file;
use crate::orb_options::{ClientOptions, ServerOptions, option_error, usage, usage_of_field};
use crate::output::note;
use crate::serving::serve_recorder;
use crate::supervisor;

/// Serve names until SIGTERM or SIGINT.
///
/// The default endpoint is port 2809 of the loopback interface, where clients of this host look by default. The object key of
/// the root context is NameService: corbaloc::HOST:PORT/NameService. Clients of the JDK's ORB find it by -ORBInitialHost and
/// -ORBInitialPort.
#[derive(Debug, Args)]
#[command(mut_arg("listen", |arg| arg.help(
    "Endpoint to listen on: iiop://HOST:PORT, uiop:///PATH, shmiop:///PATH, or inherited://NAME for the sockets with that name which a \
     service manager passed. May be given more than once [default: iiop://127.0.0.1:2809]"
)))]
pub(super) struct Serve {
    /// File that stores the names; it is made if it does not exist. A change that was acknowledged to a client is in the file,
    /// even if the process or the host fails afterwards. Without it, names are kept in memory only. etcd://HOST:PORT/PREFIX keeps
    /// them in etcd, where several naming services share them; this needs the feature `etcd` of the command.
    #[arg(long, value_name = "PLACE")]
    store: Option<PathBuf>,
    /// File to write the root context's reference to. It is written atomically, when the service is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Maximum number of names in all contexts; one more gets NO_RESOURCES. Memory for their table is reserved at the start.
    #[arg(long, value_name = "N", default_value_t = NamingConfig::default().bindings_max)]
    bindings_max: usize,
    /// Maximum number of contexts, named or not; one more gets NO_RESOURCES.
    #[arg(long, value_name = "N", default_value_t = NamingConfig::default().contexts_max)]
    contexts_max: usize,
    /// Maximum size of all names and references in bytes; more gets NO_RESOURCES.
    #[arg(long, value_name = "N", default_value_t = NamingConfig::default().bytes_max)]
    bytes_max: usize,
    /// Maximum number of iterators of all clients. Beyond it, the least recently used one is destroyed.
    #[arg(long, value_name = "N", default_value_t = NamingConfig::default().iterators_max)]
    iterators_max: usize,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    client: ClientOptions,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let usual = Orb::builder().listen(&format!("iiop://127.0.0.1:{PORT}"));
        let builder = self.server.apply(&self.client, usual);
        let orb = builder.build().map_err(option_error)?;
        let service = self.serve(&orb)?;
        serve_recorder(&orb)?;
        orb.shutdown_on_signals(supervisor::tell_end)?;
        orb.run_with(|| {
            if let Some(file) = &self.ior_file {
                let text = format!("{}\n", service.reference().as_object());
                named_file::write(file, text.as_bytes())?;
            }
            self.print_start(&orb, &service);
            supervisor::tell_ready(&orb, KEY);
            anyhow::Ok(())
        })?;
        service.end();
        Ok(ExitCode::SUCCESS)
    }

    fn serve(&self, orb: &Orb) -> anyhow::Result<NamingService> {
        let url = self.store.as_ref().and_then(|store| store.to_str());
        match url.filter(|url| url.starts_with(ETCD)) {
            Some(url) => serve_from_etcd(orb, self.config(), url),
            None => {
                let store = self.store.clone();
                let config = NamingConfig {
                    store,
                    ..self.config()
                };
                NamingService::serve(orb, config).map_err(naming_error)
            }
        }
    }

    fn config(&self) -> NamingConfig {
        NamingConfig {
            bindings_max: self.bindings_max,
            contexts_max: self.contexts_max,
            bytes_max: self.bytes_max,
            iterators_max: self.iterators_max,
            ..NamingConfig::default()
        }
    }

    fn print_start(&self, orb: &Orb, service: &NamingService) {
        let statistics = service.statistics();
        match &self.store {
            Some(place) => note!(
                "names are kept in {}: {} of them in {} contexts",
                place.display(),
                statistics.bindings,
                statistics.contexts
            ),
            None => {
                note!(
                    "names are kept in memory only and are lost when this process ends: see --store"
                )
            }
        }
        for endpoint in orb.endpoints() {
            note!("serving names at {endpoint}");
        }
    }
}

/// The object key of the root context.
const KEY: &str = "NameService";

#[cfg(feature = "etcd")]
fn serve_from_etcd(orb: &Orb, config: NamingConfig, url: &str) -> anyhow::Result<NamingService> {
    use rtorb_etcd::{EtcdError, EtcdStore};

    let store = EtcdStore::open(url).map_err(|error| match error {
        EtcdError::Location(_) | EtcdError::Client(_) => usage(error),
        error => anyhow!(error),
    })?;
    NamingService::serve_shared(orb, config, std::sync::Arc::new(store)).map_err(naming_error)
}

#[cfg(not(feature = "etcd"))]
fn serve_from_etcd(_: &Orb, _: NamingConfig, url: &str) -> anyhow::Result<NamingService> {
    Err(usage(format!(
        "--store {url}: this rtorb was built without etcd; install protobuf-compiler and libprotobuf-dev, and build it with `cargo build --release --features \
         rtorb-cli/etcd`"
    )))
}

/// Converts an error of the service's configuration or store.
fn naming_error(error: NamingError) -> anyhow::Error {
    let bound = match &error {
        NamingError::Bound { bound, .. } => bound,
        NamingError::Store {
            why: StoreError::Io(cause),
            ..
        } if is_wrong_path(cause) => return usage(error),
        NamingError::Store {
            why: StoreError::Foreign { .. } | StoreError::Newer { .. } | StoreError::TooMuch { .. },
            ..
        } => return usage(error),
        _ => return anyhow!(error),
    };
    usage_of_field(&error, bound)
}

/// What the URL of a store in etcd begins with.
const ETCD: &str = "etcd://";
