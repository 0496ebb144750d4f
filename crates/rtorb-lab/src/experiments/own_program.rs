//! `program/NAME`: a program of the user's own, measured in the guest of an emulated machine like any other experiment.
//!
//! It is run once for each seed, with the seed in its environment as `RTORB_SEED`, and prints a time in nanoseconds a line, or a
//! name and a time: `wakeup 5120`. It takes its real-time priority by itself, if it wants one. Its file must need no other file.
//! If it calls a function `rtorb_sample` once for each of these lines, in their order, a sample of it can be explained.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rtorb_host::placement::Placement;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_results::WorstSample;
use rtorb_results::cells::Cells;

use crate::experiment::{Experiment, Progress, is_complete};
use crate::experiments::prelude::*;
use crate::processes::child::{Role, arguments};

/// A program that the user gave a name.
#[derive(Debug)]
pub struct OwnProgram {
    /// With `program/` before it.
    name: String,
}

impl OwnProgram {
    /// The experiment of this name, such as `program/control-loop`; `None` when it is not of this form.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        is_name(name.strip_prefix(PREFIX)?).then(|| Self {
            name: name.to_owned(),
        })
    }

    /// The programs of a guest: of each the name that the user gave it, and its file below the root.
    fn file(&self) -> PathBuf {
        Path::new("/").join(file_of(self.name.strip_prefix(PREFIX).unwrap_or_default()))
    }

    /// Runs it with a round's seed, and adds what it printed. Returns how many times that were; earlier rounds printed `before`.
    fn round(
        &self,
        context: &Context,
        (round, before): (usize, u64),
        measured: &mut Cells,
    ) -> Result<u64, LabError> {
        context.begin_round(round);
        let launcher = context.launcher.placed(Placement::default());
        let file = self.file();
        let seed = context.seed(round).unwrap_or_default().to_string();
        let role = [ROLE.name, &file.to_string_lossy(), &seed];
        let mut process = launcher.spawn(&self.name, &role)?;
        let printed = process.output_to_end(RUN_MAX)?;
        let series =
            samples_in(&printed, before).map_err(|what| LabError::process(&self.name, what))?;
        let mut printed = 0;
        for (name, samples) in series {
            let times_ns: Vec<u64> = samples.iter().map(|sample| sample.value_ns).collect();
            printed += times_ns.len() as u64;
            measured.add(&named(&name), round, &times_ns, 0);
            measured.mark_each(&named(&name), &samples);
        }
        Ok(printed)
    }
}

impl Experiment for OwnProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn title(&self) -> &'static str {
        "A program of the user's own, run once for each seed"
    }

    fn reproduces(&self) -> &'static str {
        "nothing that was published"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        labels([
            ("rounds", rounds(effort).into()),
            ("effort", effort.name().into()),
        ])
    }

    fn emulated(&self) -> Option<Emulated> {
        Some(Emulated {
            loads: EmulatedLoads::All,
            ..Emulated::unloaded(9.0)
        })
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Results, LabError> {
        if !self.file().is_file() {
            let what = format!(
                "there is no {}: a program of your own is measured in a guest alone, by `rtorb lab kernel run --own-program NAME=FILE`",
                self.file().display()
            );
            return Err(LabError::process(&self.name, what));
        }
        let rounds = rounds(context.effort);
        progress.begin(rounds);
        let mut measured = Cells::default();
        let mut run = || -> Result<(), LabError> {
            let mut printed = 0;
            for round in 0..rounds {
                printed += self.round(context, (round, printed), &mut measured)?;
                progress.step(&format!("round {} of {rounds}", round + 1));
            }
            Ok(())
        };
        let complete = is_complete(run())?;
        Ok(Results {
            complete,
            series: measured.series(&Labels::new()),
            notes: vec![NOTE.to_owned()],
            ..Results::default()
        })
    }
}

/// A name that a user may give a program: letters, digits, `-`, `_` and `.`, at most 64, a letter or digit first.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_of_word = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet);
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_of_word)
}

/// Where a guest has the program of this name, below its root.
#[must_use]
pub fn file_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Becomes the program. What that complains of is on the guest's console.
pub(crate) const ROLE: Role = Role::here("own-program", |words| {
    let [file, seed] = arguments(words)?;
    // The guest's own processes stand above the loads; a program that wants to says so itself.
    apply_policy(SchedPolicy::Other).map_err(|refused| refused.to_string())?;
    Err(Command::new(file).env(SEED, seed).exec().to_string())
});

