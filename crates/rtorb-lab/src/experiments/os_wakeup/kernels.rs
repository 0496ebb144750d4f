//! How late each system wakes the most urgent thread, under each load.

use crate::experiments::prelude::*;
use rtorb_results::campaign::RATIO;
use rtorb_results::summary::words::shown;
use rtorb_results::{Claim, Derived, Highlight, Series};

use crate::systems::SEEDS_MIN;
use rtorb_results::systems::Part;

pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let all = labels([]);
    let compared = Compared {
        what: "Worst wake-up",
        of: &all,
        by: By::Worst,
    };
    let spreads = spreads(gathered);
    let mut derived = compared.derived(gathered);
    derived.extend(spreads.iter().cloned());
    let mut conclusions = bounds(gathered);
    conclusions.extend(compared.conclusions(gathered));
    conclusions.extend(spread_in_words(&spreads));
    let highlights = compared.highlight(gathered).into_iter();
    Results {
        highlights: highlights.chain(bound_of_reference(gathered)).collect(),
        columns: words(&[SYSTEM]),
        tables: tables(),
        plots: plots(),
        derived,
        claims: claims(gathered),
        conclusions,
        ..Results::default()
    }
}

fn tables() -> Vec<TableView> {
    let by_load = TableView::default().rows(["load"]).columns([SYSTEM]);
    vec![
        by_load.clone().named("worst-by-load", "Worst wake-up over all seeds")
            .caption("From the moment that a thread of the highest priority has set until it runs.")
            .values([CellValue::Worst]),
        by_load.clone().named("ratio-by-load", "How many times that of the most real-time system")
            .caption(
                "The worst over all seeds, divided by that of the most real-time system under the same load.",
            )
            .derived(RATIO),
        by_load.named("p99-by-load", "99th percentile and median")
            .values([CellValue::P99, CellValue::Median]),
    ]
}

fn plots() -> Vec<Plot> {
    let by_system = Plot::default().lines([SYSTEM]).log_y();
    vec![
        by_system.clone().named("worst-by-load", "Worst wake-up by load")
            .kind(PlotKind::Bars)
            .caption(
                "The largest sample of all seeds. What a deadline has to allow for, on a logarithmic axis.",
            )
            .x("load")
            .values([StatisticName::Max]),
        by_system.clone().named("wakeup-tail", "The tail of the wake-up latency")
            .kind(PlotKind::Percentiles)
            .caption("A line a system.")
            .choose(["load"]),
        by_system.named("wakeup-histogram", "How late the thread wakes")
            .kind(PlotKind::Histogram)
            .caption("How far to the right the last sample lies counts for a deadline.")
            .choose(["load"])
            .log_x(),
    ]
}

/// What was promised: under these loads PREEMPT_RT's worst is a small share of that of the voluntary kernel.
fn claims(gathered: &Gathered<'_>) -> Vec<Claim> {
    let reference = gathered.reference();
    let Some(real_time) = reference.filter(|part| part.results.host.preempt_rt) else {
        return Vec::new();
    };
    let is_voluntary =
        |part: &&Part<'_>| part.system.preempt == "voluntary" && !part.results.host.preempt_rt;
    let voluntary: Vec<&Part<'_>> = gathered.parts.iter().filter(is_voluntary).collect();
    let loads = PROMISED.into_iter();
    loads
        .flat_map(|load| {
            let others = voluntary.iter();
            others.filter_map(move |other| claim(gathered, [&real_time.name, &other.name], load))
        })
        .collect()
}

/// That about a real-time system and another one, under a load; `None` if the campaign has not this load.
fn claim(gathered: &Gathered<'_>, [real_time, voluntary]: [&str; 2], load: &str) -> Option<Claim> {
    let id = voluntary.replace(' ', "-");
    let id = format!("kernel/os/wakeup.worst-share.{load}.{id}");
    let what = format!(
        "{load}: the worst wake-up of {real_time} as a share of that of {voluntary}, each over as many seeds"
    );
    let of = |name: &str| {
        let of = labels([(SYSTEM, name.into()), ("load", load.into())]);
        gathered.matching(&of).first().copied()
    };
    let (ours, theirs) = match (of(real_time), of(voluntary)) {
        (Some(ours), Some(theirs)) => (ours, theirs),
        (None, None) => return None,
        _ => {
            let reason = "one of the two was not measured under this load".to_owned();
            let limit = (SHARE_MAX_PERCENT, "%");
            return Some(Claim::not_measured(id, what, limit, reason));
        }
    };
    let share = ours.statistics.max / theirs.statistics.max.max(1.0);
    let claim = Claim::counted(id, what, 100.0 * share, SHARE_MAX_PERCENT, "%");
    Some(match why_not_judged(ours, theirs) {
        Some(reason) => claim.not_judged(reason),
        None => claim,
    })
}

/// Why the maxima of two systems cannot be compared; `None` if they can.
fn why_not_judged(ours: &Series, theirs: &Series) -> Option<String> {
    let seeds = ours.rounds_p50.len().min(theirs.rounds_p50.len());
    if ours.wrong + theirs.wrong > 0 {
        Some(format!("{} answers were wrong", ours.wrong + theirs.wrong))
    } else if seeds < usize::from(SEEDS_MIN) {
        Some(format!(
            "it is a claim over {SEEDS_MIN} seeds or more, and there are {seeds}"
        ))
    } else if ours.count != theirs.count {
        Some(format!(
            "a maximum of {} samples is compared with one of {}",
            ours.count, theirs.count
        ))
    } else {
        None
    }
}

