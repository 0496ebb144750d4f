//! The switch on each operating system.

use crate::experiments::prelude::*;

/// P0 Table 1 and P2 Table 1: a row an operating system.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let switch = labels([("what", "switch".into())]);
    let table = super::switches().rows(gathered.with_load(&[SYSTEM]));
    let bars = Plot::bars("context-switch", "Context switch by test")
        .caption("Median over all seeds.")
        .of(switch.clone())
        .choose(["load"])
        .lines([SYSTEM])
        .x("test")
        .values([StatisticName::P50]);
    let compared = Compared {
        what: "Context switch",
        of: &switch,
        by: By::Median,
    };
    compared.results(gathered, vec![table], vec![bars])
}
