//! The thread of a root begins no job before the last one has ended, also while that one waits for another CPU.

use super::{behaviour, bounds_ms, checked, on_ideal, system};
use rtorb_sched::SearchLimits;
use rtorb_sched::model::{CheckOptions, Standing};

/// A root on node `a` that waits for node `b`, 8 ms away: 19 ms in all. More and less urgent work is beside it, and behind a oneway call.
fn plant(arrivals: &str) -> String {
    format!(
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
    )
}

const ALL: [&str; 4] = ["c.above", "c.ask", "d.serve", "c.below"];

#[test]
fn a_root_that_ends_before_its_next_job_arrives_has_bounds() {
    let report = checked(&plant("period = \"20ms\"\ndeadline = \"30ms\""));
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
        let report = checked(&plant(arrivals));
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

/// A search on a third node ends early, where nothing waits for the late root.
#[test]
fn a_late_thread_is_no_reason_on_a_cpu_that_it_does_not_delay() {
    let beside = "[[node]]\nname = \"e\"\n[[component]]\nname = \"f\"\nnode = \"e\"\n\
                  [[component.behaviour]]\nname = \"often\"\nperiod = \"10ms\"\nexecution = \"5ms\"\n\
                  [[component.behaviour]]\nname = \"long\"\nperiod = \"100ms\"\nexecution = \"40ms\"\n";
    let options = CheckOptions {
        limits: SearchLimits {
            steps_max: 1,
            ..SearchLimits::default()
        },
        ..CheckOptions::default()
    };
    let text = plant("period = \"10ms\"\ndeadline = \"30ms\"") + beside;
    let report = on_ideal(&system(&text), &options);
    let words = |name: &str| &behaviour(&report, name).explanation;
    let (ask, long) = (words("c.ask"), words("f.long"));
    assert!(ask.starts_with("The thread of c.ask"), "{ask}");
    let begins = "The search ended undecided: the response takes at least 80";
    assert!(long.starts_with(begins), "{long}");
}
