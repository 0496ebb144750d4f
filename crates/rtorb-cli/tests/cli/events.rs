//! `rtorb events`: channels, suppliers, consumers and gateways through processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Running, json, rtorb, within};

/// A channel, and the file with its reference.
struct Channel {
    running: Running,
    ior_file: PathBuf,
}

impl Channel {
    fn start(folder: &Path, name: &str, options: &[&str]) -> Self {
        let ior_file = folder.join(name);
        let mut arguments = vec!["events", "serve", "--ior-file", ior_file.to_str().unwrap()];
        arguments.extend(options);
        let running = Running::start(&arguments);
        within(Duration::from_secs(30), || ior_file.exists().then_some(()))
            .expect("the channel becomes ready");
        Self { running, ior_file }
    }

    fn reference(&self) -> &str {
        self.ior_file.to_str().unwrap()
    }

    fn statistics(&self) -> Value {
        let list = rtorb()
            .args(["events", "list", self.reference(), "--json"])
            .assert();
        json(&list.success().get_output().stdout)
    }

    /// Waits until so many consumers are connected.
    fn has_consumers(&self, count: usize) {
        let connected = || {
            let consumers = self.statistics()["consumers"].as_array().unwrap().clone();
            (consumers.len() == count).then_some(())
        };
        within(Duration::from_secs(30), connected).expect("the consumers connect");
    }
}

/// A watching consumer, whose lines are read when it has ended.
struct Watching(Option<Child>);

impl Watching {
    fn start(channel: &Channel, options: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command.args(["events", "watch", channel.reference(), "--json"]);
        command.args(options);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Self(Some(command.spawn().unwrap()))
    }

    fn interrupt(&self) {
        let child = self.0.as_ref().unwrap();
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    }

    /// Its exit status, its events, and what it said at the end.
    fn ended(mut self) -> (Option<i32>, Vec<Value>, Value) {
        let mut child = self.0.take().unwrap();
        let status = within(Duration::from_secs(60), || child.try_wait().unwrap());
        if status.is_none() {
            let _ = child.kill();
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<Value> = text.lines().map(|line| json(line.as_bytes())).collect();
        let end = lines.pop().expect("it says at the end what it saw");
        (
            status.expect("it ends in time").code(),
            lines,
            end["end"].clone(),
        )
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn push(channel: &Channel, options: &[&str]) -> Value {
    let push = rtorb()
        .args(["events", "push", channel.reference(), "--json"])
        .args(options)
        .assert()
        .success();
    json(&push.get_output().stdout)
}

#[test]
fn numbered_events_arrive_once_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut channel = Channel::start(folder.path(), "channel.ior", &[]);
    let count = ["--type", "20", "--count", "200", "--check-sequence"];
    let watching = Watching::start(&channel, &count);
    channel.has_consumers(1);
    let pushed = push(
        &channel,
        &[
            "--type",
            "20",
            "--numbered",
            "--rate",
            "1000",
            "--count",
            "200",
        ],
    );
    assert_eq!(pushed["events"], 200);
    assert!(pushed["late_ns"]["p50"].is_number());
    let (status, events, end) = watching.ended();
    assert_eq!((status, events.len()), (Some(0), 200), "{end}");
    assert_eq!(
        (&end["sequence"]["numbered"], &end["sequence"]["lost"]),
        (&200.into(), &0.into())
    );
    channel.running.signal(Signal::TERM);
    assert_eq!(channel.running.ended(), Some(0));
}

#[test]
fn a_consumer_sees_what_it_asked_for_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let channel = Channel::start(folder.path(), "channel.ior", &[]);
    let options = ["--type", "20", "--source", "2", "--count", "1"];
    let watching = Watching::start(&channel, &options);
    channel.has_consumers(1);
    push(
        &channel,
        &["--type", "21", "--source", "2", "--payload", "other type"],
    );
    push(
        &channel,
        &["--type", "20", "--source", "1", "--payload", "other source"],
    );
    push(
        &channel,
        &[
            "--type",
            "20",
            "--source",
            "2",
            "--payload",
            "this",
            "--any",
            "one",
        ],
    );
    let (status, events, _) = watching.ended();
    assert_eq!((status, events.len()), (Some(0), 1));
    assert_eq!(events[0]["payload"], "hex:74686973");
    assert_eq!(events[0]["any"], "\"one\"");
    assert_eq!(
        (&events[0]["type"], &events[0]["source"]),
        (&20.into(), &2.into())
    );
}

#[test]
fn an_interrupted_consumer_is_disconnected_and_a_killed_one_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let channel = Channel::start(folder.path(), "channel.ior", &["--ping-every", "200ms"]);
    let (first, second) = (
        Watching::start(&channel, &[]),
        Watching::start(&channel, &[]),
    );
    channel.has_consumers(2);
    first.interrupt();
    let (status, _, end) = first.ended();
    assert_eq!((status, &end["disconnected"]), (Some(0), &false.into()));
    channel.has_consumers(1);
    assert_eq!(channel.statistics()["departed"]["disconnected"], 1);
    drop(second);
    channel.has_consumers(0);
    assert_eq!(channel.statistics()["departed"]["dead"], 1);
}

