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
        caption: "The median over all seeds; the scale is logarithmic.".to_owned(),
        kind: PlotKind::Bars,
        choose: words(&["load"]),
        lines: words(&[SYSTEM]),
        x: "service".to_owned(),
        values: vec![StatisticName::P50],
        log_y: true,
        ..Plot::named("services", "What a service costs")
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
