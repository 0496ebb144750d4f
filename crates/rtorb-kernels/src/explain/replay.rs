//! A boot that is repeated with the observer, and what comes out of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_os::sync::Mutex;
use rtorb_results::explanation::{Explanation, Sample};
use rtorb_results::summary::words::grouped;
use rtorb_results::{Labels, write_atomically, write_json};

use super::call_stacks::CallStacks;
use super::costs::Costs;
use super::flame_graph;
use super::marker::{self, Marker};
use super::observer::{Mark, Observer};
use super::summary;
use super::symbols::Symbols;
use super::trace::Trace;
use super::window::Window;
use crate::campaign::{Answer, EXPLANATIONS};
use crate::catalogue::{self, Kernel};
use crate::job::{Job, Message};
use crate::machine::{Boot, Emulator};
use crate::sha256::sha256;

/// The boot that the sample is of.
pub(super) struct Replay<'a> {
    pub(super) emulator: &'a Emulator,
    /// As it was, without an observer.
    pub(super) boot: Boot<'a>,
    pub(super) timeout: Duration,
    /// What its guest said.
    pub(super) answer: &'a Answer,
    /// The file of the program that it ran.
    pub(super) program: &'a Path,
    /// The program of the user's own that took the sample, if it was one.
    pub(super) own: Option<&'a OwnSamples>,
    pub(super) interrupt: &'a Interrupt,
}

/// The samples that a program of the user's own took in a boot.
#[derive(Debug)]
pub(super) struct OwnSamples {
    pub(super) marker: Marker,
    /// How many times it printed.
    pub(super) printed: u64,
}

/// The sample.
pub(super) struct Asked {
    pub(super) system: String,
    pub(super) experiment: String,
    pub(super) labels: Labels,
    pub(super) seed: Option<u16>,
    pub(super) sample: Sample,
    pub(super) mark: u64,
    pub(super) value: u64,
}

/// An explanation that is not written yet.
pub(super) struct Explained {
    explanation: Explanation,
    flame_graph: String,
    folded: String,
}

/// Repeats the boot, checks that it said the same, and looks at the sample.
pub(super) fn explain(replay: &Replay<'_>, asked: Asked) -> Result<Explained, LabError> {
    let mut symbols = Symbols::of_kernel(&kernel_symbols(replay)?);
    let switch = symbols
        .address(SWITCH)
        .ok_or_else(|| LabError::Incomplete {
            what: format!(
                "the kernel {} has no function {SWITCH}",
                replay.boot.kernel.name
            ),
        })?;
    let sample_taken = replay.answer.sample_taken;
    let trace = repeat(replay, &asked, switch)?;
    if let Ok(octets) = fs::read(replay.program) {
        symbols.add_program(&octets, (MARK, sample_taken));
    }
    if let Some(OwnSamples { marker, .. }) = replay.own {
        symbols.add_program(&marker.bytes, (marker::NAME, marker.address));
    }
    let stacks = CallStacks::of(&trace, &symbols);
    drop(trace);
    let window = Window::of(&stacks.steps, asked.value).ok_or_else(|| LabError::Incomplete {
        what: format!(
            "a sample of {} instructions is longer than the trace",
            asked.value
        ),
    })?;
    let costs = Costs::of(&stacks, &window);
    let summary = summary::of(&stacks, &window, &costs, asked.value);
    explained(asked, replay.answer, &window, costs, summary)
}

/// Repeats the boot with the observer. `switch` is the address of the kernel's function that switches tasks.
fn repeat(replay: &Replay<'_>, asked: &Asked, switch: u64) -> Result<Trace, LabError> {
    let sample_taken = replay.answer.sample_taken;
    let mark = Mark {
        address: replay.own.map_or(sample_taken, |own| own.marker.address),
        count: asked.mark,
        switch,
    };
    let observer = Observer::new(&replay.emulator.version, mark)?;
    let observers = observer.arguments();
    let boot = Boot {
        observers: &observers,
        ..replay.boot.clone()
    };
    let run = replay
        .emulator
        .run_for_bytes(&boot, replay.timeout, replay.interrupt);
    let said = sha256(&run?);
    if said != replay.answer.sha256 {
        let what = format!(
            "the trace changed the result: the repeated boot of {} under load {} said something else ({said}) than the campaign's \
             ({}). No sample of it can be explained, and the campaign itself may not repeat",
            asked.system, replay.answer.load, replay.answer.sha256
        );
        return Err(rtorb_results::Error::NotComparable { what }.into());
    }
    let trace = observer.trace()?;
    check_marks(trace.marks, replay.own, asked)?;
    Ok(trace)
}

/// Checks that the marks are those of the samples: without that, another sample would be explained.
fn check_marks(marks: u64, own: Option<&OwnSamples>, asked: &Asked) -> Result<(), LabError> {
    let what = match own {
        Some(OwnSamples { printed, .. }) if marks != *printed => format!(
            "{} printed {printed} times, and called {} {marks} times: it must call it once for each time that it prints, in the same \
             order. If it does so, then another program of the campaign has code at the same address: measure each in a campaign of its \
             own",
            asked.experiment,
            marker::NAME
        ),
        _ if marks < asked.mark => format!("the guest did not take {} samples", asked.mark),
        _ => return Ok(()),
    };
    Err(LabError::Incomplete { what })
}

