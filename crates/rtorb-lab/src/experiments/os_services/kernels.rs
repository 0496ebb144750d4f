//! What services of the operating system cost on each.

use crate::experiment::Outcome;
use crate::experiments::prelude::*;
use rtorb_results::campaign::{RATIO_OF_MEDIANS, SYSTEM};
use rtorb_results::summary::words::shown;
use rtorb_results::{Derived, Series};

use crate::systems::{By, Compared};
use rtorb_results::systems::{Gathered, Part};

/// Services are rows, systems columns.
pub(super) fn view(gathered: &Gathered<'_>) -> Outcome {
    let ordinary = ordinary(gathered);
    let compared = Compared {
        what: "Cost",
        of: &ordinary,
        by: By::Median,
    };
    let everywhere = Compared {
        of: &labels([]),
        ..compared
    };
    let mut conclusions = compared.conclusions(gathered);
    conclusions.extend(eventfd_in_switches(gathered, &ordinary));
    conclusions.extend(late(gathered));
    Outcome {
        highlights: compared.highlight(gathered).into_iter().collect(),
        columns: words(&[SYSTEM]),
        tables: tables(gathered, &ordinary),
        plots: vec![bars()],
        derived: everywhere.derived(gathered),
        conclusions,
        ..Outcome::default()
    }
}

fn tables(gathered: &Gathered<'_>, ordinary: &Labels) -> Vec<TableView> {
    let by_service = TableView {
        rows: words(&["service"]),
        columns: gathered.with_load(&[SYSTEM]),
        ..TableView::default()
    };
    vec![
        TableView {
            id: "median".to_owned(),
            title: "What a service costs".to_owned(),
            caption: "The median, with nothing else running.".to_owned(),
            of: ordinary.clone(),
            columns: words(&[SYSTEM]),
            values: vec![CellValue::Median],
            ..by_service.clone()
        },
        TableView {
            id: "ratio".to_owned(),
            title: "How many times that of the most real-time system".to_owned(),
            caption:
                "The median divided by that of the most real-time system: less than 1 is cheaper."
                    .to_owned(),
            derived: RATIO_OF_MEDIANS.to_owned(),
            ..by_service.clone()
        },
        TableView {
            id: "worst".to_owned(),
            title: "Worst over all seeds".to_owned(),
            caption: "With what interrupted it: the timer, and what has a higher priority."
                .to_owned(),
            values: vec![CellValue::Worst],
            ..by_service
        },
    ]
}

fn bars() -> Plot {
    Plot {
        id: "services".to_owned(),
        title: "What a service costs".to_owned(),
        caption: "The median over all seeds; the scale is logarithmic.".to_owned(),
        kind: PlotKind::Bars,
        choose: words(&["load"]),
        lines: words(&[SYSTEM]),
        x: "service".to_owned(),
        x_title: "service".to_owned(),
        values: vec![StatisticName::P50],
        log_y: true,
        ..Plot::default()
    }
}

/// Without a load, where that was measured: a median hardly depends on it.
fn ordinary(gathered: &Gathered<'_>) -> Labels {
    let loads = gathered.values(&labels([]), "load");
    match loads.into_iter().next() {
        Some(first) => labels([("load", first)]),
        None => labels([]),
    }
}

/// An eventfd's waiter is woken while its lock is held: where a lock is one that tasks sleep for, that costs more switches.
fn eventfd_in_switches(gathered: &Gathered<'_>, ordinary: &Labels) -> Option<String> {
    let of_part = |part: &Part<'_>| {
        let mut of = ordinary.clone();
        of.insert("service".to_owned(), "eventfd".into());
        let found = part.results.derived.iter().find(|derived: &&Derived| {
            derived.name == "in_switches"
                && of
                    .iter()
                    .all(|(name, value)| derived.labels.get(name).is_none_or(|own| own == value))
                && derived.labels.get("service") == Some(&"eventfd".into())
        })?;
        Some(format!("{:.1} on {}", found.value, part.name))
    };
    let told: Vec<String> = gathered.parts.iter().filter_map(of_part).collect();
    (!told.is_empty()).then(|| {
        format!(
            "In switches of threads of the same kernel, waking a more urgent thread by an eventfd costs {}.",
            told.join(", ")
        )
    })
}

/// Services that at worst take many times what they ordinarily take.
fn late(gathered: &Gathered<'_>) -> Vec<String> {
    let all = labels([]);
    let times = |series: &Series| series.statistics.max / series.median_of_rounds().max(1.0);
    let mut late = gathered.matching(&all);
    late.retain(|series| times(series) >= LATE_TIMES && series.statistics.max >= LATE_MIN_NS);
    late.sort_by(|left, right| right.statistics.max.total_cmp(&left.statistics.max));
    let said = |series: &&Series| {
        let system = series.labels.get(SYSTEM);
        format!(
            "{}, {}: at worst {} k instr, {:.0} times its median.",
            system.map(ToString::to_string).unwrap_or_default(),
            gathered.said(series, &all),
            shown(series.statistics.max, &series.unit),
            times(series)
        )
    };
    late.iter().take(LATE_TOLD).map(said).collect()
}

/// What an interrupt adds is no more than this, in times of the median or in itself.
const LATE_TIMES: f64 = 10.0;
const LATE_MIN_NS: f64 = 100_000.0;
const LATE_TOLD: usize = 3;
