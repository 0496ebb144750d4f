//! The call stack of every block of a trace, found by doing its calls and returns again.
//!
//! A trace begins in the middle: functions that were called before it are learnt when they are returned to, and then stand below
//! everything that came before. An interrupt or an exception enters a function that nobody called; each task has its own stack,
//! which goes on where it stood when the task comes back.

use std::collections::HashMap;

use super::block_end::BlockEnd;
use super::symbols::{Symbols, is_kernel};
use super::trace::{Block, Event, Trace};

/// A function in a tree of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// An index of names; `None` for what stands below everything that is known.
    function: Option<usize>,
    parent: Option<usize>,
}

/// A block that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The stack, by [`CallStacks::stack`].
    pub(crate) top: usize,
    /// The function, by [`CallStacks::name`].
    pub(crate) function: usize,
    /// The task, by its index in the trace; `None` before the first switch.
    pub(crate) task: Option<u32>,
    /// How many of its instructions were executed: less than it has where an exception came in between.
    pub(crate) instructions: u64,
    /// Whether the function began with it.
    pub(crate) entered: bool,
    /// Whether an interrupt or an exception began with it.
    pub(crate) interrupted: bool,
    /// Whether the CPU slept behind it.
    pub(crate) halted: bool,
}

/// The stacks of a whole trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallStacks {
    names: Vec<String>,
    nodes: Vec<Node>,
    /// One for each executed block.
    pub(crate) steps: Vec<Step>,
}

impl CallStacks {
    /// Does the calls and returns of a trace again.
    pub(crate) fn of(trace: &Trace, symbols: &Symbols) -> Self {
        let code = Code::of(trace, symbols);
        let mut unwinding = Unwinding::new(trace, &code);
        for event in &trace.events {
            match event {
                Event::Executed(block) => unwinding.execute(*block as usize),
                Event::SwitchedTo(task) => unwinding.switch_to(*task),
            }
        }
        let Unwinding { nodes, steps, .. } = unwinding;
        Self {
            names: code.names,
            nodes,
            steps,
        }
    }

    /// The name of a function.
    pub(crate) fn name(&self, function: usize) -> &str {
        &self.names[function]
    }

    /// The functions of a stack, the innermost first.
    pub(crate) fn stack(&self, top: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(top), |node| self.nodes[*node].parent)
            .filter_map(|node| self.nodes[node].function)
    }
}

/// What is known of the blocks of a trace before anything is executed.
struct Code {
    names: Vec<String>,
    /// For each block: its function, whether it is the begin of it, and whether interrupts and exceptions enter by it.
    of_block: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    function: usize,
    is_begin: bool,
    is_interrupt: bool,
    is_exception: bool,
    is_task_begin: bool,
}

impl Code {
    fn of(trace: &Trace, symbols: &Symbols) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut of_block = Vec::with_capacity(trace.blocks.len());
        for block in &trace.blocks {
            let found = symbols.function(block.start);
            let function = *known.entry(found.name).or_insert_with(|| {
                names.push(found.name.to_owned());
                names.len() - 1
            });
            let is_begin = found.start == Some(block.start);
            let entry = |prefixes: &[&str]| {
                let is_entry = |prefix: &&str| found.name.starts_with(*prefix);
                is_kernel(block.start) && prefixes.iter().any(is_entry)
            };
            of_block.push(Place {
                function,
                is_begin,
                // The stubs of device interrupts are many in one.
                is_interrupt: (is_begin && entry(&INTERRUPTS)) || entry(&[STUBS]),
                is_exception: is_begin && entry(&[EXCEPTIONS]),
                is_task_begin: is_begin && entry(&[TASK_BEGIN]),
            });
        }
        Self { names, of_block }
    }
}

/// A function that was entered and not left.
#[derive(Clone, Copy, Debug)]
struct Level {
    node: usize,
    kind: Kind,
}

/// How a function was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Before the trace began.
    Unknown,
    /// By a call that returns to this address.
    Called(u64),
    /// From a program.
    SystemCall,
    /// By an interrupt or exception behind or in this step.
    Interrupt { step: Option<usize> },
}

