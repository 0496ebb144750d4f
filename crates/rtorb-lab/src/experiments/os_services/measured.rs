//! The samples of all services, and what follows from them.

use std::collections::BTreeMap;

use super::probe::{NOT_IN_TURN, Service, WARM_UP};
use crate::experiment::{Context, Outcome};
use crate::experiments::os_context_switch::probe::Test;
use crate::experiments::os_context_switch::published::{P0, P2};
use crate::processes::probe::Answer;
use crate::results::rounds::Rounds;
use crate::results::{
    Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    StatisticName, WorstSample, all_real_time, labels,
};

/// What was measured so far.
#[derive(Debug, Default)]
pub(super) struct Measured {
    services: BTreeMap<Service, Rounds>,
    /// The slowest sample of each service that can be measured again: in an emulated machine.
    slowest: BTreeMap<Service, WorstSample>,
    /// An ordinary sample of each, of its first round.
    typical: BTreeMap<Service, WorstSample>,
    scheduling: Vec<ObtainedScheduling>,
    /// Yields, of those that are counted or near them, in which the other thread did not run exactly once.
    not_in_turn: u64,
    preempt_rt: bool,
    emulated: bool,
}

impl Measured {
    /// Nothing yet, in these surroundings.
    pub(super) fn of(context: &Context) -> Self {
        Self {
            preempt_rt: context.host.preempt_rt,
            emulated: context.effort.seeds().is_some(),
            ..Self::default()
        }
    }

    /// Adds a round of a service, before which so many samples were marked.
    pub(super) fn add(&mut self, service: Service, answer: &Answer, marked: u64) {
        let [samples_ns] = &answer.samples[..] else {
            return;
        };
        if !samples_ns.is_empty() {
            self.services.entry(service).or_default().add(samples_ns);
        }
        if self.emulated {
            let marked = marked + u64::from(WARM_UP);
            self.note_slowest(service, samples_ns, marked);
            if let Some(typical) = WorstSample::typical(samples_ns, marked + 1) {
                self.typical.entry(service).or_insert(typical);
            }
        }
        self.not_in_turn += answer.numbers.get(NOT_IN_TURN).copied().unwrap_or(0.0) as u64;
        for found in &answer.scheduling {
            if !self.scheduling.contains(found) {
                self.scheduling.push(found.clone());
            }
        }
    }

    /// Of samples that are as slow, the first. `marked` is how many were marked before the first of these.
    fn note_slowest(&mut self, service: Service, samples_ns: &[u64], marked: u64) {
        for (mark, value_ns) in (marked + 1..).zip(samples_ns.iter().copied()) {
            let known = self.slowest.get(&service);
            if known.is_none_or(|known| known.value_ns < value_ns) {
                let slowest = WorstSample { mark, value_ns };
                self.slowest.insert(service, slowest);
            }
        }
    }

