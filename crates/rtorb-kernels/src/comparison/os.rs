//! What services of the operating system cost on each.

use rtorb_lab::experiment::Outcome;
use rtorb_lab::experiments::os_context_switch;
use rtorb_results::campaign::{RATIO_OF_MEDIANS, SYSTEM};
use rtorb_results::{CellValue, Labels, Plot, PlotKind, StatisticName, TableView};

use super::differences::{By, Compared};
use super::gathered::Gathered;
use super::with;

/// P0 Table 1 and P2 Table 1: a row an operating system.
pub(super) fn context_switch(gathered: &Gathered<'_>) -> Outcome {
    let switch = with(&[("what", "switch".into())]);
    let rows = gathered.with_load(&[SYSTEM]);
    let table = TableView {
        id: "context-switch".to_owned(),
        title: "Context switch latency, jitter in parentheses".to_owned(),
        caption: "As the papers' tables; their rows are in microseconds of their machines. Suspend-resume is by futexes, which they had not."
            .to_owned(),
        of: switch.clone(),
        rows,
        columns: vec!["test".to_owned()],
        values: vec![CellValue::MeanAndDeviation],
        published: os_context_switch::published_rows(),
        ..TableView::default()
    };
    let bars = Plot {
        id: "context-switch".to_owned(),
        title: "Context switch by test".to_owned(),
        caption: "Median over all seeds.".to_owned(),
        kind: PlotKind::Bars,
        of: switch.clone(),
        choose: vec!["load".to_owned()],
        lines: vec![SYSTEM.to_owned()],
        x: "test".to_owned(),
        x_title: "test".to_owned(),
        values: vec![StatisticName::P50],
        ..Plot::default()
    };
    let compared = Compared {
        what: "Context switch",
        of: &switch,
        by: By::Median,
    };
    compared.outcome(gathered, vec![table], vec![bars])
}

pub(super) fn ready_queue(gathered: &Gathered<'_>) -> Outcome {
    essential(gathered, "Switch with tasks ready", &with(&[]))
}

/// What a tick costs, of medians: in those what else delays the program cancels.
pub(super) fn clock_overhead(gathered: &Gathered<'_>) -> Outcome {
    let of = with(&[("what", "overhead_from_medians".into())]);
    let mut by_thread = of.clone();
    by_thread.insert("tick".to_owned(), "thread".into());
    let compared = Compared {
        what: "Cost of a tick",
        of: &by_thread,
        by: By::Median,
    };
    let has_preempt_rt = gathered
        .parts
        .iter()
        .any(|part| part.results.host.preempt_rt);
    Outcome {
        highlights: compared.highlight(gathered).into_iter().collect(),
        conclusions: compared.conclusions(gathered),
        notes: has_preempt_rt
            .then(|| NO_SIGNALS.to_owned())
            .into_iter()
            .collect(),
        ..essential(gathered, compared.what, &of)
    }
}

/// Of the most urgent task: what others suffer is interference, and not the kernel's.
pub(super) fn interval_jitter(gathered: &Gathered<'_>) -> Outcome {
    let of = with(&[("what", "jitter".into()), ("priority", "highest".into())]);
    essential(gathered, "Jitter of the most urgent task", &of)
}

/// An experiment that has no table of its own.
pub(super) fn any(gathered: &Gathered<'_>) -> Outcome {
    essential(gathered, "Median", &with(&[]))
}

/// Rows are systems, columns all other labels that tell the series apart.
fn essential(gathered: &Gathered<'_>, what: &'static str, of: &Labels) -> Outcome {
    let rows = gathered.with_load(&[SYSTEM]);
    let mut columns = gathered.telling(of);
    columns.retain(|name| !rows.contains(name));
    let table = |id: &str, title: String, value: CellValue| TableView {
        id: id.to_owned(),
        title,
        of: of.clone(),
        rows: rows.clone(),
        columns: columns.clone(),
        values: vec![value],
        ..TableView::default()
    };
    let ratio = TableView {
        caption: "The median divided by that of the most real-time system.".to_owned(),
        derived: RATIO_OF_MEDIANS.to_owned(),
        ..table(
            "ratio",
            "How many times that of the most real-time system".to_owned(),
            CellValue::Median,
        )
    };
    let tables = vec![
        table("median", format!("{what}: median"), CellValue::Median),
        table(
            "worst",
            format!("{what}: worst over all seeds"),
            CellValue::Worst,
        ),
        ratio,
    ];
    let compared = Compared {
        what,
        of,
        by: By::Median,
    };
    compared.outcome(gathered, tables, Vec::new())
}

const NO_SIGNALS: &str = "On PREEMPT_RT, a thread of the kernel with a low priority sends the signals of POSIX timers. The program that is \
                          measured is more urgent and never sleeps: the signals come when it has ended, and what `signal` says there is \
                          no cost of a tick. Systems are compared by `thread`.";
