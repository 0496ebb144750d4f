//! The services of the operating system that an ORB calls, one at a time, timed in a probe.
//!
//! All threads are on one CPU, or the second one is on another. The less urgent one begins each sample; where it wakes a more urgent one, the sample ends in that
//! thread. Whoever ends a sample keeps it: nothing is allocated, locked or printed meanwhile.

use std::time::Duration;

use rtorb_instruments::replay::sample_taken;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::sync::Mutex;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::experiment::split_mix::SplitMix64;
use crate::experiments::os_context_switch::{self, probe::Test};
use crate::processes::awake::Awake;
use crate::processes::begin_together::Threads;
use crate::processes::probe::{self, Answer};

mod alone;
pub(in crate::experiments) mod mutex;
mod round_trips;
mod wakeups;
mod yields;

/// What to time. The answer has one set of samples; that of a switch has two. A sample lasts from just before the service was asked for
/// until it was had, and contains one reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked of the operating system.
    pub service: Service,
    /// How many samples are wanted; fewer are answered when they take longer than two seconds.
    pub samples: u32,
    /// The priority of the less urgent thread under SCHED_FIFO; the other has one more. `None` leaves both what the probe has.
    pub low_priority: Option<u8>,
    /// The longest pause before a sample, for what else wants the CPU; 0 for none.
    pub pause_ns_max: u64,
    /// What the lengths of the pauses are drawn from.
    pub seed: u64,
    /// Where the second thread runs, if not beside the first.
    #[serde(default)]
    pub other: Option<OtherCpu>,
}

/// Another CPU for the second of two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCpu {
    /// Which.
    pub cpu: usize,
    /// Whether both CPUs are kept from sleeping.
    pub awake: bool,
}

impl OtherCpu {
    /// What keeps this CPU and the caller's from sleeping, where that is wanted.
    fn keep_awake(self) -> Vec<Awake> {
        let own = rtorb_os::sched::current_affinity();
        let cpus = own.first().copied().into_iter().chain([self.cpu]);
        let keep = |cpu| Awake::keep(Some(cpu), AWAKE_AT_MOST);
        cpus.filter(|_| self.awake).map(keep).collect()
    }
}

/// A service of the operating system.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Service {
    /// CLOCK_MONOTONIC is read: what every other sample has in it.
    ClockRead,
    /// getppid(2), which does next to nothing.
    SystemCall,
    /// timerfd_settime(2) of a timer that is running already.
    SetTimer,
    /// sched_yield(2) to a thread of the same priority that yields at once: two switches.
    Yield,
    /// From futex(2) until the more urgent thread runs that it wakes.
    Futex,
    /// From a write to an eventfd until the more urgent thread runs that reads it.
    Eventfd,
    /// From when a less urgent thread gives back a mutex until the more urgent one has it that waits for it.
    PiHandOver,
    /// The same from asking for the mutex; the holder gives it back as soon as it runs.
    PiLock,
    /// 64 octets to another thread through a pipe, and back through another one.
    Pipe,
    /// The same over a pair of UNIX stream sockets.
    Unix,
    /// The same over TCP on the loopback interface, without Nagle's delay.
    Tcp,
    /// A hand-over of the CPU.
    Switch(Test),
}

impl Service {
    /// Every one but switches, the cheapest first.
    pub const ALL: [Self; 11] = [
        Self::ClockRead,
        Self::SystemCall,
        Self::SetTimer,
        Self::Yield,
        Self::Futex,
        Self::Eventfd,
        Self::PiHandOver,
        Self::PiLock,
        Self::Pipe,
        Self::Unix,
        Self::Tcp,
    ];
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-services";

    /// Times what the question asks for. The number [`NOT_IN_TURN`] says how many yields of those answered were not one turn
    /// of the other thread.
    fn answer(&self) -> Result<Answer, String> {
        match self.service {
            Service::ClockRead => alone::clock_read(self),
            Service::SystemCall => alone::system_call(self),
            Service::SetTimer => alone::set_timer(self),
            Service::Yield => yields::time(self),
            Service::PiLock => mutex::time::<Mutex<()>>(self, mutex::From::Lock),
            Service::PiHandOver => mutex::time::<Mutex<()>>(self, mutex::From::Release),
            Service::Futex => wakeups::by_futex(self),
            Service::Eventfd => wakeups::by_eventfd(self),
            Service::Pipe => round_trips::over_pipes(self),
            Service::Unix => round_trips::over_unix(self),
            Service::Tcp => round_trips::over_tcp(self),
            Service::Switch(test) => os_context_switch::probe::time(self, test),
        }
    }
}

/// Samples in the making, in memory that was touched before.
#[derive(Debug)]
pub(in crate::experiments) struct Samples {
    times_ns: Vec<u64>,
    /// Of hand-overs, the same calls with nobody to hand over to.
    without_ns: Vec<u64>,
    taken: usize,
    deadline_ns: u64,
    not_in_turn: u32,
}

