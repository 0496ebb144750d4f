//! `os/mutex`: how long a high-priority thread waits for a mutex that a low-priority one holds, while a medium-priority one
//! only computes: the unbounded priority inversion of P1 2.3, with and without a cure.
//!
//! All threads are on one CPU. Low takes the mutex and lets high go, which wants it, then medium, which computes; then low works
//! through its critical section. With inheritance, high waits for the rest of that section; without, for medium too.

use std::time::Duration;

use crate::experiments::prelude::*;
use three_threads::{Kind, SECTION_NS, SPIN_NS, Wait};

mod three_threads;

/// The experiment.
pub const STUDY: Study<ThreeThreads> = Study {
    name: "os/mutex",
    title: "How long a high-priority thread waits for a mutex that a low-priority one holds while a medium one computes",
    reproduces: "P1 section 2.3 (unbounded priority inversion by shared locks)",
    amounts: Amounts {
        glance: 1,
        emulated: 1,
        quick: [51, 1],
        full: [1_001, 1],
        samples: "samples_per_round",
    },
    factors: &[Factor::texts(
        "mutex",
        &["inheritance", "rtcorba", "ceiling", "plain"],
    )],
    fixed: "orb=rtorb_os",
    parameters: &[
        ("critical_section_us", Number((SECTION_NS / 1_000) as i64)),
        ("medium_us_max", Number((SPIN_NS / 1_000) as i64)),
    ],
    obstacle: |context| {
        let placement = &context.launcher.placement;
        placement
            .fifo
            .and(placement.cpu)
            .is_none()
            .then_some(NEEDS_FIFO)
    },
    says: SAYS,
    plots,
    services: &[ServiceRow::new("mutex", "hand_over")
        .of_derived("wait_beyond_section")
        .configured_by(&["mutex"])],
    ..Study::with(|context, _| {
        Ok(ThreeThreads {
            cpu: context.launcher.placement.cpu.unwrap_or_default(),
        })
    })
};

fn plots() -> Vec<Plot> {
    vec![Plot::bars("waits", "How long the high-priority thread waits")
        .caption(
            "Medians. With a cure, the wait is as long as the critical section; without one, it is as long as medium computes.",
        )
        .x("mutex")
        .lines(["what"])]
}

/// Threads of this process on one CPU.
#[derive(Debug)]
pub struct ThreeThreads {
    cpu: usize,
}

impl Subject for ThreeThreads {
    fn measure(&mut self, cell: &Cell<'_>, _: &Turn<'_>) -> Result<Sampled, LabError> {
        let kind: Option<Kind> = cell.parsed("mutex");
        let seen = three_threads::run(kind.expect("every level is a kind"), self.cpu);
        std::thread::sleep(PAUSE);
        let seen = seen.map_err(|error| LabError::process("os/mutex", error))?;
        let Wait {
            waited_ns,
            section_ns,
            switch_ns,
        } = seen.wait;
        let parts = [
            (WAIT, waited_ns),
            (SECTION, section_ns),
            (SWITCH, switch_ns),
        ];
        let part = |(what, ns): (&str, u64)| (labels([("what", what.into())]), vec![ns]);
        Ok(Sampled {
            parts: parts.map(part).into(),
            scheduling: seen.scheduling,
            ..Sampled::default()
        })
    }
}

/// The high-priority thread's wait beyond the critical section.
const BEYOND: Metric = Metric::of(P50).with(&[Less(P50, "what=critical_section")]);
const BEYOND_IN_SWITCHES: Metric = Metric::of(P50)
    .with(&[Less(P50, "what=critical_section"), Over(P50, "what=switch")])
    .in_unit("switches");

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "the high-priority thread's wait, {mutex} mutex",
        of: "what=wait",
        metric: US,
        beside: Words::with(
            "critical section {0}",
            &[US.at("what=critical_section")],
        ),
    }],
    derived: &[DerivedOf {
        name: "wait_beyond_section",
        of: "what=wait",
        without: &[],
        metric: BEYOND,
    }],
    // Four switches: to high, which finds the mutex taken; back to the holder; from it to high; and one more that the host may put in
    // between.
    claims: &[Declaration::each(
        "wait-beyond-section.{mutex}",
        BEYOND_IN_SWITCHES,
        4.0,
    )
    .of(
        "mutex!=plain, what=wait",
        "{mutex} mutex: in every round the high-priority thread waits no longer than the critical section and 4 switches (switches \
         beyond the section)",
    )],
    published: &[PublishedOf {
        source: "P1 section 2.3",
        what: "a medium-priority thread preempts a low-priority one that holds a lock which a high-priority one requires",
        published: "can lead to unbounded priority inversion",
        of: "mutex=plain, what=wait",
        ours: Words::with(
            "high waits {0} with a plain mutex (medium computes until high has it, for a bounded time), {1} with inheritance",
            &[US, US.at("mutex=inheritance")],
        ),
    }],
    ..Statements::NONE
};

/// The parts of a round.
const WAIT: &str = "wait";
const SECTION: &str = "critical_section";
const SWITCH: &str = "switch";
/// Leaves the CPU to others between rounds, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(5);

const NEEDS_FIFO: &str = "Nothing was measured: without SCHED_FIFO there are no priorities to invert. `rtorb check` says how \
                          to get it.";
