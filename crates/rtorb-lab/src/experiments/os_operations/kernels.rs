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
    let by_operation = |id: &str, title: &str, of: Labels| {
        TableView::new(id, title)
            .of(of)
            .rows(["operation"])
            .columns(rows.clone())
            .values([CellValue::Median])
    };
    vec![
        by_operation("switches", "Context switches, in yields", in_yields(SWITCH))
            .caption(
                "As P0 Table 1 and P2 Table 1, each number divided by the yield of its row. P2's VxWorks has none.",
            )
            .rows(rows.clone())
            .columns(["operation"])
            .published(os_context_switch::published_in_yields()),
        by_operation("operations", "Operations, in yields", in_yields(KERNEL))
            .caption(
                "Of wake-ups, the latest of a round. An empty cell is an operation that the kernel does not have, or that another experiment has; a note says why.",
            ),
        by_operation("calls", "Calls, in yields", in_yields(CALL))
            .caption("The same ORB, rtorb-embedded, between two tasks of each kernel."),
        by_operation("instructions", "In instructions", native.clone())
            .caption("Kernels of other instruction sets have no place here."),
    ]
}

fn bars() -> Plot {
    Plot::bars("operations", "Operations in yields")
        .caption("The median over all seeds, divided by that of the kernel's own yield.")
        .of(labels([("in", IN_YIELDS.into())]))
        .lines([SYSTEM])
        .x("operation")
        .values([StatisticName::P50])
        .log_y()
}
