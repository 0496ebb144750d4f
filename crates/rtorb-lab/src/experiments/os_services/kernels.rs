//! What services of the operating system cost on each.

use crate::experiments::prelude::*;
use rtorb_results::campaign::RATIO_OF_MEDIANS;

/// Services are rows, systems columns.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
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
    Results {
        highlights: compared.highlight(gathered).into_iter().collect(),
        columns: words(&[SYSTEM]),
        tables: tables(gathered, &ordinary),
        plots: vec![bars()],
        derived: everywhere.derived(gathered),
        conclusions: compared.conclusions(gathered),
        ..Results::default()
    }
}

fn tables(gathered: &Gathered<'_>, ordinary: &Labels) -> Vec<TableView> {
    let by_service = TableView::default()
        .rows(["service"])
        .columns(gathered.with_load(&[SYSTEM]));
    vec![
        by_service
            .clone()
            .named("median", "What a service costs")
            .caption("The median, with nothing else running.")
            .of(ordinary.clone())
            .columns([SYSTEM])
            .values([CellValue::Median]),
        by_service
            .clone()
            .named("ratio", "How many times that of the most real-time system")
            .caption(
                "The median divided by that of the most real-time system: less than 1 is cheaper.",
            )
            .derived(RATIO_OF_MEDIANS),
        by_service
            .named("worst", "Worst over all seeds")
            .caption("With what interrupted it: the timer, and what has a higher priority.")
            .values([CellValue::Worst]),
    ]
}

fn bars() -> Plot {
    Plot::bars("services", "What a service costs")
        .caption("The median over all seeds; the scale is logarithmic.")
        .choose(["load"])
        .lines([SYSTEM])
        .x("service")
        .values([StatisticName::P50])
        .log_y()
}

/// Without a load, where that was measured: a median hardly depends on it.
fn ordinary(gathered: &Gathered<'_>) -> Labels {
    let loads = gathered.values(&labels([]), "load");
    match loads.into_iter().next() {
        Some(first) => labels([("load", first)]),
        None => labels([]),
    }
}
