//! `rtorb lab compare A B`: compares two measurements.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_results::TimeUnit;
use rtorb_results::compare::{
    self, Compared, Comparison, Condition, Gravity, Observations, SeriesName, Spoilt,
};
use rtorb_results::runs;
use rtorb_results::summary::{self, microseconds};
use rtorb_results::table::Table;
use rtorb_sched::model::rounded;

use crate::exit_status::FAILED;
use crate::output::{line, print_json, print_table};

/// Compare two measurements, and test whether differences exceed the noise.
///
/// A and B are folders that `measure` or `lab run` wrote. If both have several runs (`--runs N`), the medians of runs are
/// compared: a verdict needs three runs, and five are better. If one has a single run, the medians of rounds are compared, which does not cover drift between runs.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Folder to compare with.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Folder that is compared.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print the whole comparison as one JSON object.
    #[arg(long)]
    json: bool,
    /// Print every series, not only those that differ.
    #[arg(long)]
    all: bool,
    /// Compare even if the measurements are not comparable, such as runs of different effort.
    #[arg(long)]
    anyway: bool,
    /// Percentage of slowdown that ends with exit status 1: a time of B is longer by so much or more, and beyond the noise.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_if_slower: Option<f64>,
}

impl Compare {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let (a, b) = (runs::read(&self.a)?, runs::read(&self.b)?);
        let spoilt = if self.anyway {
            Spoilt::Compare
        } else {
            Spoilt::Refuse
        };
        let comparison = compare::compare(&a, &b, spoilt)?;
        if self.json {
            print_json(&comparison)?
        } else {
            self.print(&comparison)?
        }
        Ok(match self.too_slow(&comparison) {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::from(FAILED),
        })
    }

    fn print(&self, comparison: &Comparison) -> anyhow::Result<()> {
        line(format!(
            "A {} ({}), B {} ({})",
            self.a.display(),
            runs_in_words(comparison.runs_a),
            self.b.display(),
            runs_in_words(comparison.runs_b)
        ))?;
        let (folded, shown): (Vec<&Condition>, Vec<&Condition>) = comparison
            .conditions
            .iter()
            .partition(|condition| follows_from_kernel(comparison, condition));
        shown.into_iter().try_for_each(print_condition)?;
        if !folded.is_empty() {
            line(format!(
                "   NOTE  {} facts of the guests differ with their kernels; --json lists them.",
                folded.len()
            ))?;
        }
        match (comparison.virtual_time, comparison.observations) {
            (true, _) => line(SEEDS)?,
            (false, Observations::Rounds) => line(DRIFT)?,
            (false, Observations::Runs) => {}
        }
        let shown: Vec<&Compared> = comparison
            .series
            .iter()
            .filter(|one| self.all || one.verdict.differs())
            .collect();
        if !shown.is_empty() {
            line("")?;
            print_table(&table(&shown, time_unit(comparison)))?;
        }
        if self.all {
            shown.iter().try_for_each(|one| print_why(one))?;
        }
        print_unmatched("A", &comparison.only_in_a)?;
        print_unmatched("B", &comparison.only_in_b)?;
        line(format!("\n{}", counts_in_words(comparison)))?;
        if let (Some(percent), too_slow @ 1..) = (self.fail_if_slower, self.too_slow(comparison)) {
            line(format!(
                "{too_slow} of them are slower by {percent} % or more"
            ))?;
        }
        Ok(())
    }

    /// Returns the number of series that are slower by more than is allowed.
    fn too_slow(&self, comparison: &Comparison) -> usize {
        let Some(allowed) = self.fail_if_slower else {
            return 0;
        };
        let slower = comparison
            .series
            .iter()
            .filter_map(Compared::slower_percent);
        slower.filter(|percent| *percent >= allowed).count()
    }
}

/// Returns true for a difference between guests of emulated machines: it comes from the kernel, which is listed itself.
fn follows_from_kernel(comparison: &Comparison, condition: &Condition) -> bool {
    comparison.virtual_time && condition.what.starts_with("host ")
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("it must be a percentage of 0 or more, such as 5".to_owned()),
    }
}

fn print_condition(condition: &Condition) -> anyhow::Result<()> {
    let word = match condition.gravity {
        Gravity::Spoils => "SPOILT",
        Gravity::Matters => "DIFFERS",
    };
    let of = match condition.experiments.as_slice() {
        [] => String::new(),
        experiments => format!(" of {}", experiments.join(", ")),
    };
    line(format!(
        "{word:>7}  {}{of}: A {}, B {}. {}",
        condition.what, condition.a, condition.b, condition.why
    ))
}

