//! The summary of a run: the table and verdicts of each experiment, then a line for each.

use std::path::Path;

use rtorb_lab::results::Results;
use rtorb_lab::results::report::Failure;
use rtorb_lab::results::summary;

use crate::output::{columns, indented, line, print_table};

/// Prints the results, and the path of the report.
pub(crate) fn print(
    all: &[Results],
    failures: &[Failure],
    page: Option<&Path>,
) -> anyhow::Result<()> {
    for results in all {
        print_experiment(results)?;
    }
    let Some(page) = page else {
        return line(if all.is_empty() {
            "Nothing was measured, and no report was written."
        } else {
            "\nNo report was written."
        });
    };
    if all.len() + failures.len() > 1 {
        print_overview(all, failures)?;
    }
    line(format!("\nReport: {}", page.display()))
}

fn print_experiment(results: &Results) -> anyhow::Result<()> {
    let heading = format!("{}: {}", results.experiment, results.title);
    line("")?;
    indented(&heading, ["", "  "], columns())
        .into_iter()
        .try_for_each(line)?;
    let medians = summary::medians(results);
    if !medians.rows.is_empty() {
        print_table(&medians)?;
    }
    for target in &results.targets {
        let verdict = if target.holds { "holds" } else { "MISSED" };
        let (value, limit) = (target.shown_value(), target.shown_limit());
        labelled(
            verdict,
            &format!("{}: {value}, at most {limit}", target.what),
        )?;
    }
    for conclusion in &results.conclusions {
        labelled("found", conclusion)?;
    }
    for note in &results.notes {
        labelled("note", note)?;
    }
    if !results.is_real_time() {
        labelled("note", NOT_REAL_TIME)?;
    }
    Ok(())
}

/// Prints a word in its own column, and the text beside it.
fn labelled(word: &str, text: &str) -> anyhow::Result<()> {
    let first = format!("{word:>6}  ");
    let others = " ".repeat(first.len());
    indented(text, [&first, &others], columns())
        .into_iter()
        .try_for_each(line)
}

fn print_overview(all: &[Results], failures: &[Failure]) -> anyhow::Result<()> {
    line("\nAll experiments:")?;
    for results in all {
        line(format!("  {:<24}{}", results.experiment, verdict(results)))?;
    }
    for failure in failures {
        line(format!(
            "  {:<24}COULD NOT BE MEASURED: {}",
            failure.experiment, failure.why
        ))?;
    }
    let targets = || all.iter().flat_map(|results| &results.targets);
    let missed = targets().filter(|target| !target.holds).count();
    let held = targets().count() - missed;
    let not_real_time = all.iter().filter(|results| !results.is_real_time());
    line(format!(
        "\nPromises: {held} held, {missed} missed. Not real-time: {} of {} experiments.",
        not_real_time.count(),
        all.len()
    ))
}

/// Formats a summary such as `3 held, 1 MISSED, not real-time`.
fn verdict(results: &Results) -> String {
    let missed = results
        .targets
        .iter()
        .filter(|target| !target.holds)
        .count();
    let held = results.targets.len() - missed;
    let mut words = Vec::new();
    match (held, missed) {
        (0, 0) => words.push("no promise judged".to_owned()),
        (held, 0) => words.push(format!("{held} held")),
        (held, missed) => words.push(format!("{held} held, {missed} MISSED")),
    }
    if !results.is_real_time() {
        words.push("not real-time".to_owned());
    }
    if !results.complete {
        words.push("interrupted".to_owned());
    }
    words.join(", ")
}

const NOT_REAL_TIME: &str = "NOT REAL-TIME: not every measured thread had SCHED_FIFO on one CPU";
