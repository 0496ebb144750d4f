//! The time of an analysis of a thousand steps. Only optimised builds are tested: `cargo test -p rtorb-sched --release --test
//! speed`.

use std::fs;
use std::time::Duration;

use rtorb_sched::holistic::{Begins, SchedulingPolicy, Step, holistic};
use rtorb_sched::sensitivity::GrowthAnalysis;
use rtorb_sched::{SearchLimits, Task};

const COUNT: usize = 1_000;

/// Creates a thousand steps on several processors, in chains that go from processor to processor, with this utilisation; the
/// shorter the period, the more urgent.
fn steps(
    processors: usize,
    chain: usize,
    percent: u64,
    period_ns: impl Fn(usize) -> u64,
) -> Vec<Step> {
    let step = |index: usize| {
        let transaction = index / chain;
        let period_ns = period_ns(transaction);
        let share = COUNT as u64 / processors as u64;
        let worst_ns = period_ns * percent / 100 / share;
        Step {
            task: Task::periodic(period_ns, worst_ns)
                .with_deadline(period_ns * chain as u64)
                .with_blocking(10_000),
            processor: (transaction + index % chain) % processors,
            level: u32::try_from(period_ns / 1_000).expect("periods of seconds"),
            after: (!index.is_multiple_of(chain)).then(|| index - 1),
            delay_ns: if !index.is_multiple_of(chain) {
                20_000
            } else {
                0
            },
            transaction,
            begins: Begins::AtEnd,
            thread_until: None,
            may_be_overtaken: false,
        }
    };
    (0..COUNT).map(step).collect()
}

fn twenty(transaction: usize) -> u64 {
    1_000_000 * (5 + 7 * (transaction as u64 % 20))
}

fn distinct(transaction: usize) -> u64 {
    5_000_000 + 137_777 * transaction as u64
}

/// The time for which this thread has executed: on a busy host much more may pass.
fn executed() -> Duration {
    // Nanoseconds on a CPU come first (proc_pid_schedstat(5)).
    let times = fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let first = times.split_whitespace().next().expect("three numbers");
    Duration::from_nanos(first.parse().expect("a number"))
}

fn timed(what: &str, steps: &[Step], policy: SchedulingPolicy) -> Duration {
    let processors = vec![
        policy;
        steps
            .iter()
            .map(|step| step.processor + 1)
            .max()
            .unwrap_or(0)
    ];
    let begin = executed();
    let found = holistic(steps, &processors, SearchLimits::default());
    let took = executed().saturating_sub(begin);
    let bounded = found
        .iter()
        .filter(|found| found.response.bound_ns().is_some())
        .count();
    println!("{what}: {took:?}, {bounded} bounded");
    assert_eq!(bounded, COUNT, "{what}");
    took
}

fn timed_growth(what: &str, steps: &[Step]) -> Duration {
    let processors = vec![
        SchedulingPolicy::FixedPriority;
        steps
            .iter()
            .map(|step| step.processor + 1)
            .max()
            .unwrap_or(0)
    ];
    let begin = executed();
    let sensitivity = GrowthAnalysis::new(steps, &processors, SearchLimits::default());
    let each = (0..steps.len()).map(|index| sensitivity.may_grow(&[index]));
    let growing = each.filter(|growth| growth.by_ns.is_some()).count();
    let took = executed().saturating_sub(begin);
    println!("{what}: {took:?} for the growth of each, {growing} may grow");
    assert_eq!(growing, COUNT, "{what}");
    took
}

#[test]
fn a_thousand_steps() {
    let fixed = SchedulingPolicy::FixedPriority;
    let all = [
        timed(
            "10 processors, 20 periods",
            &steps(10, 1, 70, twenty),
            fixed,
        ),
        timed(
            "10 processors, 1000 periods",
            &steps(10, 1, 70, distinct),
            fixed,
        ),
        timed("1 processor, 20 periods", &steps(1, 1, 70, twenty), fixed),
        timed(
            "1 processor, 1000 periods",
            &steps(1, 1, 70, distinct),
            fixed,
        ),
        timed(
            "10 processors, chains of 4, 20 periods",
            &steps(10, 4, 50, twenty),
            fixed,
        ),
        timed(
            "10 processors, chains of 4",
            &steps(10, 4, 50, distinct),
            fixed,
        ),
        timed(
            "10 processors, by deadlines",
            &steps(10, 1, 70, distinct),
            SchedulingPolicy::EarliestDeadline,
        ),
        timed(
            "10 processors, chains of 4, by deadlines",
            &steps(10, 4, 50, distinct),
            SchedulingPolicy::EarliestDeadline,
        ),
    ];
    // Under earliest deadline first each step has many arrivals to analyse.
    let most_ms = [100, 100, 100, 100, 100, 100, 500, 500];
    let slower = if cfg!(debug_assertions) { 100 } else { 1 };
    for (took, most_ms) in all.into_iter().zip(most_ms) {
        assert!(took < slower * Duration::from_millis(most_ms), "{took:?}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "only optimised builds are judged")]
fn the_growth_of_each_of_a_thousand_steps() {
    let all = [
        timed_growth("10 processors, 20 periods", &steps(10, 1, 70, twenty)),
        timed_growth("10 processors, 1000 periods", &steps(10, 1, 70, distinct)),
        timed_growth("1 processor, 20 periods", &steps(1, 1, 70, twenty)),
        timed_growth(
            "10 processors, chains of 4, 20 periods",
            &steps(10, 4, 50, twenty),
        ),
        timed_growth("10 processors, chains of 4", &steps(10, 4, 50, distinct)),
    ];
    // Whole analyses for each step that has successors; otherwise one test of each step below.
    let most_s = [1, 1, 1, 10, 60];
    for (took, most_s) in all.into_iter().zip(most_s) {
        assert!(took < Duration::from_secs(most_s), "{took:?}");
    }
}