impl Samples {
    fn of(question: &Question) -> Self {
        let room = question.samples as usize + (WARM_UP + LAST) as usize;
        Self {
            // Zeros would come as memory that nobody has touched.
            times_ns: vec![u64::MAX; room],
            without_ns: Vec::new(),
            taken: 0,
            deadline_ns: deadline_ns(),
            not_in_turn: 0,
        }
    }

    /// Of hand-overs, each with the same calls without one.
    pub(in crate::experiments) fn in_pairs(question: &Question) -> Self {
        let samples = Self::of(question);
        Self {
            without_ns: samples.times_ns.clone(),
            ..samples
        }
    }

    /// How many there may be, with those that are not kept.
    pub(in crate::experiments) fn room(&self) -> u32 {
        self.times_ns.len() as u32
    }

    /// Counts a hand-over that was none.
    pub(in crate::experiments) fn miss(&mut self, round: u32) {
        self.not_in_turn += u32::from(round > WARM_UP + LAST);
    }

    /// Takes a hand-over, which ended now, and the same calls without one. False when it was the last one.
    pub(in crate::experiments) fn keep_pair(
        &mut self,
        hand_over_ns: u64,
        without_ns: u64,
        now_ns: u64,
    ) -> bool {
        let goes_on = self.keep(hand_over_ns, now_ns);
        self.set_without(without_ns);
        goes_on
    }

    /// Sets the time of the same calls without the hand-over beside that of the last one.
    fn set_without(&mut self, without_ns: u64) {
        let last = self.without_ns.get_mut(self.taken.saturating_sub(1));
        last.into_iter().for_each(|last| *last = without_ns);
    }

    fn keep(&mut self, time_ns: u64, now_ns: u64) -> bool {
        if let Some(room) = self.times_ns.get_mut(self.taken) {
            *room = time_ns;
            self.taken += 1;
        }
        self.taken < self.times_ns.len() && now_ns < self.deadline_ns
    }

    /// Ends a sample in the thread that has what was asked for. False when it was the last one.
    fn end(&mut self, begin_ns: u64) -> bool {
        let end_ns = monotonic_ns();
        sample_taken();
        self.keep(end_ns.saturating_sub(begin_ns), end_ns)
    }

    /// Without those at the beginning, when nothing is in the caches, and the last one, into which the end of the other thread
    /// may fall.
    fn kept(self) -> Vec<Vec<u64>> {
        let kept = self.taken.saturating_sub(LAST as usize);
        let sets = [self.times_ns, self.without_ns].into_iter();
        let sets = sets.filter(|set_ns| !set_ns.is_empty());
        let of = |set_ns: Vec<u64>| {
            let set_ns = set_ns.into_iter().take(kept);
            set_ns.skip(WARM_UP as usize).collect()
        };
        sets.map(of).collect()
    }
}

/// Pauses before samples, in which what else wants the CPU has it: of drawn lengths, so that samples begin anywhere between two
/// ticks and anywhere in what the load does.
#[derive(Debug)]
struct Pauses {
    ns_max: u64,
    lengths: SplitMix64,
}

impl Pauses {
    fn of(question: &Question) -> Self {
        Self {
            ns_max: question.pause_ns_max,
            lengths: SplitMix64::seeded(question.seed),
        }
    }

    /// Sleeps; does nothing where no pauses are wanted.
    fn pause(&mut self) {
        if self.ns_max > 0 {
            sleep_until(monotonic_ns() + self.lengths.draw_below(self.ns_max));
        }
    }
}

/// What a thread of a pair is for.
pub(in crate::experiments) type Work = Box<dyn FnOnce() -> Result<Option<Samples>, String> + Send>;

/// Which of two threads is the more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiments) enum Urgency {
    /// Both have the same priority.
    Same,
    /// The second one.
    Second,
}

/// Runs the thread that begins each sample, and the other one where there is one. One of them has the samples.
pub(in crate::experiments) fn run(
    question: &Question,
    first: Work,
    second: Option<(Urgency, Work)>,
) -> Result<Answer, String> {
    let policy = |above: u8| {
        question
            .low_priority
            .map(|low| SchedPolicy::Fifo(low + above))
    };
    let mut threads = Threads::new();
    let is_switch = matches!(question.service, Service::Switch(_));
    if question.pause_ns_max == 0 && !is_switch {
        threads.rest_before(REST);
    }
    threads.add("first", policy(0), first)?;
    if let Some((urgency, second)) = second {
        let cpus: Vec<usize> = question.other.iter().map(|other| other.cpu).collect();
        let policy = policy(u8::from(urgency == Urgency::Second));
        threads.add_on(&cpus, "second", policy, second)?;
    }
    let awake = question.other.map(OtherCpu::keep_awake);
    let (mut scheduling, answers) = threads.run("the threads")?;
    drop(awake);
    scheduling.retain(|threads| !threads.process.ends_with(": awake"));
    let answers: Vec<Option<Samples>> = answers.into_iter().collect::<Result<_, _>>()?;
    let samples = answers.into_iter().flatten().next();
    let samples = samples.ok_or("no thread had the samples")?;
    Ok(Answer {
        numbers: [(NOT_IN_TURN.to_owned(), f64::from(samples.not_in_turn))].into(),
        samples: samples.kept(),
        scheduling,
        ..Answer::default()
    })
}

