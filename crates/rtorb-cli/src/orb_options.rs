//! Options of an ORB on the command line of `rtorb`: each is an `-ORB` option with another name.

use core::fmt;
use std::path::PathBuf;
#[cfg(feature = "laboratory")]
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use clap::builder::PossibleValuesParser;
#[cfg(feature = "laboratory")]
use rtorb::security::{SecureTransport, SecurityFiles};
use rtorb::{
    ConnectionStrategy, DispatchStrategy, OrbBuilder, OrbConfig, OrbError, PoaError, Strategies,
    WaitStrategy,
};
use rtorb_sched::text_file::{FileErrors, from_toml, read_text};

use crate::named_file::file_error;
use crate::output::warn;

/// Options of the ORB of a client.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "ORB")]
pub(crate) struct ClientOptions {
    /// TOML file with options of the ORB (docs/reference/options.md). Options of the command line override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Preset of connection, wait and dispatch strategies: an architecture.
    #[arg(long, value_name = "NAME", value_parser = names(&Strategies::PRESETS))]
    preset: Option<String>,
    /// Connection strategy: how calls share connections. Overrides the preset's.
    #[arg(long, value_name = "NAME", value_parser = names(&ConnectionStrategy::ALL))]
    connection: Option<String>,
    /// Wait strategy: what a thread does until its reply arrives. Overrides the preset's.
    #[arg(long, value_name = "NAME", value_parser = names(&WaitStrategy::ALL))]
    wait: Option<String>,
    /// Priority bands, each with its own connection: LOW-HIGH,..., such as 0-9,10-99.
    #[arg(long, value_name = "BANDS")]
    bands: Option<String>,
    /// Mapping of CORBA priorities to priorities of this host [default: native, or the configuration file's].
    #[arg(long, value_name = "NAME", value_parser = ["native", "linear", "continuous"])]
    priority_mapping: Option<String>,
    /// Native code set of char and string data [default: UTF-8, or the configuration file's].
    #[arg(long, value_name = "NAME", value_parser = ["UTF-8", "ISO-8859-1", "ISO-8859-15"])]
    native_char_code_set: Option<String>,
    /// Continue with a warning if the host refuses real-time scheduling.
    #[arg(long)]
    best_effort: bool,
    #[command(flatten)]
    tls: Box<TlsOptions>,
    /// TLS: make no connection over TCP without it. UNIX sockets and shared memory stay on this host, and are possible.
    #[arg(long)]
    tls_required: bool,
    /// Initial reference, such as NameService=corbaloc::HOST:2809/NameService: the object of corbaloc:rir:/NAME and
    /// corbaname:rir:#... May be given more than once.
    #[arg(long, value_name = "NAME=REF")]
    init_ref: Vec<String>,
}

/// The files of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct TlsOptions {
    /// TLS: file with this program's certificate, in PEM, if a peer asks for one. It needs --tls-key.
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<String>,
    /// TLS: file with the key of the certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// TLS: file with the certificates of the trusted authorities, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<String>,
    /// TLS: file with lists of revoked certificates, in PEM.
    #[arg(long, value_name = "FILE")]
    tls_crl: Option<String>,
}

#[cfg(feature = "laboratory")]
impl TlsOptions {
    /// Returns true if no file is named.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if this program's certificate is named, and who signs those of its peers.
    pub(crate) fn has_both_sides(&self) -> bool {
        [&self.tls_certificate, &self.tls_key, &self.tls_ca]
            .iter()
            .all(|file| file.is_some())
    }

    /// Makes the TLS of what is no ORB; `None` if no file is named.
    pub(crate) fn transport(&self) -> anyhow::Result<Option<Arc<dyn SecureTransport>>> {
        let path = |file: &Option<String>| file.as_ref().map(PathBuf::from);
        let mut files = SecurityFiles::default();
        files.certificate = path(&self.tls_certificate);
        files.key = path(&self.tls_key);
        files.authorities = path(&self.tls_ca);
        files.revocations = path(&self.tls_crl);
        if files.is_empty() {
            return Ok(None);
        }
        #[cfg(feature = "tls")]
        let made = rtorb_tls::transport(&files);
        #[cfg(not(feature = "tls"))]
        let made = Err(WITHOUT_TLS);
        made.map(Some).map_err(usage)
    }
}

