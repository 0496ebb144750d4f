//! What the functions and the tasks of a sample cost.

use std::collections::{BTreeMap, HashMap, HashSet};

use rtorb_results::explanation::{ContextSwitch, Count, FunctionCost, TaskCost};

use super::call_stacks::{CallStacks, Step};
use super::window::Window;

/// A sample, looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) functions: Vec<FunctionCost>,
    pub(crate) tasks: Vec<TaskCost>,
    pub(crate) context_switches: Vec<ContextSwitch>,
    pub(crate) lock_waits: Vec<Count>,
    pub(crate) interrupts: Vec<Count>,
    /// How many instructions were executed before the first interrupt of the sample.
    pub(crate) first_interrupt: Option<(u64, String)>,
    /// Task and functions, the outermost first, with `;` between; and the instructions.
    pub(crate) folded: BTreeMap<String, u64>,
}

impl Costs {
    /// Of the steps in the window.
    pub(crate) fn of(stacks: &CallStacks, window: &Window) -> Self {
        let mut own: HashMap<(Option<u32>, usize), u64> = HashMap::new();
        let mut entered: HashMap<usize, u64> = HashMap::new();
        let mut interrupts: BTreeMap<usize, u64> = BTreeMap::new();
        let mut first_interrupt = None;
        let mut at = 0;
        for (step, instructions) in window.steps(&stacks.steps) {
            *own.entry((step.task, step.top)).or_default() += instructions;
            if step.entered {
                *entered.entry(step.function).or_default() += 1;
            }
            if step.interrupted {
                *interrupts.entry(step.function).or_default() += 1;
                let name = || stacks.name(step.function).to_owned();
                first_interrupt.get_or_insert_with(|| (at, name()));
            }
            at += instructions;
        }
        let names = TaskNames::of(stacks, window);
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
        for ((task, top), instructions) in &own {
            let mut line = names.of_task(*task).to_owned();
            let functions: Vec<usize> = stacks.stack(*top).collect();
            for function in functions.iter().rev() {
                line.push(';');
                line.push_str(stacks.name(*function));
            }
            *folded.entry(line).or_default() += instructions;
            *tasks.entry(names.of_task(*task)).or_default() += instructions;
        }
        let functions = functions(stacks, &own, &entered, window.instructions);
        let is_wait = |cost: &&FunctionCost| LOCK_WAITS.contains(&cost.name.as_str());
        let waits = functions.iter().filter(is_wait);
        let waits = waits.filter(|cost| cost.entered > 0).map(|cost| Count {
            name: cost.name.clone(),
            count: cost.entered,
        });
        Self {
            lock_waits: waits.collect(),
            functions,
            tasks: ranked_tasks(tasks),
            context_switches: context_switches(stacks, window, &names),
            interrupts: ranked_counts(stacks, interrupts),
            first_interrupt,
            folded,
        }
    }
}

