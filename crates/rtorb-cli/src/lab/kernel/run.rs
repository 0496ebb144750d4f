//! `rtorb lab kernel run`: runs a campaign over kernels.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rtorb_kernels::campaign::{
    self, Absent, Finished, Identity, Request, Selection, Standing, Watch,
};
use rtorb_kernels::catalogue;
use rtorb_kernels::explain::BoundsRequest;
use rtorb_kernels::initramfs::OwnFile;
use rtorb_kernels::machine::Machine;
use rtorb_lab::LabError;
use rtorb_lab::experiment;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_report::matrix;
use rtorb_results::explanation::Explanation;
use rtorb_results::{LostRound, Results, TimeUnit, distinct};
use serde_json::json;

use super::explain;
use crate::executable;
use crate::exit_status::FAILED;
use crate::output::{self, line, note, print_json, print_table, warn};
use crate::progress::Report;

/// Measure kernels side by side; boot each in an emulated machine under every load.
///
/// Time in a guest is virtual: a nanosecond is one instruction, without caches, buses and other CPUs. Two runs of the same
/// campaign write the same bytes below DIR/results and DIR/kernels. Ctrl-C ends the campaign early; the report then has what
/// was measured until then.
#[derive(Debug, Args)]
pub(super) struct RunCampaign {
    /// Kernels, separated by commas: names from `rtorb lab kernels`, files of kernel images, or guests that `cargo xtask rtos`
    /// builds: freertos, rtic.
    #[arg(long, value_name = "KERNEL", required = true, value_delimiter = ',')]
    kernel: Vec<String>,
    /// Preemption models to boot each kernel with, separated by commas [default: the kernel's own].
    ///
    /// A PREEMPT_RT kernel has neither `none` nor `voluntary`. If no other model is named, it is booted once, as it is by itself.
    #[arg(long, value_name = "MODEL", value_delimiter = ',', value_parser = ["none", "voluntary", "full", "lazy"])]
    preempt: Vec<String>,
    /// Only these experiments, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    experiments: Vec<String>,
    /// Only these loads, separated by commas. With --experiments, every experiment runs under each load.
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
    loads: Vec<String>,
    /// Number of seeds: each experiment begins differently for each seed. The worst sample over all seeds is reported.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=SEEDS_MAX))]
    seeds: u16,
    /// Number of guests that run side by side [default: the number of CPUs of the host].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=GUESTS_MAX))]
    guests: Option<u16>,
    /// Machine to emulate: one CPU, on which an instruction takes a nanosecond; the same with a clock whose ticks alone wake
    /// threads, as P3 had it; or one like the hosts of P1, with two CPUs of 125 to 250 million instructions a second, for
    /// orb/architectures.
    #[arg(long, value_name = "MACHINE", default_value_t, value_parser = machine())]
    machine: Machine,
    /// Run a short campaign, of a minute: os/wakeup under none, munmap and tmpfs, and os/services and os/operations under none.
    #[arg(long)]
    quick: bool,
    /// Take the published sample counts and levels. The program says how many hours that takes before the first boot.
    #[arg(long, conflicts_with_all = ["quick", "explain"])]
    full: bool,
    /// Statically linked rtorb for the guests [default: this program, or target/static/rtorb].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Your own statically linked program, measured as the experiment program/NAME.
    ///
    /// The program runs once for each seed, with RTORB_SEED in its environment. Each line that it prints is a time in
    /// nanoseconds, or a name and a time.
    #[arg(long, value_name = "NAME=FILE")]
    own_program: Vec<OwnFile>,
    /// Folder of the campaign.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Samples to explain: the slowest os/wakeup of each system and the bounds of your own programs, which takes one more boot
    /// for each and one for a kernel's symbols; or none.
    #[arg(long, value_name = "WHICH", default_value = "worst")]
    explain: ExplainChoice,
    /// Print the campaign and its results as one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainChoice {
    Worst,
    None,
}

