//! What the counts say: promises, published figures, and the numbers to read first.

use rtorb_results::{Claim, Highlight, Published, all_real_time};

use super::contestant::Sides;
use super::measured::{Measured, What};
use crate::contestants::OMNIORB;
use crate::contestants::whitebox::clients::LOW_CLIENTS;
use crate::contestants::whitebox::perf::Phase;
use crate::experiment::Outcome;

pub(super) fn outcome(mut measured: Measured, complete: bool) -> Outcome {
    let real_time = all_real_time(&measured.scheduling);
    let mut notes = std::mem::take(&mut measured.notes);
    notes.extend(EXPLANATIONS.map(str::to_owned));
    Outcome {
        complete,
        highlights: highlights(&measured),
        series: measured.series(real_time),
        claims: claims(&measured),
        published: published(&measured),
        scheduling: measured.scheduling,
        notes,
        ..Outcome::default()
    }
}

fn highlights(measured: &Measured) -> Vec<Highlight> {
    let locks = |preset| sum(measured, preset, What::UserLocks);
    let mut highlights = Vec::new();
    if let Some(value) = locks(TAO) {
        let others: Vec<String> = measured
            .presets
            .iter()
            .filter(|preset| **preset != TAO)
            .filter_map(|preset| Some(format!("{preset} {:.1}", locks(preset)?)))
            .collect();
        highlights.push(Highlight {
            what: "lock operations a request, preset tao, both sides".to_owned(),
            value,
            unit: String::new(),
            beside: others.join(", "),
        });
    }
    let calls = [
        (What::SystemCalls, "system calls"),
        (What::HeapCalls, "heap calls"),
    ];
    for (what, name) in calls {
        if let Some(value) = sum(measured, TAO, what) {
            let peer = sum(measured, OMNIORB, what);
            highlights.push(Highlight {
                what: format!("{name} a request, preset tao, both sides"),
                value,
                unit: String::new(),
                beside: peer.map_or_else(String::new, |peer| format!("omniORB {peer:.2}")),
            });
        }
    }
    highlights
}

/// What is promised of the preset in which nothing is shared between priorities.
fn claims(measured: &Measured) -> Vec<Claim> {
    let promised = [
        (What::UserLocks, "user-locks", "user-level lock operations"),
        (
            What::KernelLocks,
            "kernel-locks",
            "kernel-level lock calls (futex)",
        ),
        (What::HeapCalls, "heap-calls", "heap calls"),
    ];
    let claim = |(what, id, name): (What, &str, &str)| {
        let value = sum(measured, TAO, what)?;
        let text = format!("preset tao: {name} a request, both sides: none in 1,000 requests");
        Some(Claim::counted(id, text, value, NONE, "per_request"))
    };
    promised.into_iter().filter_map(claim).collect()
}

/// Figures 9, 10, 13 and 14, as far as the text gives numbers.
fn published(measured: &Measured) -> Vec<Published> {
    let locks = [
        ("corbaplus", "CORBAplus", "199 + 216"),
        ("minicool", "miniCOOL", "94 + 231"),
        ("mt_orbix", "MT-Orbix", "175 + 599"),
        (TAO, "TAO", "41 + 100"),
    ];
    let mut published: Vec<Published> = locks
        .into_iter()
        .filter_map(|(preset, name, figures)| {
            Some(Published {
                source: "P1 Figure 13".to_owned(),
                what: format!("{name}: user-level lock operations a request, client + server"),
                published: figures.to_owned(),
                ours: shown(measured.both(preset, TEN, What::UserLocks)?),
            })
        })
        .collect();
    let kernel = measured.both(TAO, TEN, What::KernelLocks);
    published.extend(kernel.map(|calls| Published {
        source: "P1 Figure 14".to_owned(),
        what: "TAO: kernel-level lock calls a request, client + server".to_owned(),
        published: "none in the ORB core".to_owned(),
        ours: shown(calls),
    }));
    let shares = [
        ("corbaplus", "CORBAplus", "P1 Figure 9", "52 % + 45 %"),
        (
            "minicool",
            "miniCOOL",
            "P1 Figure 10",
            "about 50 % + more than 40 %",
        ),
    ];
    for (preset, name, source, figures) in shares {
        if let Some(share) = lock_share(measured, preset) {
            published.push(Published {
                source: source.to_owned(),
                what: format!("{name}: share of the time that goes into locks, client + server"),
                published: figures.to_owned(),
                ours: format!(
                    "{:.0} % + {:.0} %",
                    share.client * 100.0,
                    share.server * 100.0
                ),
            });
        }
    }
    published
}