/// The most expensive one first.
fn functions(
    stacks: &CallStacks,
    own: &HashMap<(Option<u32>, usize), u64>,
    entered: &HashMap<usize, u64>,
    all: u64,
) -> Vec<FunctionCost> {
    let mut costs: BTreeMap<&str, FunctionCost> = BTreeMap::new();
    let mut cost_of = |function: usize, change: &dyn Fn(&mut FunctionCost)| {
        let name = stacks.name(function);
        let cost = costs.entry(name).or_insert_with(|| FunctionCost {
            name: name.to_owned(),
            instructions: 0,
            share: 0.0,
            with_callees: 0,
            entered: entered.get(&function).copied().unwrap_or(0),
        });
        change(cost);
    };
    for ((_, top), instructions) in own {
        let mut seen = HashSet::new();
        for (depth, function) in stacks.stack(*top).enumerate() {
            if depth == 0 {
                cost_of(function, &|cost| cost.instructions += instructions);
            }
            // One that called itself is in the stack more than once.
            if seen.insert(function) {
                cost_of(function, &|cost| cost.with_callees += instructions);
            }
        }
    }
    let mut costs: Vec<FunctionCost> = costs.into_values().collect();
    for cost in &mut costs {
        cost.share = cost.instructions as f64 / all.max(1) as f64;
    }
    costs.sort_by(|a, b| {
        let key = |cost: &FunctionCost| (cost.instructions, cost.with_callees);
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    costs
}

fn context_switches(stacks: &CallStacks, window: &Window, names: &TaskNames) -> Vec<ContextSwitch> {
    let mut switches = Vec::new();
    let mut at = 0;
    let mut before: Option<&Step> = None;
    for (step, instructions) in window.steps(&stacks.steps) {
        if let Some(before) = before.filter(|before| before.task != step.task) {
            let mut stack: Vec<String> = stacks
                .stack(before.top)
                .map(|function| stacks.name(function).to_owned())
                .collect();
            stack.reverse();
            switches.push(ContextSwitch {
                at,
                from: names.of_task(before.task).to_owned(),
                to: names.of_task(step.task).to_owned(),
                stack,
            });
        }
        at += instructions;
        before = Some(step);
    }
    switches
}

fn ranked_tasks(tasks: BTreeMap<&str, u64>) -> Vec<TaskCost> {
    let mut ranked: Vec<TaskCost> = tasks
        .into_iter()
        .map(|(name, instructions)| TaskCost {
            name: name.to_owned(),
            instructions,
        })
        .collect();
    ranked.sort_by_key(|task| std::cmp::Reverse(task.instructions));
    ranked
}

fn ranked_counts(stacks: &CallStacks, counts: BTreeMap<usize, u64>) -> Vec<Count> {
    let mut ranked: Vec<Count> = counts
        .into_iter()
        .map(|(function, count)| Count {
            name: stacks.name(function).to_owned(),
            count,
        })
        .collect();
    ranked.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    ranked
}

/// What tasks are called: an observer sees their addresses, and neither their number nor their name.
struct TaskNames {
    names: HashMap<Option<u32>, String>,
}

impl TaskNames {
    fn of(stacks: &CallStacks, window: &Window) -> Self {
        let measured = stacks.steps.last().and_then(|step| step.task);
        let mut names = HashMap::from([(measured, MEASURED.to_owned())]);
        let mut order: Vec<Option<u32>> = Vec::new();
        let mut known: HashMap<Option<u32>, String> = HashMap::new();
        // What a task did before the sample tells of it too.
        let within = stacks.steps.len() - window.first;
        let earlier = window.first.saturating_sub(within.max(TOLD_BY));
        for (index, step) in stacks.steps.iter().enumerate().skip(earlier) {
            if index >= window.first && !order.contains(&step.task) {
                order.push(step.task);
            }
            let name = known.entry(step.task).or_default();
            // The call before the sample that is nearest to it, or else the first one in it.
            if (index < window.first || name.is_empty())
                && let Some(kind) = kind_of_task(stacks, step.top)
            {
                *name = kind;
            }
        }
        let mut counts: HashMap<String, usize> = HashMap::new();
        for task in order.into_iter().filter(|task| *task != measured) {
            let known = known.remove(&task).filter(|name| !name.is_empty());
            let kind = known.unwrap_or_else(|| "task".to_owned());
            let count = counts.entry(kind.clone()).or_insert(0);
            *count += 1;
            let name = match *count {
                1 => kind,
                count => format!("{kind} {count}"),
            };
            names.insert(task, name);
        }
        Self { names }
    }

    fn of_task(&self, task: Option<u32>) -> &str {
        self.names.get(&task).map_or("task", String::as_str)
    }
}

/// What the outermost functions of a stack tell of a task.
fn kind_of_task(stacks: &CallStacks, top: usize) -> Option<String> {
    let mut stack: Vec<&str> = stacks.stack(top).map(|at| stacks.name(at)).collect();
    stack.reverse();
    if stack.iter().any(|name| IDLE.contains(name)) {
        return Some("idle".to_owned());
    }
    if let Some(at) = stack.iter().rposition(|name| KERNEL_THREADS.contains(name)) {
        let body = stack.get(at + 1);
        return body.map(|name| format!("kernel thread {name}"));
    }
    let call = stack
        .iter()
        .find_map(|name| name.strip_prefix("__x64_sys_"));
    call.map(|call| format!("process in {call}"))
}

/// The task that ended the sample.
pub(crate) const MEASURED: &str = "measured";
/// By which a kernel with PREEMPT_RT waits for what is a spinning lock elsewhere: kernel/locking/spinlock_rt.c.
const LOCK_WAITS: [&str; 2] = ["schedule_rtlock", "rtlock_slowlock_locked"];
/// What every kernel thread, or many, are called through; nothing else is. A trace need not go back to the outermost.
const KERNEL_THREADS: [&str; 3] = ["kthread", "smpboot_thread_fn", "worker_thread"];
const IDLE: [&str; 2] = ["do_idle", "default_idle"];
/// Blocks before a sample, at most, that are looked at to tell what its tasks are.
const TOLD_BY: usize = 1 << 16;