impl RunCampaign {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let executable = executable::own()?;
        let (names, selection) = (distinct(self.kernel.clone()), self.selection());
        let program = self.program.as_deref();
        catalogue::check_names(&names)?;
        campaign::check_needs(&names, &selection, program, &executable, &interrupt)?;
        let request = Request {
            kernels: catalogue::ensure(&names, &mut Fetching::default(), &interrupt)?,
            preempt: distinct(self.preempt.clone()),
            machine: self.machine,
            selection,
            seeds: self.seeds,
            guests: self.guests.map_or_else(cpus, usize::from),
            program: self.program.clone(),
            own_programs: self.own_program.clone(),
            folder: self.out.clone(),
        };
        let mut progress = Progress::new();
        let finished = campaign::run(&request, &executable, &interrupt, &mut progress);
        progress.finish();
        let finished = match finished {
            Err(LabError::Interrupted) => {
                warn("interrupted before anything was measured");
                return Ok(ExitCode::from(FAILED));
            }
            finished => finished?,
        };
        let record = &finished.record;
        let is_good = finished.is_good();
        let systems = &record.identity.systems;
        let has_linux = systems.iter().any(|system| system.kernel.board.is_none());
        // A sample that does not repeat cannot be explained, and guests of boards mark none.
        let explanations = if is_good && has_linux && self.explain == ExplainChoice::Worst {
            self.explain(&record.identity, &interrupt)?
        } else {
            Vec::new()
        };
        if self.json {
            print_json(&json!({
                "report": finished.page,
                "campaign": finished.record,
                "results": finished.compared,
                "explanations": explanations,
            }))?
        } else {
            print(&finished, &explanations)?;
        }
        Ok(if is_good {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

impl RunCampaign {
    /// Explains the slowest wake-up of each system, and each bound of the user's own programs.
    fn explain(
        &self,
        identity: &Identity,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Vec<Explanation>> {
        let mut explanations = Vec::new();
        if identity
            .experiments
            .iter()
            .any(|name| name == explain::WAKEUP)
        {
            explanations.extend(explain::worst_of_each(
                &self.out,
                self.program.as_deref(),
                &self.own_program,
                interrupt,
            )?);
        }
        let bounds = BoundsRequest {
            folder: self.out.clone(),
            program: self.program.clone(),
            own_programs: self.own_program.clone(),
            only: None,
        };
        explanations.extend(explain::all_bounds(&bounds, interrupt)?);
        Ok(explanations)
    }

    fn selection(&self) -> Selection {
        Selection {
            experiments: self.experiments(),
            loads: distinct(self.loads.clone()),
            quick: self.quick,
            full: self.full,
            boots: Vec::new(),
        }
    }

    /// Returns the selected experiments and those of the user's own programs; otherwise those that the machine was made for.
    fn experiments(&self) -> Vec<String> {
        let own = self.own_program.iter().map(OwnFile::experiment);
        let mut all: Vec<String> = self.experiments.iter().cloned().chain(own).collect();
        if all.is_empty() {
            let made_for = self.machine.experiments().iter();
            all.extend(made_for.map(|name| (*name).to_owned()));
        }
        distinct(all)
    }
}

/// The progress of the download of missing kernels, if there are any.
#[derive(Default)]
pub(super) struct Fetching(Option<Report>);

impl experiment::Progress for Fetching {
    fn begin(&mut self, steps: usize) {
        let mut report = Report::new("fetching kernels", 1, 1);
        report.begin(steps);
        self.0 = Some(report);
    }

    fn step(&mut self, next: &str) {
        if let Some(report) = &mut self.0 {
            report.step(next);
        }
    }

    fn note(&mut self, text: &str) {
        match &mut self.0 {
            Some(report) => report.note(text),
            None => note!("{text}"),
        }
    }
}

fn machine() -> impl TypedValueParser<Value = Machine> {
    let names = PossibleValuesParser::new(Machine::ALL.map(Machine::name));
    names.try_map(|name| name.parse::<Machine>())
}

pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn print(finished: &Finished, explanations: &[Explanation]) -> anyhow::Result<()> {
    let record = &finished.record;
    for titled in finished.compared.iter().filter_map(matrix::of) {
        line(format!("\n{}", titled.title))?;
        print_table(&titled.table)?;
    }
    line("")?;
    for results in &finished.compared {
        let conclusions_max = match matrix::of(results) {
            Some(_) => CONCLUSIONS_MAX,
            None => 1,
        };
        for conclusion in results.conclusions.iter().take(conclusions_max) {
            labelled("found", conclusion)?;
        }
    }
    for explanation in explanations {
        labelled("spent in", &explain::brief(explanation))?;
    }
    for missing in missing_in_words(&record.missing) {
        labelled("MISSING", &missing)?;
    }
    for lost in lost_in_words(&finished.compared) {
        labelled("LOST", &lost)?;
    }
    let check = &record.self_check;
    match check.repeats {
        Some(true) => labelled(
            "check",
            &format!("{} ran twice and printed the same bytes", check.case),
        )?,
        Some(false) => labelled(
            "DIFFERS",
            &format!(
                "{} ran twice and printed different bytes: do not rely on any number of this campaign. Both outputs are in \
                 the folder `differs`",
                check.case
            ),
        )?,
        None => labelled(
            "check",
            "no case ran twice to its end: it is not known whether results repeat",
        )?,
    }
    let unit = finished.compared.first().map(Results::time_unit);
    labelled("unit", unit.unwrap_or(TimeUnit::GuestInstructions).legend())?;
    let wall = &record.wall;
    line(format!(
        "\n{:.0} s with {} guests side by side. Campaign {}",
        wall.duration_s, wall.guests, record.id
    ))?;
    match &finished.page {
        Some(page) => line(format!("Report: {}", page.display())),
        None => line("No report was written."),
    }
}

/// Formats one sentence for each reason.
fn missing_in_words(missing: &[Absent]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for one in missing {
        let case = format!(
            "{} {} load {} {}",
            one.kernel, one.preempt, one.load, one.experiment
        );
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, cases)) => cases.push(case),
            None => reasons.push((&one.why, vec![case])),
        }
    }
    let sentence = |(why, cases): &(&str, Vec<String>)| {
        let named = cases.iter().take(MISSING_NAMED).cloned();
        let named = named.collect::<Vec<_>>().join("; ");
        match cases.len().saturating_sub(MISSING_NAMED) {
            0 => format!("{named}: {why}"),
            more => format!("{named}; and {more} more (campaign.json lists them): {why}"),
        }
    };
    reasons.iter().map(sentence).collect()
}

/// Formats the first rounds that were lost of each experiment, and the number of the others.
fn lost_in_words(compared: &[Results]) -> Vec<String> {
    let of_results = |results: &Results| {
        let name = &results.experiment;
        let named = results.lost.iter().take(MISSING_NAMED);
        let mut words: Vec<String> = named
            .map(|lost| {
                let LostRound { round, what, why } = lost;
                format!("{name} {what}, seed {}: {why}", round + 1)
            })
            .collect();
        let more = results.lost.len().saturating_sub(MISSING_NAMED);
        if more > 0 {
            words.push(format!("{name}: {more} more (its results list them)"));
        }
        words
    };
    compared.iter().flat_map(of_results).collect()
}

fn labelled(word: &str, text: &str) -> anyhow::Result<()> {
    output::labelled(word, text, WORD_WIDTH)
}

/// The progress of a campaign: one line that changes on a terminal; elsewhere a line for each finished boot.
pub(super) struct Progress {
    bar: ProgressBar,
    on_terminal: bool,
    done: Option<usize>,
}

impl Progress {
    pub(super) fn new() -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(
            ProgressStyle::with_template("[{bar:24}] {pos}/{len} {prefix} {wide_msg}")
                .expect("the template is constant")
                .progress_chars("=> "),
        );
        Self {
            bar,
            on_terminal,
            done: None,
        }
    }
}

