//! `rtorb lab kernel explain`: shows where a sample of a campaign spent its time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use rtorb_kernels::explain::{self, BoundsRequest, ExplainedBound, ExplanationRequest};
use rtorb_kernels::initramfs::OwnFile;
use rtorb_lab::LabError;
use rtorb_lab::experiments;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::distinct;
use rtorb_results::explanation::{Explanation, Sample};
use rtorb_results::table::Table;

use crate::executable;
use crate::exit_status::FAILED;
use crate::output::{columns, indented, line, note, print_json, print_table, warn};

/// Show in which functions a sample of a campaign spent its time.
///
/// The command repeats the sample's boot with an instruction trace. The trace does not change the boot: the guest must print
/// the same bytes again. The slowest sample of each system is explained: tables are printed, and a flame graph is written to
/// DIR/explanations.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Folder of the campaign, written by `rtorb lab kernel run --out DIR`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only this system: the name of its folder in DIR/kernels.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Experiment of the sample.
    #[arg(long, value_name = "NAME", default_value = WAKEUP)]
    experiment: String,
    /// Only samples under this load.
    #[arg(long, value_name = "LOAD")]
    load: Option<String>,
    /// Only samples of this service of os/services.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Only samples of this series of your own program.
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
    /// Sample to explain: the slowest one, or a typical one if the experiment marks it.
    #[arg(long, value_name = "WHICH", default_value = "worst")]
    sample: SampleChoice,
    /// Program of the campaign's guests [default: this program, or target/static/rtorb].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Your own programs that the campaign measured, in the same order.
    #[arg(long, value_name = "NAME=FILE")]
    own_program: Vec<OwnFile>,
    /// Print the explanations as JSON instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SampleChoice {
    Worst,
    Median,
}

impl Explain {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let labels = [
            ("load", &self.load),
            ("service", &self.service),
            ("series", &self.series),
        ];
        let labels = labels.into_iter().filter_map(|(name, value)| {
            let value = value.clone()?;
            Some((name.to_owned(), value))
        });
        let request = ExplanationRequest {
            folder: self.folder.clone(),
            system: self.system.clone(),
            experiment: self.experiment.clone(),
            labels: labels.collect(),
            sample: match self.sample {
                SampleChoice::Worst => Sample::Worst,
                SampleChoice::Median => Sample::Median,
            },
            program: self.program.clone(),
            own_programs: self.own_program.clone(),
        };
        let mut note = |text: &str| note!("{text}");
        let explained = explain::explain(&request, &executable::own()?, &interrupt, &mut note);
        let explanations = match explained {
            Err(LabError::Interrupted) => {
                warn("interrupted before the samples were explained");
                return Ok(ExitCode::from(FAILED));
            }
            explained => explained?,
        };
        rtorb_report::write(&self.folder, &experiments::names())
            .context("cannot write the report")?;
        if self.json {
            print_json(&explanations)?
        } else {
            explanations.iter().try_for_each(|one| self.print(one))?
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, explanation: &Explanation) -> anyhow::Result<()> {
        print_summary(explanation)?;
        line("")?;
        print_table(&table(explanation))?;
        let picture = self
            .folder
            .join("explanations")
            .join(&explanation.flame_graph);
        line(format!("Flame graph: {}", picture.display()))
    }
}

/// Explains the slowest os/wakeup of each system of a campaign, and rewrites the report, which shows it. It is no error if
/// nothing can be explained, or after an interrupt.
pub(super) fn worst_of_each(
    folder: &Path,
    program: Option<&Path>,
    own_programs: &[OwnFile],
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Explanation>> {
    let request = ExplanationRequest {
        folder: folder.to_owned(),
        system: None,
        experiment: WAKEUP.to_owned(),
        labels: Vec::new(),
        sample: Sample::Worst,
        program: program.map(Path::to_owned),
        own_programs: own_programs.to_vec(),
    };
    let mut note = |text: &str| note!("{text}");
    match explain::explain(&request, &executable::own()?, interrupt, &mut note) {
        Err(LabError::Interrupted) => Ok(Vec::new()),
        Err(LabError::Incomplete { what }) => {
            note(&format!("cannot explain samples: {what}"));
            Ok(Vec::new())
        }
        explained => {
            let explanations = explained?;
            rtorb_report::write(folder, &experiments::names())
                .context("cannot write the report")?;
            Ok(explanations)
        }
    }
}

/// Explains bounds of the user's own programs, and rewrites the report, which shows the samples. Returns for each bound why it is
/// not explained, if it is not.
pub(super) fn bounds(
    request: &BoundsRequest,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<ExplainedBound>> {
    let mut note = |text: &str| note!("{text}");
    let explained = explain::explain_bounds(request, &executable::own()?, interrupt, &mut note)?;
    if explained.iter().any(|(_, found)| found.is_ok()) {
        rtorb_report::write(&request.folder, &experiments::names())
            .context("cannot write the report")?;
    }
    Ok(explained)
}

/// Explains all bounds of the user's own programs. It is no error if some cannot be explained, or after an interrupt.
pub(super) fn all_bounds(
    request: &BoundsRequest,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Explanation>> {
    let explained = match bounds(request, interrupt) {
        Err(error) => match error.downcast() {
            Ok(LabError::Interrupted) => return Ok(Vec::new()),
            Ok(LabError::Incomplete { what }) => {
                note!("{}", unexplained(&what));
                return Ok(Vec::new());
            }
            Ok(error) => return Err(error.into()),
            Err(error) => return Err(error),
        },
        Ok(explained) => explained,
    };
    let reasons = explained
        .iter()
        .filter_map(|(_, found)| found.as_ref().err());
    for reason in distinct(reasons.map(LabError::to_string)) {
        note!("{}", unexplained(&reason));
    }
    let explained = explained.into_iter().filter_map(|(_, found)| found.ok());
    Ok(explained.collect())
}

fn unexplained(why: &str) -> String {
    format!("a check against these bounds cannot name functions: {why}")
}

/// Formats one sentence: the sample, and what dominates it.
pub(super) fn brief(explanation: &Explanation) -> String {
    let experiment = match explanation.experiment.as_str() {
        WAKEUP => String::new(),
        other => format!(", {other}"),
    };
    format!(
        "{}{experiment}, load {}, {}: {}.",
        explanation.system,
        explanation.load,
        explanation.shown_value(),
        explanation.in_brief()
    )
}

/// Prints what dominates a sample.
fn print_summary(explanation: &Explanation) -> anyhow::Result<()> {
    let seed = explanation.seed;
    let seed = seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
    line(format!(
        "\n{}: {} under load {}, {}{seed}",
        explanation.system,
        explanation.experiment,
        explanation.load,
        explanation.shown_value()
    ))?;
    for sentence in &explanation.summary {
        let lines = indented(sentence, ["  ", "    "], columns());
        lines.into_iter().try_for_each(line)?;
    }
    Ok(())
}

/// Returns a table of the most expensive functions.
fn table(explanation: &Explanation) -> Table {
    let rows = explanation.functions.iter().take(ROWS).map(|cost| {
        vec![
            cost.name.clone(),
            cost.instructions.to_string(),
            format!("{:.1}", cost.share * 100.0),
            cost.with_callees.to_string(),
            cost.entered.to_string(),
        ]
    });
    let head = ["function", "instructions", "%", "with callees", "entered"];
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

const ROWS: usize = 20;
pub(super) const WAKEUP: &str = "os/wakeup";