#[test]
fn a_consumer_hears_that_its_channel_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut channel = Channel::start(folder.path(), "channel.ior", &[]);
    let watching = Watching::start(&channel, &[]);
    channel.has_consumers(1);
    channel.running.signal(Signal::TERM);
    assert_eq!(channel.running.ended(), Some(0));
    let (status, _, end) = watching.ended();
    assert_eq!((status, &end["disconnected"]), (Some(1), &true.into()));
}

#[test]
fn two_gateways_join_two_channels_and_events_do_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let here = Channel::start(folder.path(), "here.ior", &[]);
    let there = Channel::start(folder.path(), "there.ior", &[]);
    let mut gateways = [
        Running::start(&["events", "gateway", here.reference(), there.reference()]),
        Running::start(&["events", "gateway", there.reference(), here.reference()]),
    ];
    let at_here = Watching::start(&here, &["--type", "20", "--check-sequence"]);
    let at_there = Watching::start(&there, &["--type", "20", "--check-sequence"]);
    // At each channel the consumer, and the gateway on behalf of the other one.
    here.has_consumers(2);
    there.has_consumers(2);
    for channel in [&here, &there] {
        push(
            channel,
            &["--type", "20", "--numbered", "--count", "50", "--ttl", "1"],
        );
    }
    let arrived = |channel: &Channel| {
        let statistics = channel.statistics();
        (statistics["received"].as_u64().unwrap() >= 100).then_some(())
    };
    for channel in [&here, &there] {
        within(Duration::from_secs(30), || arrived(channel)).expect("events come from both sides");
    }
    // What would come back would be on its way by now.
    std::thread::sleep(Duration::from_millis(300));
    for watching in [at_here, at_there] {
        watching.interrupt();
        let (status, events, end) = watching.ended();
        assert_eq!((status, events.len()), (Some(0), 100), "{end}");
    }
    for channel in [&here, &there] {
        assert_eq!(channel.statistics()["received"], 100, "none came back");
    }
    // Nobody wants anything any more, so the gateways are no consumers.
    here.has_consumers(0);
    there.has_consumers(0);
    for gateway in &mut gateways {
        gateway.signal(Signal::TERM);
        assert_eq!(gateway.ended(), Some(0));
    }
}

#[test]
fn misuse_is_told_with_what_is_known() {
    let told = |arguments: &[&str], word: &str| {
        let assert = rtorb().arg("events").args(arguments).assert().code(2);
        let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(text.contains(word), "{arguments:?}: {text}");
    };
    told(&["serve", "--lanes", "50,fast"], "50,30,10");
    told(&["serve", "--lanes", "10,30"], "most urgent first");
    told(&["serve", "--when-full", "drop"], "discard_oldest");
    told(&["serve", "--queue-events", "0"], "queue_events");
    told(&["push", "IOR:00", "--type", "3"], "16");
    told(
        &["push", "IOR:00", "--type", "20", "--payload", "hex:0"],
        "two digits",
    );
    told(
        &["push", "IOR:00", "--type", "20", "--rate", "0"],
        "events a second",
    );
    told(
        &["watch", "IOR:00", "--all-of", "--deadline", "1s"],
        "--deadline",
    );
}
