//! The operations on each kernel: in its own yields, and in instructions where these are the same.

use super::computed::IN_YIELDS;
use super::operation::{CALL, KERNEL, SWITCH};
use crate::experiments::os_context_switch;
use crate::experiments::prelude::*;

/// Ratios for all kernels; instructions for those of the laboratory's own instruction set.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let native = labels([("instructions", std::env::consts::ARCH.into())]);
    let compared = Compared {
        what: "Cost",
        of: &native,
        by: By::Median,
    };
    compared.results(gathered, tables(gathered, &native), vec![bars()])
}

fn tables(gathered: &Gathered<'_>, native: &Labels) -> Vec<TableView> {
    let rows = gathered.with_load(&[SYSTEM]);
    let in_yields = |kind: &str| labels([("in", IN_YIELDS.into()), ("kind", kind.into())]);
    let by_operation = |id: &str, title: &str, of: Labels| TableView {
        of,
        rows: words(&["operation"]),
        columns: rows.clone(),
        values: vec![CellValue::Median],
        ..table(id, title)
    };
    vec![
        TableView {
            caption: "As P0 Table 1 and P2 Table 1, each number divided by the yield of its row. P2's VxWorks has none.".to_owned(),
            rows: rows.clone(),
            columns: words(&["operation"]),
            published: os_context_switch::published_in_yields(),
            ..by_operation("switches", "Context switches, in yields", in_yields(SWITCH))
        },
        TableView {
            caption: "Of wake-ups, the latest of a round. An empty cell is an operation that the kernel does not have, or that another experiment has; a note says why.".to_owned(),
            ..by_operation("operations", "Operations, in yields", in_yields(KERNEL))
        },
        TableView {
            caption: "The same ORB, rtorb-embedded, between two tasks of each kernel.".to_owned(),
            ..by_operation("calls", "Calls, in yields", in_yields(CALL))
        },
        TableView {
            caption: "Kernels of other instruction sets have no place here.".to_owned(),
            ..by_operation("instructions", "In instructions", native.clone())
        },
    ]
}

fn bars() -> Plot {
    Plot {
        caption: "The median over all seeds, divided by that of the kernel's own yield.".to_owned(),
        kind: PlotKind::Bars,
        of: labels([("in", IN_YIELDS.into())]),
        lines: words(&[SYSTEM]),
        x: "operation".to_owned(),
        values: vec![StatisticName::P50],
        log_y: true,
        ..Plot::named("operations", "Operations in yields")
    }
}