    /// What was found.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: self.series(),
            columns: vec!["load".to_owned(), "real_time".to_owned()],
            plots: plots(),
            derived: self.derived(),
            conclusions: self.conclusions(),
            published: self.published(),
            notes: self.notes(),
            ..Outcome::default()
        }
    }

    fn series(&self) -> Vec<Series> {
        let series = |(service, rounds): (&Service, &Rounds)| Series {
            worst_sample: self.slowest.get(service).copied(),
            typical_sample: self.typical.get(service).copied(),
            ..rounds.series(self.labels(*service))
        };
        self.services.iter().map(series).collect()
    }

    fn labels(&self, service: Service) -> Labels {
        labels([
            ("service", service.label().into()),
            ("real_time", all_real_time(&self.scheduling).into()),
        ])
    }

    fn highlights(&self) -> Vec<Highlight> {
        let highlight = |service: Service| {
            let rounds = self.services.get(&service)?;
            let max_us = rounds.recorder.statistics().max / 1e3;
            Some(Highlight {
                what: service.name().to_owned(),
                value: rounds.p50.median()? / 1e3,
                unit: "us".to_owned(),
                beside: format!("at most {max_us:.1} us"),
            })
        };
        HIGHLIGHTS.into_iter().filter_map(highlight).collect()
    }

    /// Every service without the clock read that is in its samples, the switch of threads, and how many of these each service
    /// costs that switches.
    fn derived(&self) -> Vec<Derived> {
        let derived = |name: &str, service, unit: &str, cost: Cost| Derived {
            name: name.to_owned(),
            labels: self.labels(service),
            unit: unit.to_owned(),
            value: cost.value,
            rounds: cost.rounds,
        };
        let beyond = Service::ALL.into_iter().filter_map(|service| {
            let cost = self.beyond_clock(service)?;
            Some(derived(WITHOUT_CLOCK, service, "ns", cost))
        });
        let switch = self.switch();
        let switch = switch.map(|cost| derived(SWITCH, Service::Yield, "ns", cost));
        let in_switches = Service::ALL.into_iter().filter_map(|service| {
            let cost = self.in_switches(service)?;
            Some(derived(IN_SWITCHES, service, "ratio", cost))
        });
        beyond.chain(switch).chain(in_switches).collect()
    }

    /// A service without reading the clock.
    fn beyond_clock(&self, service: Service) -> Option<Cost> {
        let clock = Cost::of(self.services.get(&Service::ClockRead)?)?;
        let whole = Cost::of(self.services.get(&service)?)?;
        let beyond = service != Service::ClockRead;
        beyond.then(|| whole.with(&clock, |whole, clock| whole - clock))
    }

    /// One of the two switches of a yield's round trip.
    fn switch(&self) -> Option<Cost> {
        let two = self.beyond_clock(Service::Yield)?;
        Some(two.with(&two, |two, _| two / 2.0))
    }

    fn in_switches(&self, service: Service) -> Option<Cost> {
        let switch = self.switch().filter(|switch| switch.value > 0.0)?;
        let cost = self.beyond_clock(service)?;
        let switches = service > Service::Yield;
        switches.then(|| cost.with(&switch, |cost, switch| cost / switch))
    }

    fn conclusions(&self) -> Vec<String> {
        [
            self.of_calls(),
            self.of_wakeups(),
            self.of_mutex(),
            self.of_round_trips(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn of_calls(&self) -> Option<String> {
        let clock = Cost::of(self.services.get(&Service::ClockRead)?)?;
        let call = self.beyond_clock(Service::SystemCall)?;
        let switch = self.switch()?;
        Some(format!(
            "Reading the clock takes {:.3} us and is in every sample. Without it, a system call takes {:.3} us and the switch \
             from one thread to another, half of a yield's round trip, {:.3} us.",
            clock.value / 1e3,
            call.value / 1e3,
            switch.value / 1e3
        ))
    }

    fn of_wakeups(&self) -> Option<String> {
        let futex = self.in_switches(Service::Futex)?.value;
        let eventfd = self.in_switches(Service::Eventfd)?.value;
        let costs = format!(
            "To wake a more urgent thread costs as much as {futex:.1} switches by a futex and {eventfd:.1} by an eventfd."
        );
        let why = match (self.preempt_rt, eventfd - futex >= DETOUR_SWITCHES) {
            (true, true) => DETOUR,
            (true, false) => NO_DETOUR,
            (false, _) => "",
        };
        Some(format!("{costs}{why}"))
    }

    fn of_mutex(&self) -> Option<String> {
        let whole = self.beyond_clock(Service::PiLock)?.value;
        let end = self.beyond_clock(Service::PiHandOver)?.value;
        let switches = self.in_switches(Service::PiLock)?.value;
        Some(format!(
            "A mutex with inheritance that a less urgent thread holds costs {:.3} us beyond its critical section, as much as \
             {switches:.1} switches: {:.3} us of it from when it is given back until the one who waited has it.",
            whole / 1e3,
            end / 1e3
        ))
    }

    fn of_round_trips(&self) -> Option<String> {
        let way = |service: Service| {
            let us = self.beyond_clock(service)?.value / 1e3;
            let switches = self.in_switches(service)?.value;
            Some(format!(
                "{us:.2} us by {} ({switches:.1} switches)",
                service.name()
            ))
        };
        let ways = [Service::Pipe, Service::Unix, Service::Tcp];
        let ways: Vec<String> = ways.into_iter().filter_map(way).collect();
        (!ways.is_empty()).then(|| {
            format!(
                "64 octets to another thread and back take {}.",
                ways.join(", ")
            )
        })
    }

    fn published(&self) -> Vec<Published> {
        let ours = [
            (Test::Yield, "half of a yield's round trip", self.switch()),
            (
                Test::Synchronized,
                "from the release of a mutex until the more urgent thread has it",
                self.beyond_clock(Service::PiHandOver),
            ),
        ];
        let rows = ours.iter().filter_map(|(test, what, cost)| {
            let ours = format!("median {:.3}", cost.as_ref()?.value / 1e3);
            Some((*test, *what, ours))
        });
        let rows = rows.flat_map(|(test, what, ours)| {
            [&P0, &P2].into_iter().filter_map(move |table| {
                Some(Published {
                    source: table.source.to_owned(),
                    what: format!("{what}, mean (standard deviation) in us, {}", table.machine),
                    published: table.shown(test)?,
                    ours: ours.clone(),
                })
            })
        });
        rows.collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !all_real_time(&self.scheduling) {
            notes.push(NO_FIFO.to_owned());
        }
        if self.not_in_turn > 0 {
            notes.push(format!(
                "In {} yields the other thread did not run exactly once: they are no round trips of two switches.",
                self.not_in_turn
            ));
        }
        notes
    }
}

impl Service {
    /// The value of the label `service`.
    pub(in crate::experiments) fn label(self) -> &'static str {
        match self {
            Self::ClockRead => "clock_read",
            Self::SystemCall => "system_call",
            Self::SetTimer => "set_timer",
            Self::Yield => "yield",
            Self::Futex => "futex",
            Self::Eventfd => "eventfd",
            Self::PiHandOver => "pi_hand_over",
            Self::PiLock => "pi_lock",
            Self::Pipe => "pipe",
            Self::Unix => "unix",
            Self::Tcp => "tcp",
        }
    }

    /// Its name in a sentence.
    pub(in crate::experiments) fn name(self) -> &'static str {
        match self {
            Self::ClockRead => "clock read",
            Self::SystemCall => "system call",
            Self::SetTimer => "setting a timer",
            Self::Yield => "yield round trip",
            Self::Futex => "wake-up by futex",
            Self::Eventfd => "wake-up by eventfd",
            Self::PiHandOver => "hand-over of a PI mutex",
            Self::PiLock => "contended PI mutex",
            Self::Pipe => "pipe",
            Self::Unix => "UNIX socket",
            Self::Tcp => "TCP",
        }
    }
}

