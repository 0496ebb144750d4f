//! `orb/histogram`: how long a call takes from a digital input to a digital output, to one receiver and to two of different
//! priority, without and with load.
//!
//! With two receivers, the edges of the less urgent wave come a little before those of the urgent one, by a lead that is
//! spread evenly: so the urgent edge meets every moment of the other call, and would have to wait if anything on the way
//! forgot the priority.

use rtorb_results::{Plot, PlotKind, labels};

use crate::contestants::square_wave::system::{self, Role};
use crate::experiment::{Context, Emulated, EmulatedLoads};
use crate::experiments::beside::{LOADS, NONE};
use crate::study::{
    Amounts, Factor, Study,
    Value::{Number, Text},
};
use systems::Systems;

mod findings;
mod kernels;
mod systems;

/// The experiment.
pub const STUDY: Study<Systems> = Study {
    name: "orb/histogram",
    title: "How long a call takes from a digital input to a digital output, with one and two receivers, without and with load",
    reproduces: "P4 Figures 6 to 9",
    amounts: Amounts {
        glance: 30,
        emulated: 125,
        quick: [6, 170],
        full: [10, 1_000],
        samples: "edges_per_round",
    },
    // The load varies slowest: to start it takes long.
    factors: &[
        Factor {
            label: "load",
            levels: &LOADS,
        },
        Factor {
            label: "transport",
            levels: &[Text("tcp"), Text("unix")],
        },
        Factor {
            label: "receivers",
            levels: &[Number(1), Number(2)],
        },
    ],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("payload_bytes", Number(0)),
    ],
    parameters: &[
        ("edges_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("low_leads_us_max", Number((LEAD_NS_MAX / 1_000) as i64)),
        ("priority_high", Number(Role::High.priority() as i64)),
        ("priority_low", Number(Role::Low.priority() as i64)),
    ],
    columns: &["load"],
    labels_of_run: system::labels_of_run,
    agents_max: system::HOSTS,
    obstacle: system::obstacle,
    period_ns: PERIOD_NS,
    // An emulated machine has the load that it was booted for.
    leaves_out: |cell, effort| effort.seeds().is_some() && cell.is("load", NONE),
    plots,
    says: findings::SAYS,
    notes,
    emulated: Some(Emulated {
        loads: EmulatedLoads::NoneAndMix,
        ..Emulated::unloaded(2.5)
    }),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| Systems::start(context))
};

fn notes(context: &Context) -> Vec<String> {
    let is_host = context.effort.seeds().is_none();
    let is_real_time = context.launcher.placement.fifo.is_some();
    let others = [
        (is_host, COLD),
        (true, MEETINGS),
        (!is_real_time, NOT_REAL_TIME),
    ];
    let others = others.into_iter().filter(|(is_so, _)| *is_so);
    let mut notes = system::notes(context);
    notes.extend(others.map(|(_, note)| note.to_owned()));
    notes
}

fn plots() -> Vec<Plot> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let plot = |id: &str, title: &str, kind| Plot {
        kind,
        x_title: "from the edge on the input until the output is set, us".to_owned(),
        log_x: true,
        log_y: true,
        ..Plot::named(id, title)
    };
    vec![
        Plot {
            caption: "One receiver. P4 shows it for a kernel with PREEMPT_RT under load, and for one without, both without and with load."
                .to_owned(),
            of: labels([("part", "call".into()), ("receivers", 1usize.into())]),
            choose: words(&["transport"]),
            lines: words(&["load"]),
            ..plot("one-receiver", "Without and with load (P4 Figures 6 to 8)", PlotKind::Histogram)
        },
        Plot {
            caption: "Both receivers are called: the edges of the low one come up to 100 us before those of the high one."
                .to_owned(),
            of: labels([("part", "call".into()), ("receivers", 2usize.into())]),
            choose: words(&["transport", "load"]),
            lines: words(&["role"]),
            ..plot("two-receivers", "Two receivers of different priority (P4 Figure 9)", PlotKind::Histogram)
        },
        Plot {
            caption: "The high receiver, by whether a call to the low one was in progress when its edge came: without priority inversion \
                      the lines are one."
                .to_owned(),
            of: labels([("part", MEETING.into())]),
            choose: words(&["transport", "load"]),
            lines: words(&["low_call"]),
            ..plot("high-meets-low", "Whether the high receiver waits for a low call", PlotKind::Percentiles)
        },
        Plot {
            caption: "The high receiver alone, and while the low one is called too. Not for this alone do the lines differ: alone, caches are colder."
                .to_owned(),
            of: labels([("part", "call".into()), ("role", "high".into())]),
            choose: words(&["transport"]),
            lines: words(&["receivers", "load"]),
            ..plot("high-alone-and-with-low", "What the high receiver feels of the low one", PlotKind::Percentiles)
        },
    ]
}

/// The part of the latencies that has the label `low_call`. Like `call`, it is from the edge until the output was set.
const MEETING: &str = "meeting";
/// The values of `low_call`: what the low receiver's call did when the high one's edge came.
const LOW_CALLS: [&str; 2] = ["in_progress", "none"];
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
/// Longer than a call takes.
const LEAD_NS_MAX: u64 = 100_000;
const COLD: &str = "Alone, the high receiver finds colder caches than while the low one's calls run the same code: this may make its \
                    median with the low one smaller, and hide as much of a wait.";
const MEETINGS: &str = "Whether there is priority inversion is judged within the runs with both receivers, by what the low one's call did \
                        when the high one's edge came: `in_progress`, or `none`. Caches are as warm in both. Edges between a low edge \
                        and the moment at which its thread ran are of neither kind, since one timer interrupt may serve both.";
const NOT_REAL_TIME: &str =
    "Without SCHED_FIFO no call has a priority: `role` says what was asked for.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Effort, Experiment};

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_under_its_one_load() {
        assert!(STUDY.varies_load());
        let emulated = Effort::Emulated {
            seeds: 4,
            full: false,
        };
        assert_eq!(STUDY.cells(emulated).len(), 4);
        assert_eq!(STUDY.cells(Effort::Quick).len(), 8);
        let parameters = STUDY.parameters(emulated);
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 4);
        assert!(!parameters.contains_key("load"), "the run knows it");
    }
}
