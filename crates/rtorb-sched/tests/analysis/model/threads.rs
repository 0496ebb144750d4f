//! The thread of a root begins no job before the last one has ended, also while that one waits for another CPU.

use super::{behaviour, bounds_ms, checked};
use rtorb_sched::model::{CheckReport, Standing};

/// A root on node `a` that waits for node `b`, 8 ms away: 19 ms in all. More and less urgent work is beside it, and behind a oneway call.
fn plant(arrivals: &str) -> CheckReport {
    checked(&format!(
        r#"
name = "plant"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
between = ["a", "b"]
latency = "8ms"
[[component]]
name = "c"
node = "a"
[[component.behaviour]]
name = "ask"
{arrivals}
execution = "1ms"
priority = 20
calls = [{{ to = "d.serve" }}]
[[component.behaviour]]
name = "above"
period = "100ms"
execution = "1ms"
priority = 30
[[component.behaviour]]
name = "below"
period = "100ms"
execution = "1ms"
priority = 10
[[component]]
name = "d"
node = "b"
[[component.behaviour]]
name = "serve"
execution = "1ms"
deadline = "30ms"
"#
    ))
}

const ALL: [&str; 4] = ["c.above", "c.ask", "d.serve", "c.below"];

#[test]
fn a_root_that_ends_before_its_next_job_arrives_has_bounds() {
    let report = plant("period = \"20ms\"\ndeadline = \"30ms\"");
    assert_eq!(report.standing, Standing::Holds);
    assert_eq!(
        bounds_ms(&report, &ALL),
        [Some(1), Some(20), Some(11), Some(3)]
    );
}

/// With a job each 10 ms, the thread falls behind by 8 ms and more with each. With the burst, the third job arrives at 2 ms and ends
/// at 54 ms.
#[test]
fn a_root_whose_thread_may_be_busy_has_no_bounds_and_says_why() {
    let burst = "minimum_gap = \"1ms\"\nburst = { jobs = 3, window = \"100ms\" }";
    for (arrivals, apart) in [
        ("period = \"10ms\"\ndeadline = \"30ms\"", "10ms"),
        (burst, "1ms"),
    ] {
        let report = plant(arrivals);
        assert_eq!(report.standing, Standing::NotProven, "{arrivals}");
        assert_eq!(bounds_ms(&report, &ALL), [Some(1), None, None, None]);
        for (name, begins) in [
            (
                "c.ask",
                "The thread of c.ask begins no job before the last one has ended",
            ),
            (
                "c.below",
                "The search ended undecided, perhaps because late jobs of c.ask delay it. The thread of c.ask",
            ),
        ] {
            let words = &behaviour(&report, name).explanation;
            assert!(words.starts_with(begins), "{words}");
            assert!(
                words.contains(&format!("jobs may arrive {apart} apart")),
                "{words}"
            );
            assert!(words.contains("oneway"), "{words}");
        }
        assert_eq!(
            behaviour(&report, "c.ask")
                .sensitivity
                .as_ref()
                .map(|it| it.may_grow_ns),
            Some(None)
        );
    }
}