/// A cost in nanoseconds or switches: of the medians over rounds, and of each round.
#[derive(Clone, Debug, PartialEq)]
struct Cost {
    value: f64,
    rounds: Vec<f64>,
}

impl Cost {
    fn of(rounds: &Rounds) -> Option<Self> {
        Some(Self {
            value: rounds.p50.median()?,
            rounds: rounds.p50.values(),
        })
    }

    fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let rounds = self.rounds.iter().zip(&other.rounds);
        Self {
            value: of(self.value, other.value),
            rounds: rounds.map(|(one, other)| of(*one, *other)).collect(),
        }
    }
}

fn plots() -> Vec<Plot> {
    vec![
        Plot {
            id: "services".to_owned(),
            title: "What each service costs".to_owned(),
            caption:
                "From just before it is asked for until it is had, with one reading of the clock."
                    .to_owned(),
            kind: PlotKind::Bars,
            x: "service".to_owned(),
            x_title: "service".to_owned(),
            values: vec![StatisticName::P50, StatisticName::P99, StatisticName::Max],
            log_y: true,
            ..Plot::default()
        },
        Plot {
            id: "services-percentiles".to_owned(),
            title: "The tail of each service".to_owned(),
            caption: "How much longer a service takes than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            lines: vec!["service".to_owned()],
            log_y: true,
            ..Plot::default()
        },
    ]
}

const HIGHLIGHTS: [Service; 7] = [
    Service::SystemCall,
    Service::Yield,
    Service::Futex,
    Service::Eventfd,
    Service::PiLock,
    Service::Unix,
    Service::Tcp,
];
const WITHOUT_CLOCK: &str = "without_clock_read";
const SWITCH: &str = "one_switch";
const IN_SWITCHES: &str = "in_switches";
/// Less than two more switches is no detour by the lock.
const DETOUR_SWITCHES: f64 = 2.0;
const DETOUR: &str = " On PREEMPT_RT the lock of a wait queue is itself a mutex: the reader that is woken preempts the writer, which \
                      still holds it, has to wait for it, lends the writer its priority, and has the CPU again when the writer has \
                      given it back. A futex wakes after its lock was given back.";
