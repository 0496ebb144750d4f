//! The examples of docs/how-to/asynchronous-calls.md: they run, and the page shows what they do.

use crate::{judged, measured, right_if};
use std::process::Command;

#[test]
fn calls_in_flight_are_compared_with_threads_and_with_other_frameworks() {
    let program = env!("CARGO_BIN_EXE_in-flight");
    let scratch = std::env::temp_dir().join(format!("rtorb-peer-{}", std::process::id()));
    // A framework that says how it was called. Another process writes it: a child that another test starts meanwhile would have it open for
    // writing, and the host starts no such program.
    let write = format!(
        "printf '#!/bin/sh\\necho ${{2}}1\\n' > {0} && chmod 755 {0}",
        scratch.display()
    );
    let written = Command::new("sh").args(["-c", &write]).status();
    assert!(written.is_ok_and(|it| it.success()), "it can be written");
    let peer = format!("other={}", scratch.display());
    let options = ["--json", "--calls", "2000", "--peer", &peer];
    judged(|| {
        let printed = measured(program, &options, &[]).expect("it needs no right");
        let begins = printed.starts_with("{\"in_flight\": 100, \"calls_per_s\": ");
        let mut holds = [
            ", \"blocking_calls_per_s\": ",
            ", \"heap_calls_per_call\": 0,",
        ]
        .into_iter();
        let ends = printed.ends_with(", \"other_calls_per_s\": 20001}\n");
        let is_right = begins && holds.all(|key| printed.contains(key)) && ends;
        right_if(is_right, &printed)
    });
    std::fs::remove_file(&scratch).expect("it is there");
}

#[test]
fn tasks_run_on_one_thread_without_a_runtime() {
    let program = env!("CARGO_BIN_EXE_block-on");
    let printed = measured(program, &["--best-effort"], &[]).expect("it needs no right");
    assert_eq!(printed, "the motors stand at 270 degrees together\n");
    // With its priority, where the host allows that.
    measured(program, &[], &["RLIMIT_RTPRIO", "CAP_SYS_NICE"]);
}

#[test]
fn one_thread_serves_calls_that_last_long() {
    let program = env!("CARGO_BIN_EXE_deferred-replies");
    let printed = measured(program, &[], &[]).expect("it needs no right");
    let expected = "one thread served the axes that moved to [30, 20, 10] at the same time\n";
    assert_eq!(printed, expected);
}

#[test]
fn handlers_and_pollers_get_the_replies() {
    let program = env!("CARGO_BIN_EXE_reply-handlers");
    let printed = measured(program, &[], &[]).expect("it needs no right");
    let expected = "the handler was told that the spindle is at 90, stuck at 90, at 120; the poller, that it is at 180\n";
    assert_eq!(printed, expected);
}

#[test]
fn the_page_has_the_code_of_the_examples() {
    let read = |path: &str| {
        let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("it is in the repository")
    };
    let page = read("docs/how-to/asynchronous-calls.md");
    let example = read("examples/src/bin/block-on.rs");
    for begin in ["/// Runs a future on", "/// Turns all motors"] {
        let (_, code) = example.split_once(begin).expect("the example has it");
        let (code, _) = code.split_once("\n}\n").expect("a function ends");
        assert!(page.contains(&format!("{begin}{code}\n}}\n")), "{begin}");
    }
    let example = read("examples/src/bin/deferred-replies.rs");
    for begin in ["impl AxisDeferredServant for Drive", "/// Moves all axes"] {
        let (_, code) = example.split_once(begin).expect("the example has it");
        let (code, _) = code.split_once("\n}\n").expect("an item ends");
        assert!(page.contains(&format!("{begin}{code}\n}}\n")), "{begin}");
    }
    for idl in ["examples/idl/plotter.idl", "examples/idl/axis.idl"] {
        let interface = read(idl);
        let (_, interface) = interface.split_once("\n").expect("a comment");
        assert!(page.contains(interface.trim()), "{idl}");
    }
}