fn print_why(one: &Compared) -> anyhow::Result<()> {
    match &one.why {
        Some(why) => line(format!("  {}: {why}", name(&one.name))),
        None => Ok(()),
    }
}

fn print_unmatched(side: &str, names: &[SeriesName]) -> anyhow::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    line(format!("\nOnly in {side}: {} series", names.len()))?;
    for alone in names.iter().take(UNMATCHED_MAX) {
        line(format!("  {}", name(alone)))?;
    }
    match names.len().saturating_sub(UNMATCHED_MAX) {
        0 => Ok(()),
        more => line(format!("  and {more} more (--json lists them)")),
    }
}

fn time_unit(comparison: &Comparison) -> TimeUnit {
    if comparison.virtual_time {
        TimeUnit::GuestInstructions
    } else {
        TimeUnit::Seconds
    }
}

fn table(shown: &[&Compared], time: TimeUnit) -> Table {
    let head = [
        "series",
        "unit",
        "A",
        "B",
        "B/A",
        "95 % interval",
        "p corrected",
        "p99 A",
        "p99 B",
        "max A",
        "max B",
        "verdict",
    ];
    let row = |one: &&Compared| {
        let has_own_units = one.unit == "ns" && time == TimeUnit::Seconds;
        let value = |value: f64| match one.unit.as_str() {
            _ if has_own_units => time_text(value),
            "ns" => microseconds(value),
            _ => format!("{value:.2}"),
        };
        let ratio =
            |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let interval = if one.ratio_low.is_some() {
            format!("{} to {}", ratio(one.ratio_low), ratio(one.ratio_high))
        } else {
            String::new()
        };
        vec![
            name(&one.name),
            match one.unit.as_str() {
                _ if has_own_units => String::new(),
                "ns" => time.of_thousand().to_owned(),
                unit => unit.to_owned(),
            },
            value(one.a.p50),
            value(one.b.p50),
            ratio(one.ratio),
            interval,
            one.p_adjusted.map(shown_p).unwrap_or_default(),
            value(one.a.p99),
            value(one.b.p99),
            value(one.a.max),
            value(one.b.max),
            one.verdict.words().to_owned(),
        ]
    };
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: shown.iter().map(row).collect(),
    }
}

/// Formats a time with a fitting unit. An early end is negative.
fn time_text(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", rounded(ns.abs()))
}

fn shown_p(p: f64) -> String {
    if p < 0.001 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// Formats the experiment, the contestant, and the labels as in the report.
fn name(name: &SeriesName) -> String {
    let called = summary::row_name_of(&name.labels);
    let by = ["orb", "preset", "transport", "part"];
    let contestant = by.iter().filter_map(|label| name.labels.get(*label));
    let mut words = vec![name.experiment.clone()];
    words.extend(contestant.map(ToString::to_string));
    words.push(called);
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn runs_in_words(runs: usize) -> String {
    match runs {
        1 => "1 run".to_owned(),
        several => format!("{several} runs"),
    }
}

fn counts_in_words(comparison: &Comparison) -> String {
    let counts = &comparison.counts;
    let parts = [
        (counts.slower, "slower"),
        (counts.faster, "faster"),
        (counts.more, "more"),
        (counts.less, "less"),
        (
            counts.no_difference,
            "without a difference beyond the noise",
        ),
        (counts.cannot_be_said, "without a verdict (--all shows why)"),
    ];
    let counted = parts.iter().filter(|(count, _)| *count > 0);
    let counted: Vec<String> = counted
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!(
        "B against A, {} series: {}.",
        comparison.series.len(),
        counted.join(", ")
    )
}

const DRIFT: &str = "   NOTE  One side has a single run, so rounds are compared: this does not cover drift between runs, which \
                     may look like a difference. Measure both sides with --runs 5 to cover it.";
const SEEDS: &str = "   NOTE  An emulated machine: times are thousands of guest instructions (k instr), and every run repeats exactly. The observations are \
                     seeds: an interval shows what other seeds might give. For a deadline, read the maxima, which are not tested.";
const UNMATCHED_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_fitting_units_and_their_sign() {
        for (ns, text) in [
            (52_700.0, "52.7us"),
            (124_387_000.0, "124.4ms"),
            (-800.0, "-800ns"),
        ] {
            assert_eq!(time_text(ns), text);
        }
    }
}
