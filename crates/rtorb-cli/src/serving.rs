//! One object of an interface that is known only at run time, served until a signal.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use rtorb::ior::Ior;
use rtorb::recorder::ReadError;
use rtorb::{ObjectRef, Orb, Poa, PoaError, PoaPolicies};
use rtorb_dynamic::recording::{Log, Record, Recording};
use rtorb_dynamic::search::FoundInterface;
use rtorb_dynamic::{OwnReference, Servant, activate, standing_for};
use rtorb_services::recorder::{self, RecorderError};

use crate::named_file;
use crate::orb_options::usage;
use crate::output::note;

/// Options of the served object.
#[derive(Debug, Args)]
pub(crate) struct ServingOptions {
    /// File to write the reference to. It is written atomically, when the server is ready.
    #[arg(long, value_name = "FILE")]
    ior_file: Option<PathBuf>,
    /// Object key: corbaloc::HOST:PORT/NAME leads to the object.
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Maximum size of the recorded session in bytes. The recording ends there; calls go on.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    bytes_max: u64,
}

/// An object that is served.
pub(crate) struct Serving {
    orb: Orb,
    ior: Ior,
    out: Option<PathBuf>,
    /// The log in the file `out`, once it serves.
    log: Arc<OnceLock<Log>>,
}

impl ServingOptions {
    /// Returns the maximum size of the recorded session.
    pub(crate) const fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Listens, and activates a servant whose calls are recorded in the file `out` and given to `print`. `warn` gets the
    /// reason when a call cannot be written to the file. Clients wait for both. No request comes in before [`run`](Self::run).
    pub(crate) fn activate(
        &self,
        orb: &Orb,
        own: &OwnReference,
        served: Served<impl FnOnce(&Poa, Sink) -> Result<ObjectRef, PoaError>>,
        print: impl Fn(&Record) + Send + Sync + 'static,
        warn: impl Fn(String) + Send + Sync + 'static,
    ) -> anyhow::Result<Serving> {
        let log = Arc::new(OnceLock::<Log>::new());
        let own_log = Arc::clone(&log);
        let sink = move |record: &Record| {
            print(record);
            if let Some(Err(error)) = own_log.get().map(|log| log.write(record)) {
                warn(error.to_string());
            }
        };
        serve_recorder(orb)?;
        let poa = orb.root_poa()?.create_poa("rtorb", served.policies)?;
        let object = (served.activate)(&poa, Box::new(sink))?;
        let mut ior = object.ior().clone();
        if let Some(key) = &self.key {
            let bound = orb.bind_object_key(key, &object);
            bound.map_err(|error| usage(format!("--key {key}: {error}")))?;
            // The client must not see two references that it cannot know to be of one object.
            ior = ior.with_object_key(key.as_bytes());
        }
        if let Some(target) = &served.target {
            ior = standing_for(&ior, target);
        }
        own.set(&ior);
        Ok(Serving {
            orb: orb.clone(),
            ior,
            out: served.out,
            log,
        })
    }

    /// Empties the file for the calls, serves, writes the reference, and ends by SIGTERM or SIGINT, which first calls `end`. Returns
    /// false if the recording is not complete.
    pub(crate) fn run(
        &self,
        serving: &Serving,
        end: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<bool> {
        if let Some(path) = &serving.out {
            let log = Log::create(path, self.bytes_max).map_err(named_file::unwritable(path))?;
            serving.log.get_or_init(|| log);
        }
        serving.orb.shutdown_on_signals(end)?;
        serving.orb.run_with(|| {
            let text = format!("{}\n", serving.ior);
            if let Some(file) = &self.ior_file {
                named_file::write(file, text.as_bytes())?;
            }
            for endpoint in serving.orb.endpoints() {
                note!("serving {} at {endpoint}", serving.ior.type_id);
            }
            anyhow::Ok(())
        })?;
        Ok(serving.log.get().is_none_or(|log| log.is_complete()))
    }
}

/// Serves the counters of the recorder, if this process has one.
pub(crate) fn serve_recorder(orb: &Orb) -> Result<(), RecorderError> {
    match recorder::serve(orb) {
        Ok(_) | Err(RecorderError::Recorder(ReadError::NoRecorder { .. })) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A servant, the policies of its adapter, and the file for its calls.
pub(crate) struct Served<A> {
    /// Activates the servant, which gives its records to the sink.
    pub(crate) activate: A,
    pub(crate) policies: PoaPolicies,
    pub(crate) out: Option<PathBuf>,
    /// The reference of the object for which a proxy stands.
    pub(crate) target: Option<Ior>,
}

/// The destination of the records of calls.
pub(crate) type Sink = Box<dyn Fn(&Record) + Send + Sync>;

/// Activates a servant of a known interface, whose calls are recorded.
pub(crate) fn recorded<'f>(
    servant: impl Servant + 'static,
    found: &'f FoundInterface,
    orb: &'f Orb,
    own: &'f OwnReference,
) -> impl FnOnce(&Poa, Sink) -> Result<ObjectRef, PoaError> + 'f {
    move |poa, sink| {
        let recording = Recording::new(servant, found, orb, own, sink);
        activate(poa, &found.interface, &found.types, recording)
    }
}
