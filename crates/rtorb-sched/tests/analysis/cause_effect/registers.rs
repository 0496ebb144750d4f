//! A discrete-event simulator of tasks that read each other's registers, on preemptive processors with fixed priorities.

use std::collections::BTreeMap;

use super::super::simulator::distributed::Chances;

/// A task. Times are in one unit, any.
#[derive(Clone, Debug)]
pub(super) struct SimulatedTask {
    pub(super) processor: usize,
    /// A larger priority is more urgent; no two tasks of a processor share one.
    pub(super) priority: i16,
    /// The shortest and the longest execution.
    pub(super) execution: (u64, u64),
    /// The task that the end of a job releases.
    pub(super) calls: Option<usize>,
    /// Its arrivals, in order; empty if it is called.
    pub(super) arrivals: Vec<u64>,
    /// The longest time from an arrival to the release.
    pub(super) jitter: u64,
}

/// A cause-effect chain: the first and the last task of each stage.
#[derive(Clone, Debug)]
pub(super) struct SimulatedChain {
    pub(super) stages: Vec<(usize, usize)>,
    /// The period of each stage, with logical execution time; none with implicit communication.
    pub(super) let_periods: Option<Vec<u64>>,
}

/// What was seen of a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// The arrival and the moment of reading of each job of the first stage.
    pub(super) inputs: Vec<(u64, u64)>,
    /// The moment of each output, and the moment at which its input was read.
    pub(super) outputs: Vec<(u64, u64)>,
}

impl Observed {
    /// Returns the longest time from the read of an input to an output.
    pub(super) fn data_age(&self) -> u64 {
        let ages = self.outputs.iter().map(|(at, read)| at - read);
        ages.max().unwrap_or(0)
    }

    /// Returns the longest time from a cause to the first output that follows from an input that was read then or later. Causes are the
    /// arrivals of the first stage; or they are anywhere, the worst of them just after a read.
    pub(super) fn reaction_time(&self, cause_is_arrival: bool) -> u64 {
        let causes: Vec<(u64, u64)> = if cause_is_arrival {
            self.inputs.clone()
        } else {
            let pairs = self.inputs.windows(2);
            pairs.map(|pair| (pair[0].1, pair[1].1)).collect()
        };
        let mut outputs = self.outputs.iter().peekable();
        let mut longest = 0;
        for (cause, read) in causes {
            while outputs.next_if(|(_, of)| *of < read).is_some() {}
            match outputs.peek() {
                Some((at, _)) => longest = longest.max(at - cause),
                None => break,
            }
        }
        longest
    }
}

/// Runs the tasks until nothing is left to do. `is_at_worst` lets every job execute for as long as it may.
pub(super) fn run(
    tasks: &[SimulatedTask],
    chain: &SimulatedChain,
    chances: Chances,
    is_at_worst: bool,
) -> Observed {
    let processors = tasks.iter().map(|task| task.processor + 1).max();
    let mut run = Run {
        tasks,
        chain,
        chances,
        is_at_worst,
        coming: BTreeMap::new(),
        ready: vec![Vec::new(); processors.unwrap_or(0)],
        registers: vec![None; chain.stages.len()],
        observed: Observed::default(),
        now: 0,
        jobs: 0,
    };
    run.arrive();
    while run.step() {}
    run.observed
}

/// A value: the moment at which its input was read. None before there is an input.
type Value = Option<u64>;

#[derive(Clone, Copy, Debug)]
struct Job {
    task: usize,
    arrival: u64,
    number: u64,
    left: u64,
    has_started: bool,
    value: Value,
}

/// At one moment, writes precede arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job with logical execution time writes the register of its stage.
    Write(usize, Value),
    Arrival(usize),
    /// A job of this task that arrived then.
    Release(usize, u64),
}

struct Run<'a> {
    tasks: &'a [SimulatedTask],
    chain: &'a SimulatedChain,
    chances: Chances,
    is_at_worst: bool,
    coming: BTreeMap<u64, Vec<Event>>,
    ready: Vec<Vec<Job>>,
    registers: Vec<Value>,
    observed: Observed,
    now: u64,
    jobs: u64,
}