/// Time in locks, in user space and in the kernel, as a part of all.
fn lock_share(measured: &Measured, preset: &str) -> Option<Sides<f64>> {
    let all = measured.both(preset, TEN, What::CpuTime)?;
    let user = measured.both(preset, TEN, What::CpuTimeOf(Phase::UserLocks))?;
    let kernel = measured.both(preset, TEN, What::CpuTimeOf(Phase::KernelLocks))?;
    Some(Sides {
        client: (user.client + kernel.client) / all.client,
        server: (user.server + kernel.server) / all.server,
    })
}

/// Of both sides, with ten clients.
fn sum(measured: &Measured, preset: &str, what: What) -> Option<f64> {
    let both = measured.both(preset, TEN, what)?;
    Some(both.client + both.server)
}

fn shown(both: Sides<f64>) -> String {
    format!("{:.1} + {:.1}", both.client, both.server)
}

const TAO: &str = "tao";
const TEN: u32 = LOW_CLIENTS + 1;
/// Less than one in a thousand requests: what a timer of the ORB's may do now and then is no part of a call.
const NONE: f64 = 0.001;

const EXPLANATIONS: [&str; 3] = [
    "A user-level lock operation is one call that takes or gives back a mutex, as in P1: a critical section is two. Of rtorb, \
     the mutexes of the ORB are counted (it has no others); of omniORB, the calls of pthread_mutex functions. Single atomic \
     operations, and queues made of them, are no locks. P1's figures hold the locks of the allocator too.",
    "Kernel-level locks are calls of futex(2).",
    "With ten clients, the high-priority one pauses for 100 us between calls, as clients did in P1: this is one voluntary \
     switch in ten requests on the client side. Its call of clock_nanosleep is left out.",
];

#[cfg(test)]
mod tests {
    use super::super::contestant::Run;
    use super::super::measured::Side;
    use super::*;
    use rtorb_results::Verdicts;

    fn measured(preset: &'static str, client: f64, server: f64) -> Measured {
        let run = Run {
            low_clients: LOW_CLIENTS,
            count: 1,
            period_us: 0,
        };
        let mut measured = Measured::default();
        for what in [What::UserLocks, What::KernelLocks, What::HeapCalls] {
            measured.add(preset, &run, (Side::Client, what), client);
            measured.add(preset, &run, (Side::Server, what), server);
        }
        measured
    }

    #[test]
    fn the_preset_tao_is_promised_to_take_no_lock() {
        let outcome = super::outcome(measured(TAO, 0.0, 0.0), true);
        assert_eq!(Verdicts::of(&outcome.claims).held, 3);
        let outcome = super::outcome(measured(TAO, 1.0, 0.0), true);
        assert_eq!(Verdicts::of(&outcome.claims).missed, 3);
        let outcome = super::outcome(measured("minicool", 1.0, 1.0), true);
        assert_eq!(outcome.claims, []);
    }

    #[test]
    fn published_figures_stand_beside_those_of_the_preset_of_the_same_architecture() {
        // Ten requests: 20 and 40 operations are 2 and 4 a request.
        let outcome = super::outcome(measured("minicool", 20.0, 40.0), true);
        let row = outcome.published.first().expect("miniCOOL's");
        assert_eq!(
            (row.published.as_str(), row.ours.as_str()),
            ("94 + 231", "2.0 + 4.0")
        );
        let series = &outcome.series[0];
        assert_eq!(series.labels["preset"].to_string(), "minicool");
        assert_eq!((series.count, series.statistics.p50), (10, 2.0));
    }
}
