//! One object of an interface that is known only at run time, served until a signal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rtorb::ior::Ior;
use rtorb::{ObjectRef, Orb, Poa, PoaError, PoaPolicies};
use rtorb_dynamic::recording::{Log, Record, Recording};
use rtorb_dynamic::search::FoundInterface;
use rtorb_dynamic::{OwnReference, Servant, activate, standing_for, with_object_key};

use crate::named_file;
use crate::orb_options::usage;
use crate::output::{note, warn};

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
    log: Option<Arc<Log>>,
}

impl ServingOptions {
    /// Activates a servant whose calls are recorded in the file `out` and given to `print`.
    pub(crate) fn activate(
        &self,
        orb: &Orb,
        own: &OwnReference,
        served: Served<impl FnOnce(&Poa, Sink) -> Result<ObjectRef, PoaError>>,
        print: impl Fn(&Record) + Send + Sync + 'static,
    ) -> anyhow::Result<Serving> {
        let create = |path: &Path| {
            let log = Log::create(path, self.bytes_max).map(Arc::new);
            log.map_err(named_file::unwritable(path))
        };
        let log = served.out.as_deref().map(create).transpose()?;
        let own_log = log.clone();
        let sink = move |record: &Record| {
            print(record);
            if let Some(Err(error)) = own_log.as_ref().map(|log| log.write(record)) {
                warn(error);
            }
        };
        let root = orb.root_poa()?;
        let poa = root.create_poa("rtorb", served.policies)?;
        let object = (served.activate)(&poa, Box::new(sink))?;
        let mut ior = object.ior().clone();
        if let Some(key) = &self.key {
            let bound = orb.bind_object_key(key, &object);
            bound.map_err(|error| usage(format!("--key {key}: {error}")))?;
            // The client must not see two references that it cannot know to be of one object.
            ior = with_object_key(&ior, key);
        }
        if let Some(target) = &served.target {
            ior = standing_for(&ior, target);
        }
        own.set(&ior);
        root.manager().activate();
        poa.manager().activate();
        let orb = orb.clone();
        Ok(Serving { orb, ior, log })
    }

    /// Serves, writes the reference, and ends by SIGTERM or SIGINT, which first calls `end`. Returns false if the recording is
    /// not complete.
    pub(crate) fn run(
        &self,
        serving: &Serving,
        end: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<bool> {
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
        Ok(serving.log.as_ref().is_none_or(|log| log.is_complete()))
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
