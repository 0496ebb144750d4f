//! What this experiment times itself: a mutex that nobody else wants, and calls between two threads by rtorb-embedded.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rtorb_embedded::{
    Client, FixedPriority, Link, LinkError, Object, ObjectRef, Server, SharedClient, Tie,
};
use rtorb_embedded_cubit::calls::{CALLS, Call};
use rtorb_embedded_cubit::cubit::Cubit;
use rtorb_embedded_cubit::servant::{Cuber, KEY};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::sync::Mutex;
use serde::{Deserialize, Serialize};

use crate::processes::begin_together::Threads;
use crate::processes::probe::{self, Answer};

/// What to time. The answer has one set of samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// `mutex`, or an operation of the Cubit.
    pub operation: String,
    /// How many samples to take; fewer are answered when it takes longer than a second.
    pub samples: usize,
    /// The priority of the calling thread under SCHED_FIFO; the serving one has one more. `None` leaves both what the probe has.
    pub low_priority: Option<u8>,
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-operations";

    fn answer(&self) -> Result<Answer, String> {
        if self.operation == "mutex" {
            let mutex = Mutex::new(());
            return self.run(None, move || {
                drop(mutex.lock());
                true
            });
        }
        let mut calls = CALLS.iter();
        let call = calls.find(|call| call.operation == self.operation);
        self.call(call.ok_or("there is no such operation")?)
    }
}

impl Question {
    fn call(&self, call: &'static Call) -> Result<Answer, String> {
        let (client, server) = UnixStream::pair().map_err(|error| error.to_string())?;
        // The question is over before the process is, and the memory is a client's buffers.
        let shared: &'static Shared = Box::leak(Box::new(Shared(Mutex::new(Some(Client::new(
            Box::new(Stream(client)),
            MESSAGE_BYTES_MAX,
        ))))));
        let cubit = Cubit::unchecked_narrow(ObjectRef::new(shared, "IDL:Cubit:1.0", KEY));
        self.run(Some((server, shared)), move || {
            call.check(&cubit) == Ok(true)
        })
    }

    /// Samples of `once`, beside a thread that serves the other end of a stream. The stream is closed when they are taken.
    fn run(
        &self,
        served: Option<(UnixStream, &'static Shared)>,
        mut once: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Answer, String> {
        let policy = |above: u8| self.low_priority.map(|low| SchedPolicy::Fifo(low + above));
        let mut threads = Threads::new();
        let client = served.as_ref().map(|(_, client)| *client);
        let mut samples_ns = vec![u64::MAX; WARM_UP + self.samples];
        let measure = move || {
            let deadline_ns = monotonic_ns() + BUDGET_NS;
            let mut taken = 0;
            for sample in &mut samples_ns {
                let begin_ns = monotonic_ns();
                let is_right = once();
                let end_ns = monotonic_ns();
                if !is_right {
                    break;
                }
                *sample = end_ns - begin_ns;
                taken += 1;
                if end_ns > deadline_ns {
                    break;
                }
            }
            // The other thread ends with the stream.
            drop(client.map(Shared::take));
            samples_ns.truncate(taken);
            samples_ns.drain(..taken.min(WARM_UP));
            samples_ns
        };
        threads.add("caller", policy(0), measure)?;
        if let Some((stream, _)) = served {
            threads.add("server", policy(1), move || {
                serve(stream);
                Vec::new()
            })?;
        }
        let (scheduling, samples) = threads.run("os/operations")?;
        match samples.into_iter().next() {
            Some(samples_ns) if !samples_ns.is_empty() => Ok(Answer {
                samples: vec![samples_ns],
                scheduling,
                ..Answer::default()
            }),
            _ => Err(format!("{}: the answer is wrong", self.operation)),
        }
    }
}

fn serve(stream: UnixStream) {
    let cubit = Tie::<Cubit, _>::new(Cuber::new());
    let objects = [Object {
        key: KEY,
        servant: &cubit,
    }];
    let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
    let mut link = Stream(stream);
    while server.serve_next(&mut link, &mut FixedPriority).is_ok() {}
}

/// The client, behind a mutex that inherits priority; `None` once it has ended.
struct Shared(Mutex<Option<Client>>);

impl Shared {
    fn take(&self) -> Option<Client> {
        self.0.lock().take()
    }
}

impl SharedClient for Shared {
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client)) {
        if let Some(client) = self.0.lock().as_mut() {
            call(client);
        }
    }
}

/// A stream socket as a link.
struct Stream(UnixStream);

impl Link for Stream {
    fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.0.write_all(octets).map_err(|_| LinkError::Broken)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        self.0.read(into).map_err(|_| LinkError::Broken)
    }
}

const MESSAGE_BYTES_MAX: usize = 32 << 10;
/// Samples that are not counted: what is used is in the caches then.
const WARM_UP: usize = 10;
/// Most of all that one question may take.
const BUDGET_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Question as _;

    const ATTEMPTS: usize = 20;

    #[test]
    fn a_mutex_and_every_call_have_samples() {
        let calls = CALLS.iter().map(|call| call.operation);
        for operation in calls.chain(["mutex"]) {
            let question = Question {
                operation: operation.to_owned(),
                samples: 5,
                low_priority: None,
            };
            // Where others have the CPU, time may be over before one was taken.
            let mut answers = (0..ATTEMPTS).map(|_| question.answer());
            let answer = answers.find_map(Result::ok).expect(operation);
            assert!((1..=5).contains(&answer.samples[0].len()), "{operation}");
        }
    }
}
