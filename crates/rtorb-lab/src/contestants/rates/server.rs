//! The server of clients that call at a rate: an object for each priority, whose servants work for a while if told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtorb::Orb;

use super::entrant::strategies;
use super::{ServerQuestion, process_cpu_ns};
use crate::contestants::cubit::{Cuber, objects};
use crate::contestants::real_time::{declared, lane};
use crate::contestants::server;

/// One object of a [`Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateObject {
    /// The CORBA priority that it declares, which is the native one; 0 declares none.
    pub priority: u8,
    /// Whether its servant works as long as the server is told.
    pub works: bool,
}

impl std::str::FromStr for RateObject {
    type Err = String;

    /// Reads `60`, or `10w` for an object that works.
    fn from_str(word: &str) -> Result<Self, String> {
        let (digits, works) = match word.strip_suffix('w') {
            Some(digits) => (digits, true),
            None => (word, false),
        };
        let priority = digits.parse().ok().filter(|number| *number <= 99);
        Ok(Self {
            priority: priority.ok_or_else(|| format!("not an object: {word:?}"))?,
            works,
        })
    }
}

impl std::fmt::Display for RateObject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.works { "w" } else { "" };
        write!(formatter, "{}{mark}", self.priority)
    }
}

/// A server that listens, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    objects: server::Server,
    work_ns: Arc<AtomicU64>,
}

impl Server {
    /// Makes an ORB of that preset that listens at the endpoint. Each object with a priority declares it (SERVER_DECLARED), and has a lane of one thread
    /// where the preset has lanes, and a thread of its own behind the filters where it has those.
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(endpoint: &str, preset: &str, objects: &[RateObject]) -> Result<Self, String> {
        let lanes = objects
            .iter()
            .filter(|object| object.priority > 0)
            .map(|object| lane(object.priority))
            .collect::<Result<Vec<_>, _>>()?;
        let orb = Orb::builder()
            .strategies(strategies(preset)?)
            .pool_threads(POOL_THREADS)
            .lanes(lanes)
            .listen(endpoint)
            .build()
            .map_err(|error| error.to_string())?;
        let work_ns = Arc::new(AtomicU64::new(0));
        let references = objects
            .iter()
            .enumerate()
            .map(|(index, object)| activate(&orb, index, *object, &work_ns))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            objects: server::Server::of(orb, references),
            work_ns,
        })
    }

    /// Its ORB and its objects.
    #[must_use]
    pub fn objects(&self) -> &server::Server {
        &self.objects
    }

    /// Has each request to an object that works take so much processor time from now on.
    #[cfg(test)]
    pub(super) fn set_work(&self, work_ns: u64) {
        self.work_ns.store(work_ns, Ordering::Relaxed);
    }

    /// Serves, and answers questions on standard input, until that ends; then the process ends.
    ///
    /// # Errors
    /// What the host refused.
    pub(crate) fn run(&self) -> Result<(), String> {
        let work_ns = Arc::clone(&self.work_ns);
        let answer = move |question| Ok(answer(question, &work_ns));
        self.objects.run_with(answer)
    }
}

/// Threads of the pools of presets that have one, whatever the priorities.
pub const POOL_THREADS: usize = 4;

fn activate(
    orb: &Orb,
    index: usize,
    object: RateObject,
    work_ns: &Arc<AtomicU64>,
) -> Result<String, String> {
    let servant = if object.works {
        Cuber::working(orb.clone(), Arc::clone(work_ns))
    } else {
        Cuber::new(orb.clone())
    };
    let adapter = format!("object-{index}");
    objects::activate(orb, &adapter, declared(object.priority)?, servant)
}

fn answer(question: ServerQuestion, work_ns: &AtomicU64) -> u64 {
    match question {
        ServerQuestion::Cpu => process_cpu_ns(),
        ServerQuestion::Work(ns) => {
            work_ns.store(ns, Ordering::Relaxed);
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::questions::tests::replies;

    #[test]
    fn an_object_is_read_back() {
        for object in [
            RateObject {
                priority: 10,
                works: true,
            },
            RateObject {
                priority: 0,
                works: false,
            },
        ] {
            assert_eq!(object.to_string().parse(), Ok(object));
        }
        assert!("100".parse::<RateObject>().is_err());
        assert!("w".parse::<RateObject>().is_err());
    }

    #[test]
    fn the_work_is_what_was_said_last() {
        let work_ns = AtomicU64::new(0);
        let questions = "{\"work\":500}\n\"cpu\"\n{\"work\":\"hard\"}\n";
        let replies = replies::<_, _, u64>(questions, |question| Ok(answer(question, &work_ns)));
        assert_eq!(work_ns.load(Ordering::Relaxed), 500);
        let [Ok(_), Ok(cpu), Err(_)] = &replies[..] else {
            panic!("{replies:?}");
        };
        assert!(cpu.value > 0);
    }
}