/// One everywhere but in an emulated machine, where each is a seed.
fn rounds(effort: Effort) -> usize {
    effort.seeds().unwrap_or(1)
}

fn named(series: &str) -> Labels {
    match series {
        "" => Labels::new(),
        name => labels([("series", name.into())]),
    }
}

/// What a program printed: the times of each series in their order; the name is empty where lines have none. Each time is marked
/// with its number among all of this program, of which earlier rounds printed `before`.
fn samples_in(printed: &str, before: u64) -> Result<BTreeMap<String, Vec<WorstSample>>, String> {
    let mut series: BTreeMap<String, Vec<WorstSample>> = BTreeMap::new();
    let mut mark = before;
    for (number, line) in (1..).zip(printed.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, time) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [time] => ("", time),
            [name, time] if is_name(name) => (name, time),
            _ => return Err(not_a_sample(number, line)),
        };
        let value_ns = time.parse().map_err(|_| not_a_sample(number, line))?;
        if !series.contains_key(name) && series.len() == SERIES_MAX {
            return Err(format!("names more than {SERIES_MAX} series"));
        }
        mark += 1;
        let samples = series.entry(name.to_owned()).or_default();
        samples.push(WorstSample { mark, value_ns });
    }
    if series.is_empty() {
        Err("printed no time".to_owned())
    } else {
        Ok(series)
    }
}

fn not_a_sample(number: usize, line: &str) -> String {
    let shown: String = line.chars().take(LINE_SHOWN_MAX).collect();
    format!(
        "line {number} of what it printed is neither a whole number of nanoseconds nor a name and such a number: {shown:?}"
    )
}

/// Before the name that a user gave.
pub const PREFIX: &str = "program/";
const SEED: &str = "RTORB_SEED";
/// In the guest's root.
pub const FOLDER: &str = "own";
/// Of virtual time, for each seed.
const RUN_MAX: Duration = Duration::from_secs(20);
const NAME_BYTES_MAX: usize = 64;
const SERIES_MAX: usize = 64;
const LINE_SHOWN_MAX: usize = 80;
const NOTE: &str = "The program measured itself and printed its times: which samples it left out, and with what priority it ran, \
                    only the program knows.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_an_experiment() {
        let own = OwnProgram::of("program/control-loop").unwrap();
        assert_eq!(own.name(), "program/control-loop");
        assert_eq!(own.file(), Path::new("/own/control-loop"));
        for other in [
            "os/wakeup",
            "program/",
            "program/../init",
            "program/a/b",
            "program/.x",
        ] {
            assert!(OwnProgram::of(other).is_none(), "{other}");
        }
        assert!(!is_name(&"a".repeat(65)));
    }

    #[test]
    fn lines_are_times_with_or_without_a_name() {
        let printed = "# loop\n5120\n\nwakeup 7\n 4800 \nwakeup 9\n";
        let samples = samples_in(printed, 10).unwrap();
        let found = |name: &str| -> Vec<(u64, u64)> {
            let samples = samples[name].iter();
            samples.map(|one| (one.mark, one.value_ns)).collect()
        };
        assert_eq!(found(""), [(11, 5120), (13, 4800)]);
        assert_eq!(found("wakeup"), [(12, 7), (14, 9)]);
    }

    #[test]
    fn what_is_no_time_is_refused_with_its_line() {
        for (printed, says) in [
            ("", "no time"),
            ("# nothing\n", "no time"),
            ("5\n6.5\n", "line 2"),
            ("-5\n", "line 1"),
            ("a b 5\n", "line 1"),
            ("../x 5\n", "line 1"),
        ] {
            let error = samples_in(printed, 0).unwrap_err();
            assert!(error.contains(says), "{printed:?}: {error}");
        }
        let many: String = (0..=SERIES_MAX).map(|n| format!("s{n} 1\n")).collect();
        assert!(samples_in(&many, 0).unwrap_err().contains("more than"));
    }

    #[test]
    fn on_a_host_it_says_where_it_is_measured() {
        let context = Context::new(
            Effort::Glance,
            "/bin/false".into(),
            crate::processes::interrupt::Interrupt::new(),
        );
        struct Silent;
        impl Progress for Silent {
            fn begin(&mut self, _: usize) {}
            fn step(&mut self, _: &str) {}
            fn note(&mut self, _: &str) {}
        }
        let own = OwnProgram::of("program/none").unwrap();
        let error = own.run(&context.unwrap(), &mut Silent).unwrap_err();
        assert!(error.to_string().contains("--own-program"), "{error}");
    }
}