const NO_DETOUR: &str = " On this PREEMPT_RT kernel the reader of an eventfd does not wait for the lock that its waker holds.";
const NO_FIFO: &str = "Without SCHED_FIFO on one CPU, who is woken need not run at once, and a yield need not let the other thread \
                       run: what others do meanwhile is in the samples.";

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(samples_ns: &[u64], real_time: bool) -> Answer {
        Answer {
            samples: vec![samples_ns.to_vec()],
            scheduling: vec![ObtainedScheduling {
                process: "the threads: first".to_owned(),
                threads: 1,
                policy: "SCHED_FIFO".to_owned(),
                priority: 40,
                cpus: "1".to_owned(),
                real_time,
            }],
            ..Answer::default()
        }
    }

    fn cost_ns(service: Service) -> u64 {
        match service {
            Service::ClockRead => 100,
            Service::SystemCall => 500,
            Service::SetTimer => 900,
            Service::Yield => 4_100,
            Service::Futex => 3_100,
            Service::Eventfd => 12_100,
            Service::PiHandOver => 6_100,
            Service::PiLock => 13_100,
            Service::Pipe => 10_100,
            Service::Unix => 17_100,
            Service::Tcp => 30_100,
        }
    }

    fn measured(preempt_rt: bool) -> Measured {
        let mut measured = Measured {
            preempt_rt,
            ..Measured::default()
        };
        for round in 0..3 {
            for service in Service::ALL {
                let ns = cost_ns(service) + round;
                measured.add(service, &answer(&[ns, ns, ns, ns + 90_000], true), 0);
            }
        }
        measured
    }

    fn of<'a>(derived: &'a [Derived], name: &str, service: Service) -> Option<&'a Derived> {
        let mut found = derived.iter().filter(|derived| derived.name == name);
        found.find(|derived| derived.labels["service"] == service.label().into())
    }

    #[test]
    fn a_service_is_told_without_the_clock_and_in_switches() {
        let derived = measured(false).outcome().derived;
        let call = of(&derived, WITHOUT_CLOCK, Service::SystemCall).unwrap();
        assert_eq!((call.value, &call.rounds[..]), (400.0, &[400.0; 3][..]));
        assert!(of(&derived, WITHOUT_CLOCK, Service::ClockRead).is_none());
        assert_eq!(of(&derived, SWITCH, Service::Yield).unwrap().value, 2_000.0);
        let eventfd = of(&derived, IN_SWITCHES, Service::Eventfd).unwrap();
        assert_eq!((eventfd.value, eventfd.rounds.len()), (6.0, 3));
        assert!(of(&derived, IN_SWITCHES, Service::SystemCall).is_none());
    }

    #[test]
    fn every_service_has_a_series_in_the_order_of_all() {
        let series = measured(false).outcome().series;
        let labels: Vec<String> = series
            .iter()
            .map(|series| series.labels["service"].to_string())
            .collect();
        assert_eq!(labels, Service::ALL.map(Service::label));
        assert_eq!((series[0].count, series[0].rounds_p50.len()), (12, 3));
        assert_eq!(series[0].statistics.max, 90_102.0);
    }

    #[test]
    fn the_slowest_sample_of_all_rounds_is_found_again_in_an_emulated_machine() {
        let mut measured = Measured {
            emulated: true,
            ..Measured::default()
        };
        measured.add(Service::Futex, &answer(&[3, 9, 4], true), 0);
        measured.add(Service::Futex, &answer(&[8, 12, 12], true), 1_000);
        let worst = measured.outcome().series[0].worst_sample.unwrap();
        let mark = 1_000 + u64::from(WARM_UP) + 2;
        assert_eq!((worst.mark, worst.value_ns), (mark, 12));
        let typical = measured.outcome().series[0].typical_sample.unwrap();
        let mark = u64::from(WARM_UP) + 3;
        assert_eq!((typical.mark, typical.value_ns), (mark, 4));
        let elsewhere = super::tests::measured(false).outcome().series;
        assert!(elsewhere.iter().all(|series| series.worst_sample.is_none()));
    }

    #[test]
    fn the_detour_of_an_eventfd_is_told_where_it_was_seen() {
        let told = |measured: &Measured| measured.outcome().conclusions[1].clone();
        let seen = told(&measured(true));
        assert!(seen.contains("1.5 switches by a futex and 6.0"), "{seen}");
        assert!(seen.contains("preempts the writer"), "{seen}");
        assert!(!told(&measured(false)).contains("PREEMPT_RT"));
        let mut without = measured(true);
        without.services.remove(&Service::Eventfd);
        without.add(Service::Eventfd, &answer(&[3_400; 3], true), 0);
        assert!(told(&without).contains("does not wait"));
    }

    #[test]
    fn what_the_papers_have_stands_beside_ours() {
        let outcome = measured(false).outcome();
        assert_eq!(outcome.published.len(), 4, "{:?}", outcome.published);
        assert!(outcome.published[0].published.contains("Linux 0.548"));
        assert_eq!(outcome.published[0].ours, "median 2.000");
        assert_eq!(outcome.published[2].ours, "median 6.000");
    }

    #[test]
    fn without_priorities_it_is_said_and_what_is_missing_is_left_out() {
        let mut measured = Measured::default();
        let mut yields = answer(&[7_000], false);
        yields.numbers.insert(NOT_IN_TURN.to_owned(), 3.0);
        measured.add(Service::Yield, &yields, 0);
        measured.add(Service::Tcp, &answer(&[], false), 0);
        let outcome = measured.outcome();
        assert_eq!(outcome.series.len(), 1);
        assert!(outcome.conclusions.is_empty() && outcome.derived.is_empty());
        let notes = outcome.notes.join(" ");
        assert!(notes.contains("Without SCHED_FIFO"), "{notes}");
        assert!(notes.contains("In 3 yields"), "{notes}");
    }
}
