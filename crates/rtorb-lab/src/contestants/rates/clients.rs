//! The clients that call at a rate: one process, a thread for each client, released at absolute times.

use rtorb::Orb;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::timer::{PeriodicTimer, Release};

use super::entrant::strategies;
use super::{ClientsQuestion, Group, Ran, Releases, Run, RunEnd, Times, process_cpu_ns};
use crate::contestants::clients::{fifo, open};
use crate::contestants::cubit::idl::Cubit;
use crate::contestants::releases::planned_ns;
use crate::processes::barrier::Barrier;
use crate::processes::questions::{self, Reply};

/// The objects that clients may call, and those clients that wait at the barrier.
#[derive(Debug)]
pub struct Clients {
    objects: Vec<Cubit>,
    prepared: Option<Prepared>,
}

impl Clients {
    /// Makes an ORB of that preset and takes the references.
    ///
    /// # Errors
    /// What the ORB said.
    pub fn open(preset: &str, references: &[impl AsRef<str>]) -> Result<Self, String> {
        Ok(Self {
            objects: open(Orb::builder().strategies(strategies(preset)?), references)?,
            prepared: None,
        })
    }

    /// Answers questions until standard input ends.
    ///
    /// # Errors
    /// What the input or output said.
    pub(crate) fn serve(mut self) -> Result<(), String> {
        questions::serve(|question| self.answer(question))
    }

    fn answer(&mut self, question: ClientsQuestion) -> Result<Reply<Option<RunEnd>>, String> {
        match question {
            ClientsQuestion::Go => {
                let Reply { value, series } = self.go()?.into_reply();
                let value = Some(value);
                Ok(Reply { value, series })
            }
            ClientsQuestion::Prepare(run) => {
                run.check()?;
                self.prepare(&run)?;
                Ok(Reply::default())
            }
        }
    }

    /// Opens the barrier for those that were prepared, and waits for them to end.
    ///
    /// # Errors
    /// That nothing is prepared; that a call failed.
    pub fn go(&mut self) -> Result<Ran, String> {
        let prepared = self.prepared.take().ok_or("nothing is prepared")?;
        prepared.go()
    }

    /// Starts the threads, has each make a few calls, and leaves them at the barrier.
    ///
    /// # Errors
    /// What the host refused; that there is no such object; that a call failed.
    pub fn prepare(&mut self, run: &Run) -> Result<(), String> {
        // Those of a run that never went end here, since nobody can start them any more.
        self.prepared = None;
        let mut barrier = Barrier::default();
        let mut of_groups = Vec::new();
        for (group_index, group) in run.groups.iter().enumerate() {
            for _ in 0..group.clients {
                let client = Client {
                    cubit: self
                        .objects
                        .get(group.object)
                        .ok_or_else(|| format!("there is no object {}", group.object))?
                        .clone(),
                    phase_ns: run.phase_ns(barrier.len(), group.period_ns),
                    group: group.clone(),
                    duration_ns: run.duration_ns,
                };
                let name = format!("client-{}", group.priority);
                barrier.add(&name, &fifo(group.priority), || client.prepare())?;
                of_groups.push(group_index);
            }
        }
        barrier.await_all()?;
        self.prepared = Some(Prepared {
            barrier,
            of_groups,
            groups: run.groups.len(),
        });
        Ok(())
    }
}

/// Clients at the barrier.
#[derive(Debug)]
struct Prepared {
    barrier: Barrier<u64, Result<Times, String>>,
    /// The group of each client.
    of_groups: Vec<usize>,
    groups: usize,
}

impl Prepared {
    /// Opens the barrier and waits for the clients to end.
    fn go(self) -> Result<Ran, String> {
        let cpu_before_ns = process_cpu_ns();
        // Time enough for all of them to hear it before the first is released.
        let begin_ns = monotonic_ns() + BARRIER_NS;
        let mut groups = vec![Times::default(); self.groups];
        for (group, times) in self.of_groups.into_iter().zip(self.barrier.run(&begin_ns)?) {
            groups[group].append(times);
        }
        Ok(Ran {
            elapsed_ns: monotonic_ns().saturating_sub(begin_ns),
            cpu_ns: process_cpu_ns() - cpu_before_ns,
            groups,
        })
    }
}

/// What one thread has.
struct Client {
    cubit: Cubit,
    group: Group,
    phase_ns: u64,
    duration_ns: u64,
}

impl Client {
    /// Makes a few calls, and returns what makes those of the run.
    fn prepare(self) -> Result<impl FnOnce(u64) -> Result<Times, String>, String> {
        for _ in 0..WARM_UP_CALLS {
            let answer = self.cubit.cube_octet(ARGUMENT);
            answer.map_err(|exception| format!("warm-up: {exception}"))?;
        }
        let times = Times::for_client(&self.group, self.duration_ns);
        Ok(move |begin_ns| self.run(begin_ns, times))
    }

    fn run(&self, begin_ns: u64, mut times: Times) -> Result<Times, String> {
        let end_ns = begin_ns + self.duration_ns;
        let mut timer = PeriodicTimer::starting_at(begin_ns + self.phase_ns, self.group.period_ns);
        while timer.next_ns() < end_ns {
            let release = match self.group.releases {
                Releases::Each => timer.wait_each(),
                Releases::Latest => timer.wait(),
            };
            self.calls(release, end_ns, &mut times)?;
        }
        Ok(times)
    }