pub(in crate::experiments) fn deadline_ns() -> u64 {
    monotonic_ns() + BUDGET_NS
}

/// The number of yields in which the other thread did not run exactly once.
pub(in crate::experiments) const NOT_IN_TURN: &str = "not_in_turn";
/// Samples at the beginning that are not counted.
pub(in crate::experiments) const WARM_UP: u32 = 20;
/// Samples at the end that are not counted.
pub(in crate::experiments) const LAST: u32 = 1;
/// Before the first sample where nothing else runs: some grace periods of RCU, which has a tick of 4 ms.
const REST: Duration = Duration::from_millis(40);
/// Most of all that one question may take.
pub(in crate::experiments) const BUDGET_NS: u64 = 2_000_000_000;
/// More than a question takes.
const AWAKE_AT_MOST: Duration = Duration::from_secs(5);
/// Of each message of a round trip: fewer than any GIOP request has.
pub(in crate::experiments) const MESSAGE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Question as _;

    const ATTEMPTS: usize = 20;

    /// Asks until an answer has a sample: where others have the CPU, time may be over or turns be lost before one was taken.
    fn answered(question: &Question) -> Answer {
        let mut answers = (0..ATTEMPTS).map(|_| question.answer().unwrap());
        let has_samples = |answer: &Answer| !answer.samples[0].is_empty();
        let answer = answers.find(has_samples);
        answer.unwrap_or_else(|| panic!("{:?}: no sample in any attempt", question.service))
    }

    /// Under any scheduling; where others have the CPU, fewer may be taken.
    #[test]
    fn every_service_answers_with_samples_and_no_more_than_were_asked_for() {
        for pause_ns_max in [0, 20_000] {
            for service in Service::ALL {
                let question = Question {
                    service,
                    samples: 30,
                    low_priority: None,
                    pause_ns_max,
                    seed: 1,
                    other: None,
                };
                let answer = answered(&question);
                assert_eq!(answer.samples.len(), 1, "{service:?}");
                assert!(answer.samples[0].len() <= 30, "{service:?}");
                assert!(answer.samples[0].iter().all(|ns| *ns < BUDGET_NS));
                assert!(!answer.scheduling.is_empty());
            }
        }
    }

    #[test]
    fn the_second_thread_may_be_on_another_cpu_that_sleeps_or_not() {
        let cpus = rtorb_os::sched::current_affinity();
        let Some(cpu) = cpus.last().copied() else {
            return;
        };
        for awake in [false, true] {
            for service in [Service::Futex, Service::Unix, Service::Tcp] {
                let question = Question {
                    service,
                    samples: 30,
                    low_priority: None,
                    pause_ns_max: 20_000,
                    seed: 1,
                    other: Some(OtherCpu { cpu, awake }),
                };
                let answer = answered(&question);
                assert!(answer.samples[0].len() <= 30, "{service:?}");
                let of_second = answer.scheduling.iter();
                let mut of_second = of_second.filter(|kind| kind.process.contains("second"));
                assert!(of_second.any(|kind| kind.cpus == cpu.to_string()));
            }
        }
    }

    #[test]
    fn the_first_samples_and_the_last_one_are_not_kept() {
        let samples = |taken: u64| Samples {
            times_ns: (0..taken).chain([u64::MAX; 5]).collect(),
            without_ns: Vec::new(),
            taken: taken as usize,
            deadline_ns: 0,
            not_in_turn: 0,
        };
        assert_eq!(samples(23).kept(), [[20, 21]]);
        assert!(samples(21).kept()[0].is_empty());
        assert!(samples(0).kept()[0].is_empty());
    }

    #[test]
    fn samples_end_when_there_is_no_room_or_no_time() {
        let question = Question {
            service: Service::ClockRead,
            samples: 1,
            low_priority: None,
            pause_ns_max: 0,
            seed: 1,
            other: None,
        };
        let mut full = Samples::of(&question);
        let wanted = WARM_UP + 1 + LAST;
        assert!((1..wanted).all(|_| full.end(0)));
        assert!(!full.end(0));
        let mut late = Samples::of(&question);
        late.deadline_ns = 0;
        assert!(!late.end(0));
    }
}