impl Progress {
    /// Clears the line on the terminal.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn note(&mut self, text: &str) {
        if self.on_terminal {
            self.bar.println(text)
        } else {
            note!("{text}")
        }
    }

    fn at(&mut self, standing: &Standing<'_>) {
        let left = standing
            .left
            .map_or_else(String::new, |left| format!("{} left", shown(left)));
        self.bar.set_length(standing.cases as u64);
        self.bar.set_position(standing.done as u64);
        self.bar.set_prefix(left.clone());
        self.bar.set_message(standing.running.join(" | "));
        if !self.on_terminal && self.done != Some(standing.done) {
            note!("{} of {} boots done {left}", standing.done, standing.cases);
        }
        self.done = Some(standing.done);
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 100 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Of the longest label, `spent in`.
const WORD_WIDTH: usize = 8;
/// The number of conclusions printed of an experiment that has a table here; of another, the first one is printed.
const CONCLUSIONS_MAX: usize = 3;
/// The number of named cases that are missing for the same reason.
const MISSING_NAMED: usize = 3;
/// More seeds would take days.
const SEEDS_MAX: i64 = 1_000;
const GUESTS_MAX: i64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_rounds_are_told_and_many_of_them_are_counted() {
        let lost = |round: usize| LostRound {
            round,
            what: "6.12 voluntary, load tcp: tool rtorb".to_owned(),
            why: "it was silent".to_owned(),
        };
        let results = Results {
            experiment: "kernel/os/wakeup".to_owned(),
            lost: (0..5).map(lost).collect(),
            ..Results::default()
        };
        let words = lost_in_words(&[results, Results::default()]);
        assert_eq!(words.len(), 4);
        assert_eq!(
            words[0],
            "kernel/os/wakeup 6.12 voluntary, load tcp: tool rtorb, seed 1: it was silent"
        );
        assert!(words[3].contains("2 more"), "{}", words[3]);
    }

    #[test]
    fn cases_with_one_reason_are_one_sentence() {
        let absent = |load: &str, why: &str| Absent {
            kernel: "6.12".to_owned(),
            preempt: "voluntary".to_owned(),
            load: load.to_owned(),
            experiment: "os/wakeup".to_owned(),
            why: why.to_owned(),
        };
        let mut missing: Vec<Absent> = ["none", "hog", "fork", "tcp", "udp"]
            .map(|load| absent(load, "interrupted"))
            .to_vec();
        missing.push(absent("mix", "the guest ended"));
        let sentences = missing_in_words(&missing);
        assert_eq!(sentences.len(), 2);
        assert!(sentences[0].starts_with("6.12 voluntary load none os/wakeup; "));
        assert!(sentences[0].ends_with("and 2 more (campaign.json lists them): interrupted"));
        assert_eq!(
            sentences[1],
            "6.12 voluntary load mix os/wakeup: the guest ended"
        );
    }
}