struct Unwinding<'a> {
    trace: &'a Trace,
    code: &'a Code,
    nodes: Vec<Node>,
    children: HashMap<(usize, usize), usize>,
    steps: Vec<Step>,
    /// The block of each step.
    blocks: Vec<usize>,
    /// The step whose end says how the next one came.
    last: Option<usize>,
    levels: Vec<Level>,
    task: Option<u32>,
    others: HashMap<Option<u32>, Vec<Level>>,
}

impl<'a> Unwinding<'a> {
    fn new(trace: &'a Trace, code: &'a Code) -> Self {
        let mut new = Self {
            trace,
            code,
            nodes: Vec::new(),
            children: HashMap::new(),
            steps: Vec::with_capacity(trace.events.len()),
            blocks: Vec::with_capacity(trace.events.len()),
            last: None,
            levels: Vec::new(),
            task: None,
            others: HashMap::new(),
        };
        assert_eq!(new.add(None, None), PROGRAMS);
        new.forget();
        new
    }

    fn execute(&mut self, index: usize) {
        let block = &self.trace.blocks[index];
        let place = self.code.of_block[index];
        let depth = self.levels.len();
        let before = self.top().node;
        let interrupted = match is_kernel(block.start) {
            false => {
                self.enter_program(block, place);
                false
            }
            true => self.enter_kernel(block, place),
        };
        let is_new = self.levels.len() > depth || self.top().node != before;
        self.last = Some(self.steps.len());
        self.blocks.push(index);
        self.steps.push(Step {
            top: self.top().node,
            function: place.function,
            task: self.task,
            instructions: block.instructions(),
            entered: place.is_begin && is_new,
            interrupted,
            halted: block.end == BlockEnd::Halt,
        });
    }

    fn switch_to(&mut self, task: u32) {
        let top = self.top();
        let levels = std::mem::take(&mut self.levels);
        self.others.insert(self.task, levels);
        self.task = Some(task);
        match self.others.remove(&self.task) {
            Some(levels) => self.levels = levels,
            // It stands in the function that switches, as the one before it does.
            None => {
                self.forget();
                if let Some(function) = self.nodes[top.node].function {
                    self.push(function, Kind::Unknown);
                }
            }
        }
    }

    /// Programs are not looked into: whatever they do stands at the bottom.
    fn enter_program(&mut self, block: &Block, place: Place) {
        if let Some(step) = self.levels.iter().rev().find_map(Level::interrupted) {
            self.correct(step, block.start);
        }
        let bottom = self.levels[0].node;
        if bottom != PROGRAMS && self.levels.len() > 1 {
            self.nodes[bottom].function = Some(place.function);
        }
        self.levels = vec![Level {
            node: PROGRAMS,
            kind: Kind::Unknown,
        }];
        self.push(place.function, Kind::Unknown);
    }

    /// Whether by an interrupt or exception.
    fn enter_kernel(&mut self, block: &Block, place: Place) -> bool {
        let came = self.last.map(|step| self.blocks[step]);
        let comes_from_stub = came.is_some_and(|block| self.code.of_block[block].is_interrupt);
        if place.is_interrupt && !comes_from_stub {
            let step = self.last;
            self.push(place.function, Kind::Interrupt { step });
            return true;
        }
        if place.is_task_begin {
            self.forget();
            self.push(place.function, Kind::Unknown);
            return false;
        }
        let mut end = came.map_or(BlockEnd::Other, |block| self.trace.blocks[block].end);
        if end == BlockEnd::InterruptReturn {
            end = self.return_from_interrupt(block, place);
        }
        match (end, came) {
            (BlockEnd::Call, _) => {
                let from = self.last.map(|step| self.blocks[step]);
                let to = from.map_or(0, |block| self.trace.blocks[block].next());
                // An interrupt between the call and its function left the caller on top.
                self.push(place.function, Kind::Called(to));
            }
            (BlockEnd::SystemCall, _) => self.push(place.function, Kind::SystemCall),
            (BlockEnd::Return, _) => self.return_to(block.start, place.function),
            _ => self.go_on_in(place.function),
        }
        false
    }

    /// How the block that was interrupted ended: what comes now is what came then.
    fn return_from_interrupt(&mut self, block: &Block, place: Place) -> BlockEnd {
        let found = self
            .levels
            .iter()
            .rposition(|level| level.interrupted_any());
        let Some(found) = found else {
            self.learn(place.function);
            return BlockEnd::Other;
        };
        let step = self.levels[found].interrupted();
        self.levels.truncate(found);
        self.last = step;
        match step {
            Some(step) if !self.correct(step, block.start) => {
                self.trace.blocks[self.blocks[step]].end
            }
            _ => BlockEnd::Other,
        }
    }

