//! How long a thousand behaviours take to be checked, with calls to other CPUs and without:
//! `cargo run --release -p rtorb-sched --example thousand`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use rtorb_sched::model::{CheckOptions, Platform, System, check};

/// Sixteen CPUs on four nodes; with calls, every second root sends to a behaviour on another CPU.
fn text(calls: bool) -> String {
    let mut text =
        "name = \"thousand\"\nstrategy = \"dms\"\n[priorities]\nmost_urgent = 32767\n".to_owned();
    for node in 0..4 {
        let _ = write!(text, "[[node]]\nname = \"n{node}\"\ncpus = 4\n");
        for other in 0..node {
            let _ = write!(
                text,
                "[[link]]\nbetween = [\"n{node}\", \"n{other}\"]\nlatency = \"100us\"\n"
            );
        }
    }
    for cpu in 0..16 {
        let _ = write!(
            text,
            "[[component]]\nname = \"c{cpu}\"\nnode = \"n{}\"\ncpu = {}\n",
            cpu / 4,
            cpu % 4
        );
        for behaviour in 0..42 {
            let period_us =
                [5_000, 10_000, 20_000, 25_000, 40_000, 50_000, 100_000][(behaviour * 5 + cpu) % 7];
            let execution_us = period_us * (3 + (behaviour * 7 + cpu) % 17) / 1_000;
            let _ = write!(
                text,
                "[[component.behaviour]]\nname = \"root{behaviour}\"\nperiod = \"{}us\"\nexecution = \"{execution_us}us\"\n",
                period_us + 7 * behaviour
            );
            if calls && behaviour % 2 == 0 {
                let _ = writeln!(
                    text,
                    "calls = [{{ to = \"c{}.called{}\", way = \"one-way\" }}]",
                    (cpu + 5) % 16,
                    behaviour / 2
                );
            }
        }
        for behaviour in 0..21 {
            let _ = write!(
                text,
                "[[component.behaviour]]\nname = \"called{behaviour}\"\nexecution = \"{}us\"\n{}",
                20 + behaviour,
                if calls { "" } else { "period = \"30ms\"\n" }
            );
        }
    }
    text
}

fn main() {
    for calls in [false, true] {
        let interfaces = |_: &[std::path::PathBuf]| Ok(BTreeMap::new());
        let system =
            System::parse(&text(calls), Path::new(""), &interfaces).expect("that is a system");
        for sensitivity in [false, true] {
            println!(
                "calls {calls}, sensitivity {sensitivity}: {}",
                timed(&system, sensitivity)
            );
        }
    }
}

fn timed(system: &System, sensitivity: bool) -> String {
    let platforms = vec![Platform::ideal(); system.nodes.len()];
    let options = CheckOptions {
        sensitivity,
        ..CheckOptions::default()
    };
    let began = Instant::now();
    let answer = check(system, &platforms, &options).expect("it can be checked");
    let took = began.elapsed();
    let used = answer.processors.iter();
    let used = used.map(|cpu| cpu.utilisation_millionths).max();
    format!(
        "{} behaviours, {:?}, in {took:?}; the busiest CPU is used to {} millionths",
        answer.behaviours.len(),
        answer.standing,
        used.unwrap_or(0)
    )
}
