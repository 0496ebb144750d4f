//! What dominates a sample, in sentences.

use rtorb_results::explanation::in_thousands;

use super::call_stacks::{CallStacks, Step};
use super::costs::Costs;
use super::window::Window;

/// The sentences, the most important first.
pub(crate) fn of(stacks: &CallStacks, window: &Window, costs: &Costs, value: u64) -> Vec<String> {
    let all = window.instructions;
    let mut sentences = Vec::new();
    let shares: Vec<String> = costs
        .functions
        .iter()
        .take_while(|cost| cost.share >= SHARE_MIN)
        .take(FUNCTIONS)
        .map(|cost| format!("{:.0} % in {}", cost.share * 100.0, cost.name))
        .collect();
    if !shares.is_empty() {
        sentences.push(format!("Of {}, {}.", in_thousands(all), listed(&shares)));
    }
    sentences.extend(heaviest_path(stacks, window));
    let ran: Vec<String> = costs
        .tasks
        .iter()
        .take(TASKS)
        .map(|task| {
            let share = 100.0 * task.instructions as f64 / all.max(1) as f64;
            format!("{} {share:.1} %", task.name)
        })
        .collect();
    sentences.push(format!(
        "Tasks, with what interrupted them: {}.",
        ran.join(", ")
    ));
    sentences.push(switches(costs));
    if !costs.lock_waits.is_empty() {
        let waits: Vec<String> = costs
            .lock_waits
            .iter()
            .map(|wait| format!("{} {}", wait.name, times(wait.count)))
            .collect();
        sentences.push(format!(
            "A lock that spins in other kernels was waited for: {}.",
            waits.join(", ")
        ));
    }
    if let Some((at, name)) = &costs.first_interrupt {
        sentences.push(format!(
            "The first interrupt or exception, {name}, came after {}.",
            in_thousands(*at)
        ));
    }
    if value > all {
        sentences.push(format!(
            "The CPU slept before: for {} of {} it executed nothing.",
            in_thousands(value - all),
            in_thousands(value)
        ));
    }
    sentences
}

fn switches(costs: &Costs) -> String {
    let told: Vec<String> = costs
        .context_switches
        .iter()
        .take(SWITCHES)
        .map(|switch| format!("{} to {}", switch.from, switch.to))
        .collect();
    let more = match costs.context_switches.len().checked_sub(SWITCHES) {
        Some(more) if more > 0 => format!(", and {more} more"),
        _ => String::new(),
    };
    match costs.context_switches.len() {
        0 => "No context switch.".to_owned(),
        1 => format!("1 context switch: {}.", told[0]),
        count => format!("{count} context switches: {}{more}.", told.join(", ")),
    }
}

/// The functions that most of a sample is below of: from the outermost on, the one with the larger part of what is left.
fn heaviest_path(stacks: &CallStacks, window: &Window) -> Option<String> {
    let mut steps: Vec<(Vec<usize>, u64)> = collected(stacks, window);
    let mut path: Vec<&str> = Vec::new();
    let mut below = window.instructions;
    for depth in 0..DEPTH_MAX {
        let mut parts: std::collections::BTreeMap<usize, u64> = std::collections::BTreeMap::new();
        for (stack, instructions) in &steps {
            if let Some(function) = stack.get(depth) {
                *parts.entry(*function).or_default() += instructions;
            }
        }
        let heaviest = parts
            .into_iter()
            .max_by_key(|(_, instructions)| *instructions);
        let Some((function, instructions)) = heaviest else {
            break;
        };
        if instructions * 2 < window.instructions {
            break;
        }
        below = instructions;
        path.push(stacks.name(function));
        steps.retain(|(stack, _)| stack.get(depth) == Some(&function));
    }
    (path.len() > 1).then(|| {
        let share = 100.0 * below as f64 / window.instructions.max(1) as f64;
        format!("{share:.0} % below {}.", path.join(" > "))
    })
}

/// Stacks with the outermost function first, each once.
fn collected(stacks: &CallStacks, window: &Window) -> Vec<(Vec<usize>, u64)> {
    let mut of_top: std::collections::BTreeMap<usize, u64> = std::collections::BTreeMap::new();
    let add = |(step, instructions): (&Step, u64)| {
        *of_top.entry(step.top).or_default() += instructions;
    };
    window.steps(&stacks.steps).for_each(add);
    of_top
        .into_iter()
        .map(|(top, instructions)| {
            let mut stack: Vec<usize> = stacks.stack(top).collect();
            stack.reverse();
            (stack, instructions)
        })
        .collect()
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

const SHARE_MIN: f64 = 0.05;
const FUNCTIONS: usize = 4;
const TASKS: usize = 4;
const SWITCHES: usize = 6;
const DEPTH_MAX: usize = 64;
