//! What a sample was spent in: the form in which an explanation is kept.

use serde::{Deserialize, Serialize};

use crate::summary::words::shown;
use crate::{Labels, TimeUnit};

/// The explanation of one sample: `explanations/<system>-<load>-<experiment>...json` of a campaign. Every count is of guest
/// instructions, of which one takes a nanosecond of the guest's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// [`Self::SCHEMA`].
    pub schema: String,
    /// The operating system, named as the campaign's folder `kernels/<system>` is.
    pub system: String,
    /// The load that the guest ran under.
    pub load: String,
    /// The experiment that took the sample.
    pub experiment: String,
    /// The series that the sample is of.
    pub labels: Labels,
    /// Which sample of the series.
    pub sample: Sample,
    /// How long the sample took.
    pub value: u64,
    /// The seed of the round that it is of, where the series says it.
    pub seed: Option<u16>,
    /// The call of `rtorb_instruments::replay::sample_taken` that ended it, counted from 1 since the guest was switched on.
    pub mark: u64,
    /// Whether the repetition answered the same octets as the run that the sample is of. One that did not is an error and has no
    /// explanation, so that this is always true in a file.
    pub replay_equal: bool,
    /// Instructions of the window: what was executed in the sample's time. Less than `value` where the CPU slept in that time.
    pub instructions: u64,
    /// What dominates, in sentences.
    pub summary: Vec<String>,
    /// The functions, the most expensive first.
    pub functions: Vec<FunctionCost>,
    /// The tasks that ran, the most expensive first.
    pub tasks: Vec<TaskCost>,
    /// The context switches, in their order.
    pub context_switches: Vec<ContextSwitch>,
    /// The waits for a lock that a task holds, of a kernel with PREEMPT_RT: how often the functions of such a wait were entered.
    pub lock_waits: Vec<Count>,
    /// Interrupts and exceptions by the function that they enter.
    pub interrupts: Vec<Count>,
    /// The name of the flame graph's file, beside this one.
    pub flame_graph: String,
    /// The name of the file of call stacks, beside this one: a line for each, its functions with `;` between, and its instructions.
    pub folded: String,
}

impl Explanation {
    /// The form of the file.
    pub const SCHEMA: &str = "rtorb-explanation/1";

    /// How long the sample took, with its unit: `1501 k instr`.
    #[must_use]
    pub fn shown_value(&self) -> String {
        in_thousands(self.value)
    }

    /// The functions that most of it was spent in, the tasks that ran, and the context switches, in one sentence.
    #[must_use]
    pub fn in_brief(&self) -> String {
        let large = self.functions.iter().take_while(|cost| cost.share >= LARGE);
        let functions: Vec<String> = large
            .take(TOLD)
            .map(|cost| format!("{:.0} % in {}", 100.0 * cost.share, cost.name))
            .collect();
        let spent = match (functions.is_empty(), self.functions.first()) {
            (false, _) => functions.join(", "),
            (true, Some(most)) => format!(
                "in no function more than {:.0} % ({})",
                100.0 * most.share,
                most.name
            ),
            (true, None) => "no instructions".to_owned(),
        };
        let part = |task: &TaskCost| task.instructions as f64 / self.instructions.max(1) as f64;
        let tasks = self.tasks.iter().filter(|task| part(task) >= LARGE);
        let tasks: Vec<String> = tasks
            .take(TOLD)
            .map(|task| format!("{:.0} % in {}", 100.0 * part(task), task.name))
            .collect();
        let tasks = if tasks.len() > 1 {
            format!("; of tasks, {}", tasks.join(", "))
        } else {
            String::new()
        };
        let switches = match self.context_switches.len() {
            0 => "no context switch".to_owned(),
            1 => "1 context switch".to_owned(),
            count => format!("{count} context switches"),
        };
        format!("{spent}{tasks}; {switches}")
    }
}

/// Which sample of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    /// The slowest one.
    #[default]
    Worst,
    /// One whose time is the median of its seed.
    Median,
}

/// What a function cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCost {
    /// Its symbol; `[user]` for the program's own code where it has no symbols.
    pub name: String,
    /// Instructions of its own.
    pub instructions: u64,
    /// The same in parts of the window: 0 to 1.
    pub share: f64,
    /// Instructions of its own and of all that it called.
    pub with_callees: u64,
    /// How often it was entered in the window.
    pub entered: u64,
}

/// What ran as one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCost {
    /// What is known of it: `measured` for the one that ended the sample, else by what it did.
    pub name: String,
    /// Its instructions, with those of the interrupts that it was held up by.
    pub instructions: u64,
}

/// The CPU went from one task to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSwitch {
    /// Instructions since the window's begin.
    pub at: u64,
    /// As in [`TaskCost`].
    pub from: String,
    /// As in [`TaskCost`].
    pub to: String,
    /// The functions in which the first one stood, the outermost first.
    pub stack: Vec<String>,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The function that was entered.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// As all of a campaign is told: `1501 k instr`.
#[must_use]
pub fn in_thousands(instructions: u64) -> String {
    let value = shown(instructions as f64, "ns");
    format!("{value} {}", TimeUnit::GuestInstructions.of_thousand())
}

/// A smaller share is not told in brief.
const LARGE: f64 = 0.1;
const TOLD: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation(shares: &[f64]) -> Explanation {
        let function = |(index, share): (usize, &f64)| FunctionCost {
            name: format!("f{index}"),
            instructions: (share * 1e6) as u64,
            share: *share,
            with_callees: 0,
            entered: 1,
        };
        let task = |name: &str, instructions| TaskCost {
            name: name.to_owned(),
            instructions,
        };
        Explanation {
            schema: Explanation::SCHEMA.to_owned(),
            system: "6.12-rt".to_owned(),
            load: "tmpfs".to_owned(),
            experiment: "os/wakeup".to_owned(),
            labels: Labels::new(),
            sample: Sample::Worst,
            value: 1_000_000,
            seed: None,
            mark: 1,
            replay_equal: true,
            instructions: 1_000_000,
            summary: Vec::new(),
            functions: shares.iter().enumerate().map(function).collect(),
            tasks: vec![task("measured", 600_000), task("load", 400_000)],
            context_switches: Vec::new(),
            lock_waits: Vec::new(),
            interrupts: Vec::new(),
            flame_graph: String::new(),
            folded: String::new(),
        }
    }

    #[test]
    fn what_is_large_is_told_in_brief() {
        let found = explanation(&[0.57, 0.2, 0.05]);
        assert_eq!(found.shown_value(), "1000 k instr");
        assert_eq!(
            found.in_brief(),
            "57 % in f0, 20 % in f1; of tasks, 60 % in measured, 40 % in load; no context switch"
        );
    }

    #[test]
    fn where_nothing_is_large_that_is_told() {
        let found = explanation(&[0.04, 0.03]).in_brief();
        assert!(
            found.starts_with("in no function more than 4 % (f0);"),
            "{found}"
        );
    }
}