    /// Whether an exception came before the block of the step had ended: then it goes on in the middle of it, and what is behind
    /// that was not executed the first time.
    fn correct(&mut self, step: usize, resumed: u64) -> bool {
        let is_exception = |next: usize| {
            let block = self.blocks.get(next);
            block.is_some_and(|block| self.code.of_block[*block].is_exception)
        };
        if !is_exception(step + 1) {
            return false;
        }
        let executed = self.trace.blocks[self.blocks[step]].instructions_before(resumed);
        if let Some(executed) = executed {
            self.steps[step].instructions = executed;
        }
        executed.is_some()
    }

    fn return_to(&mut self, address: u64, function: usize) {
        let known = self.levels.iter().rposition(Level::is_bound).unwrap_or(0);
        let called = |level: &Level| level.kind == Kind::Called(address);
        if let Some(found) = self.levels[known..].iter().rposition(called) {
            self.levels.truncate(known + found);
            // A function that was left by a jump has the name of what it jumped to; its caller has not.
            return self.go_on_in(function);
        }
        if known == 0 && self.levels.len() == 2 && self.top().kind == Kind::Unknown {
            return self.learn(function);
        }
        let same = |level: &Level| self.nodes[level.node].function == Some(function);
        match self.levels[known..].iter().rposition(same) {
            Some(found) => self.levels.truncate(known + found + 1),
            None if known == 0 => self.learn(function),
            None => self.go_on_in(function),
        }
    }

    /// A function that stood below all that was known.
    fn learn(&mut self, function: usize) {
        let bottom = self.levels[0].node;
        self.nodes[bottom].function = Some(function);
        let below = self.add(None, None);
        self.nodes[bottom].parent = Some(below);
        self.levels = [below, bottom]
            .map(|node| Level {
                node,
                kind: Kind::Unknown,
            })
            .to_vec();
    }

    /// The function on top, or one that it jumps to.
    fn go_on_in(&mut self, function: usize) {
        let top = self.top();
        if self.nodes[top.node].function == Some(function) {
            return;
        }
        // Below everything, nothing can be replaced.
        if self.levels.len() > 1 {
            self.levels.pop();
        }
        self.push(function, top.kind);
    }

    fn push(&mut self, function: usize, kind: Kind) {
        let below = self.top().node;
        let known = self.children.get(&(below, function)).copied();
        let node = known.unwrap_or_else(|| self.add(Some(function), Some(below)));
        self.children.insert((below, function), node);
        if self.levels.len() >= DEPTH_MAX {
            self.forget();
        }
        self.levels.push(Level { node, kind });
    }

    /// Nothing is known of what is below.
    fn forget(&mut self) {
        let node = self.add(None, None);
        let kind = Kind::Unknown;
        self.levels = vec![Level { node, kind }];
    }

    fn add(&mut self, function: Option<usize>, parent: Option<usize>) -> usize {
        self.nodes.push(Node { function, parent });
        self.nodes.len() - 1
    }

    fn top(&self) -> Level {
        *self.levels.last().expect("there is always the unknown one")
    }
}

impl Level {
    fn interrupted(&self) -> Option<usize> {
        match self.kind {
            Kind::Interrupt { step } => step,
            _ => None,
        }
    }

    fn interrupted_any(&self) -> bool {
        matches!(self.kind, Kind::Interrupt { .. })
    }

    /// A return does not leave it.
    fn is_bound(&self) -> bool {
        matches!(self.kind, Kind::Interrupt { .. } | Kind::SystemCall)
    }
}

/// How the kernel names what interrupts, exceptions and new tasks enter by: arch/x86/entry/entry_64.S and asm/idtentry.h.
const INTERRUPTS: [&str; 5] = [
    EXCEPTIONS,
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_spurious_interrupt",
    "asm_int80_emulation",
];
const EXCEPTIONS: &str = "asm_exc_";
const STUBS: &str = "irq_entries_start";
const TASK_BEGIN: &str = "ret_from_fork_asm";
/// The node below the functions of programs, whose callers are not followed.
const PROGRAMS: usize = 0;
/// Deeper than a stack of 16 KiB can be.
const DEPTH_MAX: usize = 1 << 11;
