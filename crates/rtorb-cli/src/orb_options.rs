//! The choices of an ORB on the command line of `rtorb`: each is an `-ORB` option by another name.

use core::fmt;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use clap::builder::PossibleValuesParser;
use rtorb::{
    ConnectionStrategy, DispatchStrategy, OrbBuilder, OrbError, PoaError, Strategies, WaitStrategy,
};

/// What a client chooses.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "ORB")]
pub(crate) struct ClientChoices {
    /// A TOML file with choices (docs/real-time.md); options go before it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The architecture: connection, wait and dispatch strategies that belong together.
    #[arg(long, value_name = "NAME", value_parser = names(&Strategies::PRESETS))]
    preset: Option<String>,
    /// How calls share connections. Goes before the preset's.
    #[arg(long, value_name = "NAME", value_parser = names(&ConnectionStrategy::ALL))]
    connection: Option<String>,
    /// What a thread does until its reply is there. Goes before the preset's.
    #[arg(long, value_name = "NAME", value_parser = names(&WaitStrategy::ALL))]
    wait: Option<String>,
    /// Priorities with connections of their own: LOW-HIGH,...
    #[arg(long, value_name = "BANDS")]
    bands: Option<String>,
    /// What a CORBA priority is on this host.
    #[arg(long, value_name = "NAME", value_parser = ["native", "linear", "continuous"])]
    priority_mapping: Option<String>,
    /// Go on, and say so, when the host refuses real-time scheduling.
    #[arg(long)]
    best_effort: bool,
    /// A name for an object, as NameService=corbaloc::HOST:2809/NameService: what corbaloc:rir:/NAME and corbaname:rir:#...
    /// stand for. May be given more than once.
    #[arg(long, value_name = "NAME=REF")]
    init_ref: Vec<String>,
}

/// What only a server chooses.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "ORB of a server")]
pub(crate) struct ServerChoices {
    /// An endpoint to listen on: iiop://HOST:PORT or uiop:///PATH. May be given more than once; without any, a free port of
    /// the loopback interface.
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<String>,
    /// Which thread calls the servant. Goes before the preset's.
    #[arg(long, value_name = "NAME", value_parser = names(&DispatchStrategy::ALL))]
    dispatch: Option<String>,
    /// Threads of worker_pool and leader_followers.
    #[arg(long, value_name = "N")]
    pool_threads: Option<String>,
    /// Threads of lanes and filter_chain by CORBA priority, static and dynamic ones: PRIORITY:STATIC[+DYNAMIC],...
    #[arg(long, value_name = "LANES")]
    lanes: Option<String>,
    /// How threads with a CORBA priority are scheduled.
    #[arg(long, value_name = "POLICY", value_parser = ["SCHED_FIFO", "SCHED_RR"])]
    sched_policy: Option<String>,
}

impl ClientChoices {
    /// Makes these choices.
    ///
    /// # Errors
    /// What the ORB says of them.
    pub(crate) fn apply(&self, builder: OrbBuilder) -> Result<OrbBuilder, OrbError> {
        builder.args(self.arguments())
    }

    fn arguments(&self) -> Vec<String> {
        let config = self.config.as_ref().map(|path| path.display().to_string());
        let best_effort = self.best_effort.then(|| "yes".to_owned());
        let mut arguments = arguments([
            ("-ORBConfigFile", &config),
            ("-ORBPreset", &self.preset),
            ("-ORBConnection", &self.connection),
            ("-ORBWait", &self.wait),
            ("-ORBBands", &self.bands),
            ("-ORBPriorityMapping", &self.priority_mapping),
            ("-ORBBestEffort", &best_effort),
        ]);
        for named in &self.init_ref {
            arguments.extend(["-ORBInitRef".to_owned(), named.clone()]);
        }
        arguments
    }
}

impl ServerChoices {
    /// Makes these choices, and those that a client has too.
    ///
    /// # Errors
    /// What the ORB says of them.
    pub(crate) fn apply(
        &self,
        client: &ClientChoices,
        builder: OrbBuilder,
    ) -> Result<OrbBuilder, OrbError> {
        let listen = (!self.listen.is_empty()).then(|| self.listen.join(";"));
        let own = arguments([
            ("-ORBListenEndpoints", &listen),
            ("-ORBDispatch", &self.dispatch),
            ("-ORBPoolThreads", &self.pool_threads),
            ("-ORBLanes", &self.lanes),
            ("-ORBSchedPolicy", &self.sched_policy),
        ]);
        builder.args(client.arguments().into_iter().chain(own))
    }
}

impl ServerChoices {
    /// The lanes as they were given, for a command that has a meaning of its own for them; the ORB has none then.
    pub(crate) fn take_lanes(&mut self) -> Option<String> {
        self.lanes.take()
    }

    /// Gives the ORB lanes, where it is to dispatch by them.
    pub(crate) fn set_lanes(&mut self, lanes: String) {
        if self.dispatch.as_deref() == Some("lanes") {
            self.lanes = Some(lanes);
        }
    }
}

/// Choices that make no sense; the text says which, and what would.
#[derive(Debug)]
pub(crate) struct Misuse(String);

impl Misuse {
    /// With a text that says what was given, and what would do.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// What the ORB says of a choice, by the name that it has on this command line; a [`Misuse`] if it is not the host's fault.
pub(crate) fn in_our_words(error: OrbError) -> anyhow::Error {
    if !is_misuse(&error) {
        return anyhow!(error);
    }
    let ours = match &error {
        OrbError::Option { option, reason } => {
            let named = OURS.iter().find(|(theirs, _)| theirs == option);
            named.map(|(_, ours)| format!("{ours}: {reason}"))
        }
        _ => None,
    };
    anyhow!(Misuse(ours.unwrap_or_else(|| error.to_string())))
}

/// Of the `-ORB` options whose values are not checked before the ORB sees them.
const OURS: [(&str, &str); 5] = [
    ("-ORBBands", "--bands"),
    ("-ORBInitRef", "--init-ref"),
    ("-ORBLanes", "--lanes"),
    ("-ORBListenEndpoints", "--listen"),
    ("-ORBPoolThreads", "--pool-threads"),
];

/// True for what is wrong with the choices, and not with the host.
fn is_misuse(error: &OrbError) -> bool {
    matches!(
        error,
        OrbError::Option { .. }
            | OrbError::ConfigFile { .. }
            | OrbError::Endpoint(_)
            | OrbError::Poa(PoaError::InvalidPolicy { .. })
    )
}

fn arguments<const N: usize>(chosen: [(&str, &Option<String>); N]) -> Vec<String> {
    let named = chosen
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value.clone()?]));
    named.flatten().collect()
}

/// The names of strategies, so that a wrong one is told with those that there are.
fn names<T, const N: usize>(all: &[(&'static str, T); N]) -> PossibleValuesParser {
    PossibleValuesParser::new(all.each_ref().map(|(name, _)| *name))
}