fn explained(
    asked: Asked,
    answer: &Answer,
    window: &Window,
    costs: Costs,
    summary: Vec<String>,
) -> Result<Explained, LabError> {
    let name = file_name(&asked, &answer.load);
    let title = format!(
        "{}: {} under load {}, {} instructions",
        asked.system,
        asked.experiment,
        answer.load,
        grouped(asked.value)
    );
    let flame_graph =
        flame_graph::draw(&costs.folded, &title).map_err(LabError::file(format!("{name}.svg")))?;
    let folded = flame_graph::text(&costs.folded);
    let explanation = Explanation {
        schema: Explanation::SCHEMA.to_owned(),
        system: asked.system,
        load: answer.load.clone(),
        experiment: asked.experiment,
        labels: asked.labels,
        sample: asked.sample,
        value: asked.value,
        seed: asked.seed,
        mark: asked.mark,
        replay_equal: true,
        instructions: window.instructions,
        summary,
        functions: costs.functions,
        tasks: costs.tasks,
        context_switches: costs.context_switches,
        lock_waits: costs.lock_waits,
        interrupts: costs.interrupts,
        flame_graph: format!("{name}.svg"),
        folded: format!("{name}.folded"),
    };
    Ok(Explained {
        explanation,
        flame_graph,
        folded,
    })
}

impl Explained {
    /// Writes all three files, the one that names the others last.
    pub(super) fn write(self, folder: &Path) -> Result<Explanation, LabError> {
        let folder = folder.join(EXPLANATIONS);
        fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
        let explanation = self.explanation;
        let stem = explanation.folded.trim_end_matches(".folded");
        for (name, text) in [
            (&explanation.flame_graph, &self.flame_graph),
            (&explanation.folded, &self.folded),
        ] {
            let path = folder.join(name);
            write_atomically(&path, text.as_bytes()).map_err(LabError::file(&path))?;
        }
        let path = folder.join(format!("{stem}.json"));
        write_json(&path, &explanation).map_err(LabError::file(&path))?;
        Ok(explanation)
    }
}

/// `6.12-voluntary-tmpfs-os-wakeup`, and what else tells the series from others.
fn file_name(asked: &Asked, load: &str) -> String {
    let mut words = vec![
        asked.system.clone(),
        load.to_owned(),
        asked.experiment.clone(),
    ];
    let told_already = ["load", "kernel", "preempt", "real_time"];
    let others = asked.labels.iter();
    let others = others.filter(|(name, _)| !told_already.contains(&name.as_str()));
    words.extend(others.map(|(_, value)| value.to_string()));
    if asked.sample == Sample::Median {
        words.push("median".to_owned());
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let name = words.join("-");
    name.chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect()
}

/// The lines of /proc/kallsyms that are functions. They are asked for once for each kernel, and kept beside it.
fn kernel_symbols(replay: &Replay<'_>) -> Result<String, LabError> {
    let kernel = replay.boot.kernel;
    let path = symbols_path(kernel)?;
    let _one_at_a_time = SYMBOLS.lock();
    if let Ok(known) = fs::read_to_string(&path) {
        return Ok(known);
    }
    let boot = Boot {
        job: &Job::Symbols,
        ..replay.boot.clone()
    };
    let said = replay.emulator.run(&boot, SYMBOLS_MAX, replay.interrupt)?;
    let symbols = said.into_iter().find_map(|message| match message {
        Message::Symbols(text) => Some(text),
        _ => None,
    });
    let functions = symbols.ok_or_else(|| LabError::Incomplete {
        what: format!("the kernel {} does not tell its symbols", kernel.name),
    })?;
    write_atomically(&path, functions.as_bytes()).map_err(LabError::file(&path))?;
    Ok(functions)
}

fn symbols_path(kernel: &Kernel) -> Result<PathBuf, LabError> {
    let digest = kernel.sha256.get(..DIGITS).unwrap_or(&kernel.sha256);
    Ok(catalogue::folder(kernel)?.join(format!("symbols-{digest}")))
}

/// Held while a kernel is asked for its symbols, so that the samples of one kernel ask once.
static SYMBOLS: Mutex<()> = Mutex::new(());
/// What an observer counts, and where tasks are switched: arch/x86/entry/entry_64.S.
const MARK: &str = "rtorb_instruments::replay::sample_taken";
const SWITCH: &str = "__switch_to_asm";
const SYMBOLS_MAX: Duration = Duration::from_secs(300);
const DIGITS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::labels;

    #[test]
    fn marks_are_those_of_the_samples_or_none_is_explained() {
        let asked = Asked {
            system: "6.12-rt-lazy".to_owned(),
            experiment: "program/loop".to_owned(),
            labels: Labels::new(),
            seed: None,
            sample: Sample::Worst,
            mark: 3,
            value: 2,
        };
        let marker = Marker {
            bytes: Vec::new(),
            address: 0x40_0000,
        };
        let own = OwnSamples { marker, printed: 5 };
        assert!(check_marks(5, Some(&own), &asked).is_ok());
        for marks in [4, 6] {
            let refused = check_marks(marks, Some(&own), &asked).unwrap_err();
            let said = format!("printed 5 times, and called rtorb_sample {marks} times");
            assert!(refused.to_string().contains(&said), "{refused}");
        }
        assert!(check_marks(3, None, &asked).is_ok());
        assert!(check_marks(2, None, &asked).is_err());
    }

    #[test]
    fn a_file_is_named_by_what_tells_its_sample_from_others() {
        let mut asked = Asked {
            system: "6.12-rt-full".to_owned(),
            experiment: "os/services".to_owned(),
            labels: labels([
                ("load", "none".into()),
                ("real_time", true.into()),
                ("service", "eventfd".into()),
            ]),
            seed: None,
            sample: Sample::Worst,
            mark: 1,
            value: 2,
        };
        assert_eq!(
            file_name(&asked, "none"),
            "6.12-rt-full-none-os-services-eventfd"
        );
        asked.sample = Sample::Median;
        asked.labels.insert("what".to_owned(), "../a b".into());
        assert_eq!(
            file_name(&asked, "none"),
            "6.12-rt-full-none-os-services-eventfd-..-a-b-median"
        );
    }
}
