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
        let interrupted = if !is_kernel(block.start) {
            self.enter_program(block, place);
            false
        } else {
            self.enter_kernel(block, place)
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

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T outer
ffffffff81000100 T middle
ffffffff81000200 T inner
ffffffff81000300 T __schedule
ffffffff81000400 T __switch_to_asm
ffffffff81000500 T __switch_to
ffffffff81000600 T entry_SYSCALL_64
ffffffff81000700 T asm_sysvec_apic_timer_interrupt
ffffffff81000800 T asm_exc_page_fault
ffffffff81000900 T ret_from_fork_asm
ffffffff81000a00 T irq_entries_start
ffffffff81000b00 T asm_common_interrupt
";
    const OUTER: u64 = 0xffff_ffff_8100_0000;
    const MIDDLE: u64 = OUTER + 0x100;
    const INNER: u64 = OUTER + 0x200;
    const SCHEDULE: u64 = OUTER + 0x300;
    const SWITCH_ASM: u64 = OUTER + 0x400;
    const SWITCH: u64 = OUTER + 0x500;
    const SYSTEM_CALL: u64 = OUTER + 0x600;
    const TIMER: u64 = OUTER + 0x700;
    const PAGE_FAULT: u64 = OUTER + 0x800;
    const NEW_TASK: u64 = OUTER + 0x900;
    const STUB: u64 = OUTER + 0xa08;
    const DEVICE: u64 = OUTER + 0xb00;
    const PROGRAM: u64 = 0x40_0000;

    /// Something that happens: a block of two instructions of two octets each, or a switch.
    enum Happens {
        Block(u64, BlockEnd),
        Task(u32),
    }
    use BlockEnd::{Call, InterruptReturn, Other, Return, SystemCall, SystemReturn};
    use Happens::{Block as At, Task};

    fn stacks(happens: &[Happens]) -> CallStacks {
        let mut trace = Trace::default();
        for one in happens {
            trace.events.push(match one {
                Task(task) => Event::SwitchedTo(*task),
                At(start, end) => {
                    trace.blocks.push(Block {
                        start: *start,
                        end: *end,
                        sizes: [2, 2].into(),
                    });
                    Event::Executed(trace.blocks.len() as u32 - 1)
                }
            });
        }
        CallStacks::of(&trace, &Symbols::of_kernel(KALLSYMS))
    }

    /// Each step's functions, the outermost first.
    fn told(stacks: &CallStacks) -> Vec<String> {
        let steps = stacks.steps.iter();
        let step = |step: &Step| {
            let mut names: Vec<&str> = stacks.stack(step.top).map(|at| stacks.name(at)).collect();
            names.reverse();
            names.join(" ")
        };
        steps.map(step).collect()
    }

    #[test]
    fn a_call_stands_above_its_caller_until_it_returns() {
        let found = stacks(&[
            At(OUTER, Call),
            At(MIDDLE, Call),
            At(INNER, Return),
            At(MIDDLE + 4, Return),
            At(OUTER + 4, Other),
        ]);
        let expected = [
            "outer",
            "outer middle",
            "outer middle inner",
            "outer middle",
            "outer",
        ];
        assert_eq!(told(&found), expected);
        let entered: Vec<bool> = found.steps.iter().map(|step| step.entered).collect();
        assert_eq!(entered, [true, true, true, false, false]);
    }

    #[test]
    fn what_was_called_before_the_trace_is_learnt_from_returns() {
        let found = stacks(&[
            At(INNER + 8, Return),
            At(MIDDLE + 8, Call),
            At(INNER, Return),
            At(MIDDLE + 12, Return),
            At(OUTER + 8, Other),
        ]);
        let expected = [
            "outer middle inner",
            "outer middle",
            "outer middle inner",
            "outer middle",
            "outer",
        ];
        assert_eq!(told(&found), expected);
    }

    #[test]
    fn a_function_that_is_jumped_to_stands_where_the_other_stood() {
        let found = stacks(&[
            At(OUTER, Call),
            At(MIDDLE, Other),
            At(INNER, Return),
            At(OUTER + 4, Other),
        ]);
        assert_eq!(
            told(&found),
            ["outer", "outer middle", "outer inner", "outer"]
        );
    }

    #[test]
    fn a_return_past_several_callers_leaves_them_all() {
        let found = stacks(&[
            At(OUTER, Call),
            At(MIDDLE, Call),
            At(INNER, Return),
            At(OUTER + 4, Other),
        ]);
        assert_eq!(told(&found)[3], "outer");
    }

    #[test]
    fn an_interrupt_stands_above_what_it_came_into_and_hides_no_call() {
        let found = stacks(&[
            At(OUTER, Call),
            // Between the call and its function.
            At(TIMER, Call),
            At(INNER, Return),
            At(TIMER + 4, InterruptReturn),
            At(MIDDLE, Return),
            At(OUTER + 4, Other),
        ]);
        let timer = "outer asm_sysvec_apic_timer_interrupt";
        let expected = [
            "outer",
            timer,
            "outer asm_sysvec_apic_timer_interrupt inner",
            timer,
            "outer middle",
            "outer",
        ];
        assert_eq!(told(&found), expected);
        let interrupts = found.steps.iter().filter(|step| step.interrupted).count();
        assert_eq!(interrupts, 1);
    }

    #[test]
    fn a_device_interrupts_once_and_not_again_behind_its_stub() {
        let found = stacks(&[
            At(OUTER, Other),
            At(STUB, Other),
            At(DEVICE, InterruptReturn),
            At(OUTER + 4, Other),
        ]);
        assert_eq!(told(&found)[2..], ["outer asm_common_interrupt", "outer"]);
        let interrupts = found.steps.iter().filter(|step| step.interrupted).count();
        assert_eq!(interrupts, 1);
    }

    #[test]
    fn what_an_exception_kept_from_being_executed_is_not_counted_twice() {
        let found = stacks(&[
            At(OUTER, Call),
            At(PAGE_FAULT, InterruptReturn),
            // The second instruction, again.
            At(OUTER + 2, Call),
            At(MIDDLE, Return),
        ]);
        let counts: Vec<u64> = found.steps.iter().map(|step| step.instructions).collect();
        assert_eq!(counts, [1, 2, 2, 2]);
        assert_eq!(told(&found)[2..], ["outer", "outer middle"]);
    }

    #[test]
    fn a_program_is_below_the_system_calls_that_it_makes() {
        let found = stacks(&[
            At(PROGRAM, SystemCall),
            At(SYSTEM_CALL, Call),
            At(INNER, Return),
            At(SYSTEM_CALL + 4, SystemReturn),
            At(PROGRAM + 4, Other),
            At(PAGE_FAULT, InterruptReturn),
            At(PROGRAM + 6, Other),
        ]);
        let expected = [
            "[user]",
            "[user] entry_SYSCALL_64",
            "[user] entry_SYSCALL_64 inner",
            "[user] entry_SYSCALL_64",
            "[user]",
            "[user] asm_exc_page_fault",
            "[user]",
        ];
        assert_eq!(told(&found), expected);
        assert_eq!(found.steps[4].instructions, 1);
    }

    #[test]
    fn every_task_has_its_own_stack_and_goes_on_in_it() {
        let switch = |task| [At(SCHEDULE, Call), At(SWITCH_ASM, Other), Task(task)];
        let goes_on = || [At(SWITCH, Return), At(SCHEDULE + 4, Return)];
        let mut happens = vec![Task(0), At(OUTER, Call)];
        happens.extend(switch(1));
        happens.extend(goes_on());
        // The second task had been called from elsewhere.
        happens.push(At(MIDDLE + 4, Call));
        happens.extend(switch(0));
        happens.extend(goes_on());
        happens.push(At(OUTER + 4, Other));
        let found = stacks(&happens);
        let expected = [
            "outer",
            "outer __schedule",
            "outer __schedule __switch_to_asm",
            "middle __schedule __switch_to",
            "middle __schedule",
            "middle",
            "middle __schedule",
            "middle __schedule __switch_to_asm",
            "outer __schedule __switch_to",
            "outer __schedule",
            "outer",
        ];
        assert_eq!(told(&found), expected);
        let tasks: Vec<Option<u32>> = found.steps.iter().map(|step| step.task).collect();
        assert_eq!(tasks[2..4], [Some(0), Some(1)]);
    }

    #[test]
    fn a_new_task_begins_with_nothing_below() {
        let found = stacks(&[
            At(OUTER, Call),
            At(SWITCH_ASM, Other),
            Task(7),
            At(SWITCH, Return),
            At(NEW_TASK, Call),
            At(INNER, Other),
        ]);
        assert_eq!(
            told(&found)[3..],
            ["ret_from_fork_asm", "ret_from_fork_asm inner"]
        );
    }
}