/// The reason why a command is not possible that needs TLS.
#[cfg(not(feature = "tls"))]
pub(crate) const WITHOUT_TLS: &str = "this program was built without TLS: build rtorb-cli with the feature `tls` (cargo build -p rtorb-cli --features tls)";

/// Further options of the ORB of a server.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "ORB of a server")]
pub(crate) struct ServerOptions {
    /// Endpoint to listen on: iiop://HOST:PORT, ssliop://HOST:PORT (TLS), uiop:///PATH, shmiop:///PATH, or inherited://NAME for the sockets with
    /// that name which a service manager passed. May be given more than once [default: a free port of the loopback interface].
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<String>,
    /// Dispatch strategy: which thread calls the servant. Overrides the preset's.
    #[arg(long, value_name = "NAME", value_parser = names(&DispatchStrategy::ALL))]
    dispatch: Option<String>,
    /// Number of threads of worker_pool and leader_followers [default: 4, or the configuration file's].
    #[arg(long, value_name = "N")]
    pool_threads: Option<String>,
    /// Number of static and dynamic threads of each CORBA priority, for lanes and filter_chain: PRIORITY:STATIC[+DYNAMIC],...,
    /// such as 60:1,10:2+4.
    #[arg(long, value_name = "LANES")]
    lanes: Option<String>,
    /// Scheduling policy of threads with a CORBA priority [default: SCHED_FIFO, or the configuration file's].
    #[arg(long, value_name = "POLICY", value_parser = ["SCHED_FIFO", "SCHED_RR"])]
    sched_policy: Option<String>,
    /// TLS: what the server asks of its clients [default: required, or the configuration file's].
    #[arg(long, value_name = "WHAT", value_parser = ["required", "optional", "none"])]
    tls_clients: Option<String>,
}

impl ClientOptions {
    /// Applies these options.
    pub(crate) fn apply(&self, builder: OrbBuilder) -> OrbBuilder {
        with_tls(builder)
            .on_warning(|warning| warn(warning))
            .args(self.arguments())
    }

    /// Returns true if the mapping of priorities is `linear`, or may be: a configuration file may choose it.
    pub(crate) fn maps_linearly(&self) -> bool {
        match &self.priority_mapping {
            Some(name) => name == "linear",
            None => self.config.is_some(),
        }
    }

    fn arguments(&self) -> Vec<String> {
        let config = self.config.as_ref().map(|path| path.display().to_string());
        let best_effort = self.best_effort.then(|| "yes".to_owned());
        let tls_required = self.tls_required.then(|| "yes".to_owned());
        let mut arguments = arguments([
            ("-ORBConfigFile", &config),
            ("-ORBPreset", &self.preset),
            ("-ORBConnection", &self.connection),
            ("-ORBWait", &self.wait),
            ("-ORBBands", &self.bands),
            ("-ORBPriorityMapping", &self.priority_mapping),
            ("-ORBNativeCharCodeSet", &self.native_char_code_set),
            ("-ORBBestEffort", &best_effort),
            ("-ORBTlsCertificate", &self.tls.tls_certificate),
            ("-ORBTlsKey", &self.tls.tls_key),
            ("-ORBTlsCa", &self.tls.tls_ca),
            ("-ORBTlsCrl", &self.tls.tls_crl),
            ("-ORBTlsRequired", &tls_required),
        ]);
        for named in &self.init_ref {
            arguments.extend(["-ORBInitRef".to_owned(), named.clone()]);
        }
        arguments
    }
}

impl ServerOptions {
    /// Applies these options and those of a client.
    pub(crate) fn apply(&self, client: &ClientOptions, builder: OrbBuilder) -> OrbBuilder {
        let listen = (!self.listen.is_empty()).then(|| self.listen.join(";"));
        let own = arguments([
            ("-ORBListenEndpoints", &listen),
            ("-ORBDispatch", &self.dispatch),
            ("-ORBPoolThreads", &self.pool_threads),
            ("-ORBLanes", &self.lanes),
            ("-ORBSchedPolicy", &self.sched_policy),
            ("-ORBTlsClients", &self.tls_clients),
        ]);
        with_tls(builder)
            .on_warning(|warning| warn(warning))
            .args(client.arguments().into_iter().chain(own))
    }
}