/// The worst of each system under any load: what blocks a task there.
fn bounds(gathered: &Gathered<'_>) -> Vec<String> {
    let of_part = |part: &Part<'_>| {
        let worst = worst_of(gathered, &part.name)?;
        Some(format!(
            "{} woke the most urgent thread after at most {} k instr under any of {} loads, latest under {} ({} samples).",
            part.name,
            shown(worst.statistics.max, &worst.unit),
            gathered.values(&system_of(&part.name), "load").len(),
            load(worst),
            gathered
                .matching(&system_of(&part.name))
                .iter()
                .map(|series| series.count)
                .sum::<u64>()
        ))
    };
    gathered.parts.iter().filter_map(of_part).collect()
}

fn bound_of_reference(gathered: &Gathered<'_>) -> Option<Highlight> {
    let reference = gathered.reference()?;
    let worst = worst_of(gathered, &reference.name)?;
    Some(Highlight {
        what: format!("Worst wake-up under any load, {}", reference.name),
        value: worst.statistics.max / 1e3,
        unit: gathered.unit().to_owned(),
        beside: format!("under {}", load(worst)),
    })
}

fn worst_of<'a>(gathered: &'a Gathered<'_>, name: &str) -> Option<&'a Series> {
    let found = gathered.matching(&system_of(name)).into_iter();
    found.max_by(|left, right| left.statistics.max.total_cmp(&right.statistics.max))
}

/// How far the worst of the seeds are apart: what the worst over a few seeds may still miss.
fn spreads(gathered: &Gathered<'_>) -> Vec<Derived> {
    let spread = |series: &Series| {
        let largest = series.rounds_max.iter().copied().reduce(f64::max)?;
        let smallest = series.rounds_max.iter().copied().reduce(f64::min)?;
        (series.rounds_max.len() > 1 && smallest > 0.0).then(|| Derived {
            name: "spread_over_seeds".to_owned(),
            labels: series.labels.clone(),
            unit: "ratio".to_owned(),
            value: largest / smallest,
            rounds: Vec::new(),
        })
    };
    gathered.series.iter().filter_map(spread).collect()
}

fn spread_in_words(spreads: &[Derived]) -> Option<String> {
    let widest = spreads
        .iter()
        .max_by(|left, right| left.value.total_cmp(&right.value))?;
    let label = |name: &str| {
        let value = widest.labels.get(name);
        value.map(ToString::to_string).unwrap_or_default()
    };
    Some(format!(
        "The worst of one seed is up to {:.2} times that of another of the same case ({}, load {}): no single run's maximum is a bound.",
        widest.value,
        label(SYSTEM),
        label("load")
    ))
}

fn system_of(name: &str) -> Labels {
    labels([(SYSTEM, name.into())])
}

fn load(series: &Series) -> String {
    let load = series.labels.get("load").map(ToString::to_string);
    match load.as_deref() {
        None | Some("none") => "no load".to_owned(),
        Some(load) => load.to_owned(),
    }
}

/// The loads of the promise.
const PROMISED: [&str; 2] = ["tmpfs", "munmap"];
/// The voluntary kernel's worst is at least 20 times PREEMPT_RT's.
const SHARE_MAX_PERCENT: f64 = 5.0;

#[cfg(test)]
mod tests {
    use rtorb_results::systems::OfSystem;
    use rtorb_results::{Verdict, synthetic};

    use super::*;

    /// A system that ran with this number of seeds under the first promised load. Each seed has two samples; without a seed there is no
    /// series.
    fn of_system(preempt: &str, late_ns: u64, seeds: usize) -> OfSystem {
        let of = labels([("load", PROMISED[0].into())]);
        let mut series = synthetic::series(of, vec![late_ns; 2 * seeds]);
        series.rounds_p50 = vec![late_ns as f64; seeds];
        let series = (seeds > 0).then_some(series);
        let results = synthetic::results("os/wakeup", series.into_iter().collect());
        synthetic::of_system(preempt, results)
    }

    fn verdicts(seeds: [usize; 2]) -> Vec<Verdict> {
        let systems = [
            of_system("full", 1_000, seeds[0]),
            of_system("voluntary", 900_000, seeds[1]),
        ];
        let gathered = Gathered::of("os/wakeup", &systems);
        let claims = claims(&gathered);
        claims.into_iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn a_promise_over_seeds_does_not_vanish_and_compares_as_many_samples() {
        assert_eq!(verdicts([4, 4]), [Verdict::Held]);
        // The fewer samples, the smaller their maximum.
        assert_eq!(verdicts([4, 32]), [Verdict::NotJudged]);
        assert_eq!(verdicts([3, 3]), [Verdict::NotJudged]);
        assert_eq!(verdicts([4, 0]), [Verdict::NotMeasured]);
        assert_eq!(verdicts([0, 0]), []);
    }
}
