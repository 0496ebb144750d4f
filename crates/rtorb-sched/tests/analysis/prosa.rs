//! Compares the bounds for one processor with those of the PyPI package `response-time-analysis`, whose analyses are the ones that
//! Prosa proves (Bozhko and Brandenburg 2020).
//!
//! The test needs a Python with the package: `RTORB_PROSA_PYTHON` names it, or it is `python3`. Without it the test is skipped.

use std::io::Write;
use std::process::{Command, Stdio};

use rtorb_sched::{Burst, Response, SearchLimits, Task, Utilisation, edf, response_times};

use crate::simulator::distributed::Chances;

/// The number of random sets.
const SETS: usize = 10_000;
/// The seed of the sets.
const SEED: u64 = 1;

/// A set, and the longest part of each task that cannot be preempted.
struct BlockingSet {
    tasks: Vec<Task>,
    sections_ns: Vec<u64>,
}

#[test]
fn bounds_agree_with_those_of_prosa() {
    let Some(python) = python() else { return };
    let mut chances = Chances(SEED);
    let sets: Vec<BlockingSet> = (0..SETS).map(|_| BlockingSet::draw(&mut chances)).collect();
    let lines: String = sets.iter().map(BlockingSet::line).collect();
    let answers = run(&python, &lines);
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), SETS, "an answer for each set");
    let mut compared = [0; 3];
    for (set, answer) in sets.iter().zip(answers) {
        let theirs: Vec<Option<u64>> = answer.split(' ').map(|text| text.parse().ok()).collect();
        let (by_level, by_deadline) = theirs.split_at(set.tasks.len());
        let ours = set.by_level();
        for (index, (ours, theirs)) in ours.iter().zip(by_level).enumerate() {
            match (ours, theirs) {
                (Response::Bounded { ns }, Some(theirs)) => {
                    assert_eq!(ns, theirs, "priorities, task {index}: {}", set.line());
                    compared[0] += 1;
                }
                (Response::Unbounded, theirs) => assert_eq!(*theirs, None, "{}", set.line()),
                // A search ended: theirs at its horizon, ours at its limit.
                _ => {}
            }
        }
        let blocked = set.sections_ns.iter().any(|&section_ns| section_ns > 1);
        for (index, (ours, theirs)) in set.by_deadline().iter().zip(by_deadline).enumerate() {
            let (Response::Bounded { ns }, Some(theirs)) = (ours, theirs) else {
                continue;
            };
            // Their blocking is by jobs that are due after the analysed one. Ours is the longest of all jobs in the busy period,
            // because a step states how long it is blocked and not by whom: it may be longer, never shorter.
            if blocked {
                assert!(ns >= theirs, "deadlines, task {index}: {}", set.line());
                compared[2] += 1;
            } else {
                assert_eq!(ns, theirs, "deadlines, task {index}: {}", set.line());
                compared[1] += 1;
            }
        }
    }
    println!(
        "bounds compared: {} by priority, {} by deadline, {} by deadline with sections",
        compared[0], compared[1], compared[2]
    );
    // Most sets are neither overloaded nor undecided.
    let enough = compared.iter().all(|&count| count > SETS);
    assert!(enough, "compared only {compared:?} bounds");
}

impl BlockingSet {
    /// Draws a set of a utilisation that is mostly below 1; half of the sets have sections, and a third of the tasks bursts.
    fn draw(chances: &mut Chances) -> Self {
        let count = 1 + chances.below(6);
        let share = 300 / count as u64 + chances.next() % (900 / count as u64);
        let blocked = chances.next().is_multiple_of(2);
        let (mut tasks, mut sections_ns) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let period_ns = 5 + chances.next() % 100;
            let jobs = [1, 1, 1, 1, 2, 3][chances.below(6)];
            let worst_ns =
                (period_ns * (chances.next() % share + 1) / 1_000 / u64::from(jobs)).max(1);
            let deadline_ns = (period_ns * (20 + chances.next() % 180) / 100).max(1);
            let gap_ns = match jobs {
                1 => 0,
                _ => chances.next() % (period_ns / u64::from(jobs) + 1),
            };
            let section_ns = if blocked {
                1 + chances.next() % worst_ns
            } else {
                1
            };
            let task = Task::periodic(period_ns, worst_ns).with_deadline(deadline_ns);
            tasks.push(task.with_burst(Burst { jobs, gap_ns }));
            sections_ns.push(section_ns);
        }
        Self { tasks, sections_ns }
    }

    /// Returns the line for the other implementation.
    fn line(&self) -> String {
        let each = self.tasks.iter().zip(&self.sections_ns);
        let each = each.map(|(task, section_ns)| {
            let Burst { jobs, gap_ns } = task.burst;
            let (period_ns, worst_ns, deadline_ns) =
                (task.period_ns, task.worst_ns, task.deadline_ns);
            format!("{period_ns} {jobs} {gap_ns} {worst_ns} {deadline_ns} {section_ns}")
        });
        format!("{}\n", each.collect::<Vec<_>>().join("; "))
    }

    /// Returns the bounds with the first task as the most urgent.
    fn by_level(&self) -> Vec<Response> {
        let levels: Vec<u32> = (0..).take(self.tasks.len()).collect();
        let below = |index: usize| self.sections_ns[index + 1..].iter().max();
        let tasks = self.tasks.iter().enumerate().map(|(index, task)| {
            // A section that began one unit earlier is the longest that still blocks.
            task.with_blocking(below(index).map_or(0, |section_ns| section_ns - 1))
        });
        response_times(&tasks.collect::<Vec<_>>(), &levels, SearchLimits::default())
    }

    fn by_deadline(&self) -> Vec<Response> {
        let later = |task: &Task| {
            let all = self.tasks.iter().zip(&self.sections_ns);
            let later = all.filter(|(other, _)| other.deadline_ns > task.deadline_ns);
            later.map(|(_, section_ns)| section_ns - 1).max()
        };
        let tasks: Vec<Task> = self
            .tasks
            .iter()
            .map(|task| task.with_blocking(later(task).unwrap_or(0)))
            .collect();
        if Utilisation::of(&tasks).exceeds_one() {
            return vec![Response::Unbounded; tasks.len()];
        }
        edf::response_times(&tasks, SearchLimits::default())
    }
}

/// Returns a Python that has the package; otherwise it says that the test is skipped.
fn python() -> Option<String> {
    let named = std::env::var("RTORB_PROSA_PYTHON").ok();
    let python = named.unwrap_or_else(|| "python3".to_owned());
    let imports = Command::new(&python)
        .args(["-c", "import response_time_analysis"])
        .stderr(Stdio::null())
        .status();
    if imports.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let why = format!(
        "skipped: {python} has no package response-time-analysis: `pip install response-time-analysis` in a virtual environment, and \
         name its Python in RTORB_PROSA_PYTHON"
    );
    let required = std::env::var_os("RTORB_REQUIRE_PEERS").is_some_and(|value| value == "1");
    assert!(!required, "required by RTORB_REQUIRE_PEERS=1: {why}");
    // One write, past the capture of the test runner: who runs the tests shall see it.
    let _ = std::io::stderr().write_all(format!("\n{why}\n").as_bytes());
    None
}

/// Returns what the script prints for these lines.
fn run(python: &str, lines: &str) -> String {
    let mut child = Command::new(python)
        .args(["-c", include_str!("prosa.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python that was just run");
    let mut input = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            input
                .write_all(lines.as_bytes())
                .expect("it reads all sets")
        });
        child.wait_with_output().expect("it ends")
    });
    assert!(output.status.success(), "the script failed");
    String::from_utf8(output.stdout).expect("numbers")
}