    /// Makes the calls of one release. The releases that it skipped are as late as its first reply.
    fn calls(&self, release: Release, end_ns: u64, times: &mut Times) -> Result<(), String> {
        for call in 0..self.group.calls {
            let before_ns = monotonic_ns();
            let answer = self.cubit.cube_octet(ARGUMENT);
            let after_ns = monotonic_ns();
            let answer = answer.map_err(|exception| {
                format!("a call of priority {}: {exception}", self.group.priority)
            })?;
            times.wrong += u64::from(answer != ANSWER);
            push(&mut times.sent_ns, after_ns - before_ns);
            if call == 0 {
                let planned = planned_ns(release, self.group.period_ns);
                for planned_ns in planned.filter(|planned_ns| *planned_ns < end_ns) {
                    push(&mut times.release_ns, after_ns.saturating_sub(planned_ns));
                    times.missed += u64::from(planned_ns < release.scheduled_ns);
                }
            }
        }
        Ok(())
    }
}

/// Records a time where there is room: recording makes no heap call.
fn push(times_ns: &mut Vec<u64>, time_ns: u64) {
    if times_ns.len() < times_ns.capacity() {
        times_ns.push(time_ns);
    }
}

/// For the connection, and what the ORB makes for a thread's first call.
const WARM_UP_CALLS: usize = 3;
const ARGUMENT: u8 = 7;
const ANSWER: u8 = ARGUMENT.wrapping_mul(ARGUMENT).wrapping_mul(ARGUMENT);
const BARRIER_NS: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use rtorb_os::thread::spawn;

    use super::*;
    use crate::contestants::rates::FirstReleases;
    use crate::contestants::rates::server::{RateObject, Server};
    use rtorb::thread::ThreadConfig;

    fn group(object: usize, clients: usize, period_ns: u64, releases: Releases) -> Group {
        Group {
            object,
            priority: 0,
            clients,
            period_ns,
            calls: 1,
            releases,
        }
    }

    #[test]
    fn clients_call_at_their_rates_and_every_answer_is_right() {
        let object = |works| RateObject { priority: 0, works };
        let server = Server::open(
            "iiop://127.0.0.1:0",
            "default",
            &[object(true), object(false)],
        )
        .unwrap();
        let mut clients = Clients::open("default", server.objects().references()).unwrap();
        let serving = server.objects().orb().clone();
        let thread = spawn("server", &ThreadConfig::default(), move || serving.run()).unwrap();
        let run = Run {
            duration_ns: 50_000_000,
            round: 0,
            first: FirstReleases::Spread,
            groups: vec![
                group(1, 1, 10_000_000, Releases::Each),
                group(0, 3, 25_000_000, Releases::Latest),
            ],
        };
        assert!(clients.answer(ClientsQuestion::Go).is_err());
        clients.prepare(&run).unwrap();
        let ran = clients.go().unwrap();
        let [high, low] = &ran.groups[..] else {
            panic!("two groups")
        };
        assert_eq!(
            (high.sent_ns.len(), high.release_ns.len(), high.wrong),
            (5, 5, 0)
        );
        assert!(low.sent_ns.len() as u64 + low.missed >= 3 * 2);
        assert_eq!(low.release_ns.len(), 3 * 2);
        assert!(ran.cpu_ns > 0);
        // From the release on it is never less than from sending on.
        assert!(high.release_ns.iter().sum::<u64>() >= high.sent_ns.iter().sum::<u64>());
        server.objects().orb().shutdown();
        thread.join().unwrap().unwrap().unwrap();
    }

    /// The servant takes three periods for each call. Who counts only the calls that were made has a third of the releases, and none
    /// of those that waited for the call before.
    #[test]
    fn a_skipped_release_is_as_late_as_the_reply_that_held_it_up() {
        const PERIOD_NS: u64 = 10_000_000;
        let works = RateObject {
            priority: 0,
            works: true,
        };
        let server = Server::open("iiop://127.0.0.1:0", "default", &[works]).unwrap();
        server.set_work(3 * PERIOD_NS);
        let mut clients = Clients::open("default", server.objects().references()).unwrap();
        let serving = server.objects().orb().clone();
        let thread = spawn("server", &ThreadConfig::default(), move || serving.run()).unwrap();
        let run = Run {
            duration_ns: 12 * PERIOD_NS,
            round: 0,
            first: FirstReleases::Together,
            groups: vec![group(0, 1, PERIOD_NS, Releases::Latest)],
        };
        clients.prepare(&run).unwrap();
        let times = clients.go().unwrap().groups.remove(0);
        assert_eq!(times.release_ns.len(), 12, "one for each planned release");
        // The call for the last of them may be released after the end.
        assert!((12..=13).contains(&(times.sent_ns.len() as u64 + times.missed)));
        assert!(times.missed >= 6, "{times:?}");
        let waited = |periods: u64| move |ns: &&u64| **ns >= periods * PERIOD_NS;
        let all = &times.release_ns;
        assert!(all.iter().all(|ns| *ns >= PERIOD_NS));
        assert!(all.iter().filter(waited(4)).count() >= 3, "{all:?}");
        server.objects().orb().shutdown();
        thread.join().unwrap().unwrap().unwrap();
    }

    #[test]
    fn a_group_without_an_object_is_refused() {
        let mut clients = Clients::open("default", &[""; 0]).unwrap();
        let run = Run {
            duration_ns: 1,
            round: 0,
            first: FirstReleases::Spread,
            groups: vec![group(3, 1, 1, Releases::Each)],
        };
        let error = clients.answer(ClientsQuestion::Prepare(run)).unwrap_err();
        assert!(error.contains("no object 3"), "{error}");
    }
}
