//! The summary of a run: the details of one experiment, or one screen for several.

use std::path::Path;

use rtorb_host::preflight::{Finding, Severity};
use rtorb_results::summary;
use rtorb_results::{Claim, ExperimentFailure, Results, Verdicts};

use crate::output::{self, columns, indented, line, print_table};

/// Prints the results, and the path of the report.
pub(crate) fn print(
    all: &[Results],
    failures: &[ExperimentFailure],
    page: Option<&Path>,
) -> anyhow::Result<()> {
    match all {
        [only] if failures.is_empty() => print_details(only)?,
        _ => print_screen(all, failures)?,
    }
    line(match page {
        Some(page) => format!("\nReport: {}", page.display()),
        None if all.is_empty() => "Nothing was measured, and no report was written.".to_owned(),
        None => "\nNo report was written.".to_owned(),
    })
}

/// Prints everything that a reader of one experiment wants to know.
fn print_details(results: &Results) -> anyhow::Result<()> {
    let heading = format!("{}: {}", results.experiment, results.title);
    line("")?;
    indented(&heading, ["", "  "], columns())
        .into_iter()
        .try_for_each(line)?;
    let medians = summary::medians(results);
    if !medians.rows.is_empty() {
        print_table(&medians)?;
    }
    for claim in &results.claims {
        labelled(claim.verdict.word(), &in_words(claim))?;
    }
    print_lost(results)?;
    print_wrong(results)?;
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

/// Prints the host, a line for each experiment, and what is wrong.
fn print_screen(all: &[Results], failures: &[ExperimentFailure]) -> anyhow::Result<()> {
    if let Some(first) = all.first() {
        line(format!("\n{}", of_host(&first.findings)))?;
    }
    let verdicts: Vec<String> = all.iter().map(short_verdicts).collect();
    let longest = verdicts.iter().map(String::len).max().unwrap_or(0);
    for (results, verdicts) in all.iter().zip(&verdicts) {
        let key = key_figure(results);
        let width = columns().saturating_sub(NAME_WIDTH + longest + GAP);
        let key = shortened(&key, width);
        line(
            format!(
                "{:<NAME_WIDTH$}{verdicts:<longest$}{:GAP$}{key}",
                results.experiment, ""
            )
            .trim_end(),
        )?;
    }
    for failure in failures {
        let text = format!(
            "{:<NAME_WIDTH$}COULD NOT BE MEASURED: {}",
            failure.experiment, failure.why
        );
        indented(&text, ["", "  "], columns())
            .into_iter()
            .try_for_each(line)?;
    }
    let Verdicts {
        held,
        missed,
        not_judged,
        not_measured,
    } = Verdicts::of(all.iter().flat_map(|results| &results.claims));
    line(format!(
        "\nClaims: {held} held, {missed} missed, {not_judged} not judged, {not_measured} not measured (`rtorb lab run NAME` and the report say why)."
    ))?;
    for results in all {
        for claim in results.claims.iter().filter(|claim| claim.is_failure()) {
            let text = format!(
                "{} {}. {}",
                claim.id,
                in_words(claim),
                disturbances(results)
            );
            labelled(claim.verdict.word(), &text)?;
        }
        print_lost(results)?;
        print_wrong(results)?;
    }
    Ok(())
}

fn print_lost(results: &Results) -> anyhow::Result<()> {
    results.lost.iter().try_for_each(|lost| {
        let (round, what, why) = (lost.round + 1, &lost.what, &lost.why);
        labelled("LOST", &format!("round {round}, {what}: {why}"))
    })
}

fn print_wrong(results: &Results) -> anyhow::Result<()> {
    let mut all = wrong_words(results).into_iter();
    all.try_for_each(|words| labelled("WRONG", &words))
}

/// Formats a sentence for each contestant that answered wrongly: `orb/demux: rtorb tcp answered wrongly, 3 times.`
pub(crate) fn wrong_words(results: &Results) -> Vec<String> {
    let all = summary::wrong_answers(results).into_iter();
    all.map(|(who, wrong)| {
        let who = if who.is_empty() {
            "what is measured"
        } else {
            &who
        };
        let times = if wrong == 1 {
            "once".to_owned()
        } else {
            format!("{wrong} times")
        };
        format!("{}: {who} answered wrongly, {times}.", results.experiment)
    })
    .collect()
}

/// The statement, the value with its limit, and why it was not judged.
fn in_words(claim: &Claim) -> String {
    let (value, limit) = (claim.shown_value(), claim.shown_limit());
    let mut text = format!("{}: {value}, at most {limit}", claim.statement);
    if !claim.reason.is_empty() {
        text = format!("{text} ({})", claim.reason);
    }
    text
}

/// The disturbances that the run saw beside a miss. They are told, and not blamed: the claim was judged in spite of them.
fn disturbances(results: &Results) -> String {
    let unfit = results.findings.iter();
    let unfit = unfit.filter(|finding| finding.severity == Severity::Unfit);
    let mut seen: Vec<String> = unfit.map(|finding| finding.what.clone()).collect();
    let stolen_ms = results.stolen_ms.unwrap_or(0);
    if stolen_ms > 0 {
        let duration_s = results.duration_s;
        seen.push(format!(
            "the hypervisor took the CPU for {stolen_ms} ms of {duration_s:.0} s"
        ));
    }
    if seen.is_empty() {
        return "Nothing disturbed the run: look at the ORB or the kernel.".to_owned();
    }
    format!(
        "Seen beside it: {}. If a second run misses it too, look at the ORB or the kernel.",
        seen.join("; ")
    )
}

/// The verdict on the host: ``Host: fit for real time, with 3 findings to improve (`rtorb check`).``
pub(crate) fn of_host(findings: &[Finding]) -> String {
    let count = |severity| {
        let of_severity = findings
            .iter()
            .filter(|finding| finding.severity == severity);
        of_severity.count()
    };
    let verdict = match (count(Severity::Unfit), count(Severity::Advice)) {
        (0, 0) => "fit for real time".to_owned(),
        (0, advice) => format!("fit for real time, with {advice} findings to improve"),
        (1, _) => "NOT fit for real time, for one reason".to_owned(),
        (unfit, _) => format!("NOT fit for real time, for {unfit} reasons"),
    };
    format!("Host: {verdict} (`rtorb check`).")
}

fn key_figure(results: &Results) -> String {
    let Some(first) = results.highlights.first() else {
        return results.title.clone();
    };
    let value = format!("{} {}", first.shown(), first.shown_unit());
    format!("{}: {}", value.trim_end(), first.what)
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

fn labelled(word: &str, text: &str) -> anyhow::Result<()> {
    output::labelled(word, text, WORD_WIDTH)
}

/// Formats a summary such as `3 held, 1 MISSED, not real-time`.
pub(crate) fn short_verdicts(results: &Results) -> String {
    let verdicts = Verdicts::of(&results.claims);
    let counts = [
        (verdicts.held, "held"),
        (verdicts.missed, "MISSED"),
        (verdicts.not_judged, "not judged"),
        (verdicts.not_measured, "not measured"),
        (results.lost.len(), "LOST"),
    ];
    let counted = counts.iter().filter(|(count, _)| *count > 0);
    let mut words: Vec<String> = counted
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if results.has_wrong_answers() {
        words.push("WRONG answers".to_owned());
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
/// Of the longest verdict, `not judged`.
const WORD_WIDTH: usize = 10;
/// Of the column of experiments.
const NAME_WIDTH: usize = 23;
/// Between the columns of verdicts and of key figures.
const GAP: usize = 2;
