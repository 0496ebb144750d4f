//! The tasks of one thread, and the executor that polls them.

use crate::random::Random;
use crate::systems::call_end::{CallEnd, ENOUGH, check_end, fail};
use crate::systems::calls::plan::Plan;
use crate::systems::worker::{Worker, reply_to};
use crate::world;
use rtorb::{Call, ReplyDriver, SystemException};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Calls of each thread at most.
const CALLS_MAX: u64 = 16;

/// Calls of each thread that are in flight at a time.
pub(super) const IN_FLIGHT_MAX: usize = 5;

/// The calls of one thread.
pub(super) struct Tasks {
    worker: Worker,
    /// For reading the replies on this thread.
    reads: Option<ReplyDriver>,
    random: Random,
    plan: Plan,
    in_flight: Vec<InFlight>,
    ended: Vec<CallEnd>,
}

/// A call in flight.
struct InFlight {
    call: u32,
    begun_ns: u64,
    timeout: Duration,
    body: Vec<u8>,
    started: Call<Vec<u8>>,
    /// The task that awaits it, once it was polled.
    task: Option<Arc<Task>>,
}

/// A task that notes when it is woken; 0 until then.
#[derive(Debug, Default)]
struct Task(AtomicU64);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.store(world::now_ns().max(1), Ordering::SeqCst);
    }
}

impl Task {
    fn woken_ns(&self) -> Option<u64> {
        Some(self.0.load(Ordering::SeqCst)).filter(|at_ns| *at_ns > 0)
    }
}

impl Tasks {
    pub(super) fn new(
        worker: Worker,
        reads: Option<ReplyDriver>,
        random: Random,
        plan: Plan,
    ) -> Self {
        Self {
            worker,
            reads,
            random,
            plan,
            in_flight: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Makes the calls. Returns their ends.
    pub(super) fn run(&mut self, first: u32) -> Vec<CallEnd> {
        let mut next = first;
        let end = first + 1 + self.random.below(CALLS_MAX) as u32;
        while next < end || !self.in_flight.is_empty() {
            if next < end && self.in_flight.len() < IN_FLIGHT_MAX && self.random.one_in(2) {
                self.start(next);
                next += 1;
            }
            self.poll_woken();
            self.in_flight.iter().for_each(InFlight::check_time);
            if !self.in_flight.is_empty() {
                self.take_one();
            }
            self.pause();
        }
        std::mem::take(&mut self.ended)
    }

    fn start(&mut self, call: u32) {
        let random = &mut self.random;
        let timeout = random.choose(&[200, 2_000, 20_000, 200_000]);
        let timeout = if self.plan.is_sound && !(self.plan.gives_up && random.one_in(2)) {
            ENOUGH
        } else {
            Duration::from_micros(timeout)
        };
        let size = random.choose(&[0, 10, 500, 5_000]);
        let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
        let asleep_us = random.choose(&[0, 0, 50, 1_000, 10_000]);
        let begun_ns = world::now_ns();
        let worker = self.worker.with_timeout(timeout);
        let started = worker.start().work(call, -1, asleep_us, 0, &body);
        self.in_flight.push(InFlight {
            call,
            begun_ns,
            timeout,
            body,
            started,
            task: None,
        });
    }

    /// Polls the calls whose tasks were woken.
    fn poll_woken(&mut self) {
        let mut place = 0;
        while let Some(polled) = self.in_flight.get_mut(place) {
            let Some(woken_ns) = polled.task.as_ref().and_then(|task| task.woken_ns()) else {
                place += 1;
                continue;
            };
            let elapsed_ns = woken_ns.saturating_sub(polled.begun_ns);
            if let Poll::Ready(outcome) = polled.poll() {
                let in_flight = self.in_flight.remove(place);
                self.end(in_flight, world::now_ns() - elapsed_ns, outcome);
            }
        }
    }

    /// Polls a call, waits for it, gives it up, or leaves it alone.
    fn take_one(&mut self) {
        let place = self.random.below(self.in_flight.len() as u64) as usize;
        let way = self.random.below(10);
        let call = &mut self.in_flight[place];
        match way {
            // It is not known since when it is ready.
            0..4 if call.task.is_none() => {
                if let Poll::Ready(outcome) = call.poll() {
                    let in_flight = self.in_flight.remove(place);
                    self.end(in_flight, world::now_ns(), outcome);
                }
            }
            // A CancelRequest that is sent in part ends the connection.
            4 if !self.plan.is_sound || self.plan.gives_up => {
                let in_flight = self.in_flight.remove(place);
                in_flight.started.cancel();
                self.ended.push(CallEnd::unknown(in_flight.call));
            }
            5 => {
                let until = Instant::now() + Duration::from_micros(self.random.below(3_000));
                let was_ready = call.started.is_ready();
                if let Some(outcome) = call.started.wait_until(until) {
                    let in_flight = self.in_flight.remove(place);
                    let begun_ns = in_flight.since(was_ready);
                    self.end(in_flight, begun_ns, outcome);
                }
            }
            6 => {
                let InFlight {
                    call,
                    timeout,
                    body,
                    started,
                    begun_ns,
                    ..
                } = self.in_flight.remove(place);
                let begun_ns = if started.is_ready() {
                    world::now_ns()
                } else {
                    begun_ns
                };
                let outcome = started.wait();
                self.note(call, &body, begun_ns, timeout, outcome);
            }
            _ => {}
        }
    }

    fn end(&mut self, ended: InFlight, begun_ns: u64, outcome: Result<Vec<u8>, SystemException>) {
        self.note(ended.call, &ended.body, begun_ns, ended.timeout, outcome);
    }

    fn note(
        &mut self,
        call: u32,
        body: &[u8],
        begun_ns: u64,
        timeout: Duration,
        outcome: Result<Vec<u8>, SystemException>,
    ) {
        if outcome.as_ref().is_ok_and(|it| *it != reply_to(call, body)) {
            fail(&format!("call {call} got the reply to another one"));
        }
        let outcome = outcome.map(drop);
        self.ended
            .push(CallEnd::new(call, false, begun_ns, timeout, outcome));
    }

    /// Lets time pass, and reads the replies that come, if this thread does.
    fn pause(&mut self) {
        let pause = Duration::from_micros(self.random.choose(&[0, 20, 500, 10_000]));
        match &self.reads {
            Some(replies) => {
                replies.run_once(Some(Instant::now() + pause));
            }
            None => thread::sleep(pause),
        }
    }
}

impl InFlight {
    fn poll(&mut self) -> Poll<Result<Vec<u8>, SystemException>> {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        self.task = Some(task);
        Pin::new(&mut self.started).poll(&mut Context::from_waker(&waker))
    }

    /// From when a wait counts: a call that was ready needs none.
    fn since(&self, was_ready: bool) -> u64 {
        if was_ready {
            world::now_ns()
        } else {
            self.begun_ns
        }
    }

    /// The call has ended by its deadline, and its task was woken, although nobody takes its result.
    fn check_time(&self) {
        let is_woken = match &self.task {
            Some(task) => task.woken_ns().is_some(),
            None => self.started.is_ready(),
        };
        if !is_woken {
            let what = format!("call {}, whose task sleeps,", self.call);
            check_end(&what, self.begun_ns, self.timeout, &self.started);
        }
    }
}
