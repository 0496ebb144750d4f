//! What follows from the samples of all services.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::{Derived, Highlight, Published, labels};

use super::probe::{NOT_IN_TURN, Service};
use crate::experiments::os_context_switch::probe::Test;
use crate::experiments::os_context_switch::published::{P0, P2};
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let costs = Costs { cells, conditions };
    Findings {
        highlights: costs.highlights(),
        derived: costs.derived(),
        conclusions: costs.conclusions(),
        published: costs.published(),
        notes: costs.notes(),
        ..Findings::default()
    }
}

/// The costs of the services.
struct Costs<'a> {
    cells: &'a Cells,
    conditions: &'a Conditions,
}

impl Costs<'_> {
    fn samples(&self, service: Service) -> Option<&Samples> {
        let wanted = [("service", service.label().into())];
        let found = self.cells.with(&wanted).map(|(_, samples)| samples).next();
        found.filter(|samples| samples.statistics().max > 0.0)
    }

    fn cost(&self, service: Service) -> Option<Cost> {
        let rounds = self.samples(service)?.rounds(|round| round.p50);
        Some(Cost {
            value: rounds.median()?,
            rounds,
        })
    }

    fn highlights(&self) -> Vec<Highlight> {
        let highlight = |service: Service| {
            let samples = self.samples(service)?;
            let max_us = samples.statistics().max / 1e3;
            Some(Highlight {
                what: service.name().to_owned(),
                value: samples.median_ns()? / 1e3,
                unit: "us".to_owned(),
                beside: format!("at most {max_us:.1} us"),
            })
        };
        HIGHLIGHTS.into_iter().filter_map(highlight).collect()
    }

    /// Every service without the clock read that is in its samples, the switch of threads, and how many of these each service
    /// costs that switches.
    fn derived(&self) -> Vec<Derived> {
        let derived = |name: &str, service: Service, unit: &str, cost: Cost| Derived {
            name: name.to_owned(),
            labels: labels([
                ("service", service.label().into()),
                ("real_time", self.conditions.real_time.into()),
            ]),
            unit: unit.to_owned(),
            value: cost.value,
            rounds: cost.rounds.values(),
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
        let clock = self.cost(Service::ClockRead)?;
        let whole = self.cost(service)?;
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
        let clock = self.cost(Service::ClockRead)?;
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
        let why = match (
            self.conditions.preempt_rt,
            eventfd - futex >= DETOUR_SWITCHES,
        ) {
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
        if !self.conditions.real_time {
            notes.push(NO_FIFO.to_owned());
        }
        let not_in_turn = self.conditions.numbers.get(NOT_IN_TURN);
        if let Some(yields) = not_in_turn.filter(|yields| **yields > 0.0) {
            notes.push(format!(
                "In {yields} yields the other thread did not run exactly once: they are no round trips of two switches."
            ));
        }
        notes
    }
}

impl Service {
    /// The value of the label `service`.
    pub(in crate::experiments) const fn label(self) -> &'static str {
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
    rounds: ByRound,
}

impl Cost {
    fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            value: of(self.value, other.value),
            rounds: self.rounds.paired(&other.rounds, of),
        }
    }
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
const NO_FIFO: &str = "Without SCHED_FIFO on one CPU, a thread that is woken need not run at once, and a yield need not let the other thread \
                       run: what others do meanwhile is in the samples.";

#[cfg(test)]
mod tests {
    use super::*;

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

    fn cells(eventfd_ns: u64) -> Cells {
        let mut cells = Cells::default();
        for round in 0..3 {
            for service in Service::ALL {
                let labels = labels([("service", service.label().into())]);
                let ns = round as u64
                    + match service {
                        Service::Eventfd => eventfd_ns,
                        other => cost_ns(other),
                    };
                cells.add(&labels, round, &[ns, ns, ns, ns + 90_000], 0);
            }
        }
        cells
    }

    fn found(eventfd_ns: u64, preempt_rt: bool) -> Findings {
        let conditions = Conditions {
            real_time: true,
            preempt_rt,
            ..Conditions::default()
        };
        findings(&cells(eventfd_ns), &conditions)
    }

    fn of<'a>(derived: &'a [Derived], name: &str, service: Service) -> Option<&'a Derived> {
        let mut found = derived.iter().filter(|derived| derived.name == name);
        found.find(|derived| derived.labels["service"] == service.label().into())
    }

    #[test]
    fn a_service_is_told_without_the_clock_and_in_switches() {
        let derived = found(12_100, false).derived;
        let call = of(&derived, WITHOUT_CLOCK, Service::SystemCall).unwrap();
        assert_eq!((call.value, &call.rounds[..]), (400.0, &[400.0; 3][..]));
        assert!(of(&derived, WITHOUT_CLOCK, Service::ClockRead).is_none());
        assert_eq!(of(&derived, SWITCH, Service::Yield).unwrap().value, 2_000.0);
        let eventfd = of(&derived, IN_SWITCHES, Service::Eventfd).unwrap();
        assert_eq!((eventfd.value, eventfd.rounds.len()), (6.0, 3));
        assert!(of(&derived, IN_SWITCHES, Service::SystemCall).is_none());
    }

    #[test]
    fn the_detour_of_an_eventfd_is_told_where_it_was_seen() {
        let told = |eventfd_ns, preempt_rt| found(eventfd_ns, preempt_rt).conclusions[1].clone();
        let seen = told(12_100, true);
        assert!(seen.contains("1.5 switches by a futex and 6.0"), "{seen}");
        assert!(seen.contains("preempts the writer"), "{seen}");
        assert!(!told(12_100, false).contains("PREEMPT_RT"));
        assert!(told(3_400, true).contains("does not wait"));
    }

    #[test]
    fn what_the_papers_have_stands_beside_ours() {
        let published = found(12_100, false).published;
        assert_eq!(published.len(), 4, "{published:?}");
        assert!(published[0].published.contains("Linux 0.548"));
        assert_eq!(published[0].ours, "median 2.000");
        assert_eq!(published[2].ours, "median 6.000");
    }

    #[test]
    fn without_priorities_it_is_said_and_what_is_missing_is_left_out() {
        let mut cells = Cells::default();
        let of = |service: Service| labels([("service", service.label().into())]);
        cells.add(&of(Service::Yield), 0, &[7_000], 0);
        cells.add(&of(Service::Tcp), 0, &[], 0);
        let conditions = Conditions {
            numbers: [(NOT_IN_TURN.to_owned(), 3.0)].into(),
            ..Conditions::default()
        };
        let found = findings(&cells, &conditions);
        assert!(found.conclusions.is_empty() && found.derived.is_empty());
        let notes = found.notes.join(" ");
        assert!(notes.contains("Without SCHED_FIFO"), "{notes}");
        assert!(notes.contains("In 3 yields"), "{notes}");
    }
}
