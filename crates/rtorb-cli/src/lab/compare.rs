//! `rtorb lab compare A B`: what differs between two measurements, and whether it is more than the noise.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_lab::results::TimeUnit;
use rtorb_lab::results::compare::{
    self, Compared, Comparison, Condition, Gravity, Observations, SeriesName, Spoilt,
};
use rtorb_lab::results::runs;
use rtorb_lab::results::summary::{self, Table, microseconds};

use crate::NO;
use crate::output::{line, print_json, print_table};

/// Say what differs between two measurements, and whether it is more than the noise.
///
/// A and B are folders that `measure` or `lab run` wrote. With `--runs N` of those (five or more on each side), the
/// medians of runs are compared; with a single run on a side, those of its rounds: drift between runs is then not covered.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The folder to compare with.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The folder that is compared.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print the whole comparison as one JSON object.
    #[arg(long)]
    json: bool,
    /// Print every series, not only those that differ.
    #[arg(long)]
    all: bool,
    /// Compare even what cannot be compared, such as runs of different effort.
    #[arg(long)]
    anyway: bool,
    /// End with exit status 1 when a time of B is longer beyond the noise, and by so many per cent or more.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_if_slower: Option<f64>,
}

impl Compare {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let (a, b) = (runs::read(&self.a)?, runs::read(&self.b)?);
        let spoilt = match self.anyway {
            true => Spoilt::Compare,
            false => Spoilt::Refuse,
        };
        let comparison = compare::compare(&a, &b, spoilt)?;
        match self.json {
            true => print_json(&comparison)?,
            false => self.print(&comparison)?,
        }
        Ok(match self.too_slow(&comparison) {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::from(NO),
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
        let (folded, told): (Vec<&Condition>, Vec<&Condition>) = comparison
            .conditions
            .iter()
            .partition(|condition| follows_from_kernel(comparison, condition));
        told.into_iter().try_for_each(tell_condition)?;
        if !folded.is_empty() {
            line(format!(
                "   NOTE  {} facts of the guests differ with their kernels; --json has them.",
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
            shown.iter().try_for_each(|one| tell_why(one))?;
        }
        tell_alone("A", &comparison.only_in_a)?;
        tell_alone("B", &comparison.only_in_b)?;
        line(format!("\n{}", counts_in_words(comparison)))?;
        if let (Some(percent), too_slow @ 1..) = (self.fail_if_slower, self.too_slow(comparison)) {
            line(format!(
                "{too_slow} of them are slower by {percent} % or more"
            ))?;
        }
        Ok(())
    }

    /// How many series are slower by more than is allowed.
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

/// In emulated machines all that differs between guests comes from the kernel, which is told by itself.
fn follows_from_kernel(comparison: &Comparison, condition: &Condition) -> bool {
    comparison.virtual_time && condition.what.starts_with("host ")
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("it must be a number of per cent, 0 or more, such as 5".to_owned()),
    }
}

fn tell_condition(condition: &Condition) -> anyhow::Result<()> {
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

fn tell_why(one: &Compared) -> anyhow::Result<()> {
    match &one.why {
        Some(why) => line(format!("  {}: {why}", name(&one.name))),
        None => Ok(()),
    }
}

fn tell_alone(side: &str, names: &[SeriesName]) -> anyhow::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    line(format!("\nOnly in {side}: {} series", names.len()))?;
    for alone in names.iter().take(ALONE_MAX) {
        line(format!("  {}", name(alone)))?;
    }
    match names.len().saturating_sub(ALONE_MAX) {
        0 => Ok(()),
        more => line(format!("  and {more} more, which --json has")),
    }
}

fn time_unit(comparison: &Comparison) -> TimeUnit {
    match comparison.virtual_time {
        true => TimeUnit::GuestInstructions,
        false => TimeUnit::Seconds,
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
        let value = |value: f64| match one.unit == "ns" {
            true => microseconds(value),
            false => format!("{value:.2}"),
        };
        let ratio =
            |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let interval = match one.ratio_low.is_some() {
            true => format!("{} to {}", ratio(one.ratio_low), ratio(one.ratio_high)),
            false => String::new(),
        };
        vec![
            name(&one.name),
            if one.unit == "ns" {
                time.of_thousand().to_owned()
            } else {
                one.unit.clone()
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

fn shown_p(p: f64) -> String {
    match p < 0.001 {
        true => "< 0.001".to_owned(),
        false => format!("{p:.3}"),
    }
}

/// The experiment, and the labels as the report says them, with who is called.
fn name(name: &SeriesName) -> String {
    let called = summary::row_name_of(&name.labels);
    let by = ["orb", "preset", "transport", "part"];
    let who = by.iter().filter_map(|label| name.labels.get(*label));
    let mut words = vec![name.experiment.clone()];
    words.extend(who.map(ToString::to_string));
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
        (
            counts.cannot_be_said,
            "of which nothing can be said (--all says why)",
        ),
    ];
    let told = parts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!(
        "B against A, {} series: {}.",
        comparison.series.len(),
        told.join(", ")
    )
}

const DRIFT: &str = "   NOTE  A single run is on a side, so that rounds are compared: a drift between runs is not covered, and \
                     may look like a difference. Measure both sides with --runs 5 to cover it.";
const SEEDS: &str = "   NOTE  An emulated machine: times are thousands of guest instructions (k instr), and every run repeats exactly. Seeds are the \
                     observations: an interval says what other seeds might give. For a deadline, look at the maxima, which are not tested.";
const ALONE_MAX: usize = 10;
