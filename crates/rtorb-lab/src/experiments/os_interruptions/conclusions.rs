//! What a run says in words, numbers to read first, and plots.

use rtorb_results::{Highlight, Plot, PlotKind};

use super::kinds::Kind;
use super::measured::{Found, Surroundings, Taken};

pub(super) fn highlights(found: &Found) -> Vec<Highlight> {
    let lengths = [
        ("a tick of the kernel", found.of(Kind::Tick)),
        ("the interrupt of a release", &found.releases),
        ("other interruptions", found.of(Kind::Other)),
        ("taken by the hypervisor at a time", found.of(Kind::Theft)),
    ];
    let mut highlights: Vec<Highlight> = lengths
        .into_iter()
        .filter(|(_, taken)| taken.count() > 0)
        .map(|(what, taken)| {
            let of = taken.rounds.recorder.statistics();
            Highlight {
                what: what.to_owned(),
                value: of.p50 / 1e3,
                unit: "us".to_owned(),
                beside: format!(
                    "99 of 100 at most {:.1} us, at most {:.1} us",
                    of.p99 / 1e3,
                    of.max / 1e3
                ),
            }
        })
        .collect();
    if found.all.count() > 0 {
        highlights.push(Highlight {
            what: "of the CPU goes to interruptions".to_owned(),
            value: found.all.share() * 100.0,
            unit: "%".to_owned(),
            beside: format!("{:.0} a second", found.all.a_second()),
        });
    }
    highlights
}

pub(super) fn words(found: &Found, surroundings: &Surroundings) -> Vec<String> {
    [
        of_ticks(found),
        of_releases(found),
        of_thefts(found, surroundings),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_ticks(found: &Found) -> Option<String> {
    let ticks = found.kinds.ticks?;
    let tick = found.of(Kind::Tick);
    Some(format!(
        "The kernel's tick comes each {:.3} ms and takes {} from the most urgent thread: {:.3} % of the CPU.",
        ticks.period_ns as f64 / 1e6,
        lengths(tick),
        tick.share() * 100.0
    ))
}

fn of_releases(found: &Found) -> Option<String> {
    let releases = &found.releases;
    (releases.count() > 0).then(|| {
        format!(
            "The interrupt that ends the sleep of a less urgent thread takes {} from the most urgent one; {} of {} were found.",
            lengths(releases),
            releases.count(),
            found.released
        )
    })
}

fn of_thefts(found: &Found, surroundings: &Surroundings) -> Option<String> {
    let min_us = found.kinds.theft_ns_min? as f64 / 1e3;
    let thefts = found.of(Kind::Theft);
    let seen = match thefts.count() {
        0 => format!("No interruption was longer than {min_us:.0} us."),
        count => format!(
            "{count} interruptions were longer than {min_us:.0} us, at least ten times a tick, and are taken for the hypervisor's: {}, {:.1} ms \
             in all.",
            lengths(thefts),
            thefts.sum_ns() as f64 / 1e6
        ),
    };
    let counted = surroundings.stolen_ms.map_or_else(String::new, |ms| {
        format!(
            " The kernel counted {ms} ms as stolen from this CPU meanwhile, the pauses between rounds included."
        )
    });
    Some(seen + &counted)
}

fn lengths(taken: &Taken) -> String {
    let of = taken.rounds.recorder.statistics();
    format!(
        "{:.1} us (median; 99 of 100 at most {:.1} us, all at most {:.1} us)",
        of.p50 / 1e3,
        of.p99 / 1e3,
        of.max / 1e3
    )
}

pub(super) fn notes(found: &Found, real_time: bool) -> Vec<String> {
    let mut notes = vec![OTHER_TOOLS.to_owned()];
    if !real_time {
        notes.push(NO_FIFO.to_owned());
    }
    if found.kinds.ticks.is_none() {
        notes.push(NO_TICK.to_owned());
    }
    if found.switched > 0 {
        notes.push(format!(
            "In {} further gaps another thread ran: they are no interruptions, and in no series.",
            found.switched
        ));
    }
    if found.beyond_room > 0 {
        notes.push(format!(
            "{} gaps had no room: the rounds in which there were more than fit are those with most interruptions.",
            found.beyond_room
        ));
    }
    notes
}

pub(super) fn plots() -> Vec<Plot> {
    let what = || vec!["what".to_owned()];
    vec![
        Plot {
            id: "interruptions".to_owned(),
            title: "How long the most urgent thread is interrupted".to_owned(),
            caption: "Gaps between two readings of the clock during which no other thread ran, by what they are taken for.".to_owned(),
            kind: PlotKind::Histogram,
            lines: what(),
            x_title: "length of an interruption, us".to_owned(),
            log_x: true,
            log_y: true,
            ..Plot::default()
        },
        Plot {
            id: "interruptions-percentiles".to_owned(),
            title: "The tail of each kind of interruption".to_owned(),
            caption: "How much longer an interruption is than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            lines: what(),
            log_y: true,
            ..Plot::default()
        },
    ]
}

const OTHER_TOOLS: &str = "Such gaps are what oslat of rt-tests looks for, which cannot tell whether another thread ran, and what the \
                           kernel's osnoise tracer finds, which names the interrupts. The hwlat tracer looks with interrupts switched \
                           off: what it finds is the firmware's and the hypervisor's alone. Where the kernel has these tracers, they say \
                           who it was.";
const NO_FIFO: &str = "Without SCHED_FIFO on one CPU other threads may run instead of the one that looks: gaps with a switch are left out, \
                       but interrupts while they ran were not seen.";
const NO_TICK: &str = "No tick was found at a regular distance: the kernel may be one that has none while a single thread computes \
                       (nohz_full), or too many came late.";