impl Run<'_> {
    fn arrive(&mut self) {
        for (index, task) in self.tasks.iter().enumerate() {
            let mut last = 0;
            for &arrival in &task.arrivals {
                self.at(arrival, Event::Arrival(index));
                // Jobs of a task are released in their order.
                last = last.max(arrival + self.chances.up_to(task.jitter));
                self.at(last, Event::Release(index, arrival));
            }
        }
    }

    fn at(&mut self, moment: u64, event: Event) {
        self.coming.entry(moment).or_default().push(event);
    }

    /// Executes until the next event, and does what happens then; returns false if there is none.
    fn step(&mut self) -> bool {
        let running: Vec<Option<usize>> = (0..self.ready.len())
            .map(|lane| self.dispatch(lane))
            .collect();
        let ends = running.iter().enumerate();
        let ends =
            ends.filter_map(|(lane, place)| Some(self.now + self.ready[lane][(*place)?].left));
        let Some(next) = ends.chain(self.coming.keys().next().copied()).min() else {
            return false;
        };
        let mut ended = Vec::new();
        for (lane, place) in running.into_iter().enumerate() {
            let Some(place) = place else { continue };
            self.ready[lane][place].left -= next - self.now;
            if self.ready[lane][place].left == 0 {
                ended.push(self.ready[lane].remove(place));
            }
        }
        self.now = next;
        ended.into_iter().for_each(|job| self.end(job));
        let mut events = self.coming.remove(&next).unwrap_or_default();
        events.sort();
        events.into_iter().for_each(|event| self.happen(event));
        true
    }

    /// Returns the job that runs; one that starts reads its input.
    fn dispatch(&mut self, lane: usize) -> Option<usize> {
        let urgency = |job: &Job| {
            (
                core::cmp::Reverse(self.tasks[job.task].priority),
                job.number,
            )
        };
        let jobs = &self.ready[lane];
        let place = (0..jobs.len()).min_by_key(|&place| urgency(&jobs[place]))?;
        let job = jobs[place];
        if !job.has_started {
            self.ready[lane][place].has_started = true;
            if self.chain.let_periods.is_none()
                && let Some(stage) = self.stage_of_reader(job.task)
            {
                self.ready[lane][place].value = self.read(stage, job.arrival);
            }
        }
        Some(place)
    }

    fn stage_of_reader(&self, task: usize) -> Option<usize> {
        self.chain.stages.iter().position(|stage| stage.0 == task)
    }

    fn read(&mut self, stage: usize, arrival: u64) -> Value {
        match stage.checked_sub(1) {
            Some(before) => self.registers[before],
            None => {
                self.observed.inputs.push((arrival, self.now));
                Some(self.now)
            }
        }
    }

    fn write(&mut self, stage: usize, value: Value) {
        self.registers[stage] = value;
        if stage + 1 == self.chain.stages.len() {
            let now = self.now;
            self.observed.outputs.extend(value.map(|read| (now, read)));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Write(stage, value) => self.write(stage, value),
            Event::Arrival(task) => {
                let periods = self.chain.let_periods.as_ref();
                let stage = self.stage_of_reader(task);
                if let Some((stage, period)) = stage.zip(periods).map(|(at, all)| (at, all[at])) {
                    let value = self.read(stage, self.now);
                    self.at(self.now + period, Event::Write(stage, value));
                }
            }
            Event::Release(task, arrival) => self.release(task, arrival, None),
        }
    }

    fn release(&mut self, task: usize, arrival: u64, value: Value) {
        let (least, most) = self.tasks[task].execution;
        let left = if self.is_at_worst {
            most
        } else {
            least + self.chances.up_to(most - least)
        };
        let job = Job {
            task,
            arrival,
            number: self.jobs,
            left,
            has_started: false,
            value,
        };
        self.jobs += 1;
        self.ready[self.tasks[task].processor].push(job);
    }

    fn end(&mut self, job: Job) {
        if self.chain.let_periods.is_none() {
            let written = self
                .chain
                .stages
                .iter()
                .position(|stage| stage.1 == job.task);
            if let Some(stage) = written {
                self.write(stage, job.value);
            }
        }
        if let Some(callee) = self.tasks[job.task].calls {
            self.release(callee, job.arrival, job.value);
        }
    }
}