impl ServerOptions {
    /// Returns the lanes as given, and removes them from the ORB's options. For a command with its own meaning of lanes.
    pub(crate) fn take_lanes(&mut self) -> Option<String> {
        self.lanes.take()
    }

    /// Sets the ORB's lanes, if its dispatch strategy is `lanes`.
    pub(crate) fn set_lanes(&mut self, lanes: String) {
        if self.dispatch.as_deref() == Some("lanes") {
            self.lanes = Some(lanes);
        }
    }
}

/// Has the ORB speak TLS, if this program was built with it.
fn with_tls(builder: OrbBuilder) -> OrbBuilder {
    #[cfg(feature = "tls")]
    let builder = builder.security_provider(rtorb_tls::transport);
    builder
}

/// Wrong arguments. The text names the argument and says what is allowed.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl UsageError {
    /// Makes an error from a text that names the argument and says what is allowed.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Makes an error of wrong arguments from the text of another error.
pub(crate) fn usage(error: impl ToString) -> anyhow::Error {
    anyhow!(UsageError::new(error.to_string()))
}

/// Makes an error of a wrong option from the text of another error, which names the option by a field.
pub(crate) fn usage_of(error: impl ToString, field: &str, option: &str) -> anyhow::Error {
    usage(error.to_string().replacen(field, option, 1))
}

/// The same for an option that is named as its field.
pub(crate) fn usage_of_field(error: impl ToString, field: &str) -> anyhow::Error {
    usage_of(error, field, &format!("--{}", field.replace('_', "-")))
}

/// Converts the ORB's error, with the name that the option has on this command line. A wrong option is a [`UsageError`]; a
/// refusal of the host is not.
pub(crate) fn option_error(error: OrbError) -> anyhow::Error {
    if !is_usage_error(&error) {
        return anyhow!(error);
    }
    if let OrbError::ConfigFile { path, .. } = &error
        && let Ok(text) = read_text(path)
        && let Err(mistakes) = from_toml::<OrbConfig>(&text)
    {
        return file_error(FileErrors::new(path, text, mistakes));
    }
    anyhow!(UsageError(text_of(&error)))
}

/// Returns the text of an error, with the names that the options have on this command line.
fn text_of(error: &OrbError) -> String {
    let ours = |option| OPTION_NAMES.iter().find(|(theirs, _)| *theirs == option);
    match error {
        OrbError::Option { option, reason } => {
            let named = OPTION_NAMES.iter();
            let reason = named.fold(reason.clone(), |text, (theirs, ours)| {
                text.replace(theirs, ours)
            });
            let name = ours(option).map_or(option.as_str(), |(_, ours)| ours);
            format!("{name}: {reason}")
        }
        OrbError::Several(errors) => {
            let texts: Vec<String> = errors.iter().map(text_of).collect();
            texts.join("\n")
        }
        _ => error.to_string(),
    }
}

/// The `-ORB` options whose values only the ORB checks, or which its texts name, and their names on this command line.
const OPTION_NAMES: [(&str, &str); 8] = [
    ("-ORBBands", "--bands"),
    ("-ORBInitRef", "--init-ref"),
    ("-ORBLanes", "--lanes"),
    ("-ORBListenEndpoints", "--listen"),
    ("-ORBPoolThreads", "--pool-threads"),
    ("-ORBPriorityMapping", "--priority-mapping"),
    ("-ORBTlsCa", "--tls-ca"),
    ("-ORBTlsRequired", "--tls-required"),
];

/// Returns true if the options are wrong, and false if the host is the cause.
fn is_usage_error(error: &OrbError) -> bool {
    matches!(
        error,
        OrbError::Option { .. }
            | OrbError::ConfigFile { .. }
            | OrbError::Endpoint(_)
            | OrbError::Several(_)
            | OrbError::Poa(PoaError::InvalidPolicy { .. })
    )
}

fn arguments<const N: usize>(chosen: [(&str, &Option<String>); N]) -> Vec<String> {
    let named = chosen
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value.clone()?]));
    named.flatten().collect()
}

/// Accepts the names of strategies. The error for another name lists them.
fn names<T, const N: usize>(all: &[(&'static str, T); N]) -> PossibleValuesParser {
    PossibleValuesParser::new(all.each_ref().map(|(name, _)| *name))
}
