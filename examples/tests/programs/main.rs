//! The programs of this package work, and the pages show them as they are.

mod closed_outputs;
mod events;
mod lanes;
mod life;
mod neighbours;
mod overload;
mod readme;
mod reservation;
mod started;

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Runs a program that measures real-time threads, and returns its output. Returns `None`, with a message, if it fails and its message
/// contains one of `refusals`: the host refuses what it needs. Such programs run one after the other, because each takes the CPU from
/// the others.
fn measured(program: &str, arguments: &[&str], refusals: &[&str]) -> Option<String> {
    static MEASURING: Mutex<()> = Mutex::new(());
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("it starts");
    if output.status.success() {
        return Some(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_refused = refusals.iter().any(|words| said.contains(words));
    assert!(is_refused, "{said}");
    eprintln!("skipped: {said}");
    None
}

/// Measures again if the result is wrong, three times at most: a busy host may disturb a measurement, and a fault makes each one wrong.
fn judged(measure: impl Fn() -> Result<(), String>) {
    let mut wrong = Vec::new();
    while wrong.len() < 3 {
        match measure() {
            Ok(()) => return,
            Err(why) => wrong.push(why),
        }
    }
    panic!("{}", wrong.join("\n"));
}

/// What is wrong with a measurement, unless `is_right`.
fn right_if(is_right: bool, what: &str) -> Result<(), String> {
    is_right.then_some(()).ok_or_else(|| what.to_owned())
}
