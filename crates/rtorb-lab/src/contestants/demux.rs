//! Objects that do nothing, with one operation or three hundred, by the million: what the experiment `orb/demux` calls.

use std::error::Error;
use std::str::FromStr;

use rtorb::{Limits, Orb, SystemException};

use crate::contestants::burst::{self, Burst, Samples};
use crate::contestants::demux::idl::demux::{Large, LargeServant, Single, SingleServant};
use crate::contestants::server::Server;
use crate::contestants::{CALL_TIMEOUT, client_orb_builder};
use crate::processes::child::{Role, arguments, arguments_and_rest, is_tcp, number};

#[allow(missing_docs, clippy::all, reason = "generated")]
mod idl {
    rtorb::include_idl!("demux");
}

/// A server with many objects, and a client.
pub(crate) const ROLES: &[Role] = &[
    Role::here("demux-server", |words| {
        let [endpoint, operations, objects] = arguments(words)?;
        let server = open(endpoint, operations.parse()?, number(objects)?);
        server.map_err(|error| error.to_string())?.run()
    })
    .on_agent(|words| match *words {
        [endpoint, operations, objects] => {
            let is_count = number::<usize>(objects).is_ok_and(|objects| objects <= OBJECTS_MAX);
            is_tcp(endpoint) && operations.parse::<Kind>().is_ok() && is_count
        }
        _ => false,
    }),
    Role::here("demux-client", |words| {
        let ([operations], references) = arguments_and_rest(words)?;
        let orb = client_orb_builder(CALL_TIMEOUT).build();
        let orb = orb.map_err(|error| error.to_string())?;
        let client = Client::new(&orb, operations.parse()?, references);
        let client = client.map_err(|error| error.to_string())?;
        burst::answer(|burst| client.burst(burst))
    }),
];

/// The objects of a server that an agent starts: as many as `orb/demux` has, which is a hundred megabytes.
const OBJECTS_MAX: usize = 1_000_000;

/// Which of the two interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One operation.
    Single,
    /// [`LARGE_OPERATIONS`] operations.
    Large,
}

impl Kind {
    /// How many operations its objects have.
    #[must_use]
    pub fn operations(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Large => LARGE_OPERATIONS,
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    /// By the number of its operations.
    fn from_str(operations: &str) -> Result<Self, String> {
        let operations: usize = number(operations)?;
        let mut kinds = [Self::Single, Self::Large].into_iter();
        let kind = kinds.find(|kind| kind.operations() == operations);
        kind.ok_or_else(|| format!("no object has {operations} operations"))
    }
}

/// Makes a server of `objects` objects of a kind, at least one. Its references are those of the first, the middle and the last of them.
///
/// # Errors
/// What the ORB said.
pub fn open(endpoint: &str, kind: Kind, objects: usize) -> Result<Server, Box<dyn Error>> {
    let limits = Limits::with(|limits| limits.objects_max = objects + 1);
    let orb = Orb::builder().listen(endpoint).limits(limits).build()?;
    let poa = orb.root_poa()?;
    let mut references = Vec::new();
    for index in 0..objects.max(1) {
        let object = match kind {
            Kind::Single => poa
                .activate::<Single, _>(Idle)
                .map(|single| single.as_object().clone()),
            Kind::Large => poa
                .activate::<Large, _>(Idle)
                .map(|large| large.as_object().clone()),
        };
        let object = object?;
        if [0, objects / 2, objects - 1].contains(&index) {
            references.push(orb.object_to_string(&object));
        }
    }
    Ok(Server::of(orb, references))
}

/// A client that calls the objects in turn, and of large ones the first, the middle and the last operation.
#[derive(Debug)]
pub struct Client {
    singles: Vec<Single>,
    larges: Vec<Large>,
}

impl Client {
    /// A client of these references.
    ///
    /// # Errors
    /// That one of them is none, or of another type.
    pub fn new(orb: &Orb, kind: Kind, references: &[&str]) -> Result<Self, SystemException> {
        let mut client = Self {
            singles: Vec::new(),
            larges: Vec::new(),
        };
        for reference in references {
            let object = orb.string_to_object(reference)?;
            match kind {
                Kind::Single => client.singles.push(Single::narrow(&object)?),
                Kind::Large => client.larges.push(Large::narrow(&object)?),
            }
        }
        Ok(client)
    }

    /// Times a burst of calls.
    ///
    /// # Errors
    /// The first exception, in words.
    pub fn burst(&self, burst: &Burst) -> Result<Samples, String> {
        let mut samples = Samples::for_burst(burst);
        let mut turn = 0;
        let call = || {
            turn += 1;
            self.call(turn)
        };
        samples.time(burst, call, |()| true)?;
        Ok(samples)
    }

    fn call(&self, turn: usize) -> Result<(), SystemException> {
        if let Some(single) = self.singles.get(turn % self.singles.len().max(1)) {
            return single.operation_000();
        }
        let large = &self.larges[turn % self.larges.len()];
        match turn / self.larges.len() % 3 {
            0 => large.operation_000(),
            1 => large.operation_150(),
            _ => large.operation_299(),
        }
    }
}

/// The servant of every object.
#[derive(Clone, Copy, Debug)]
struct Idle;

impl SingleServant for Idle {
    fn operation_000(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

// The three hundred methods of `LargeServant`, none of which does anything.
include!(concat!(env!("OUT_DIR"), "/idle_operations.rs"));

/// How many operations a large object has.
pub const LARGE_OPERATIONS: usize = 300;
