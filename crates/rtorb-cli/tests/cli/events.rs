//! `rtorb events`: channels, suppliers, consumers and gateways through processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{PATIENT, Running, json, rtorb, within};

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
            .args(PATIENT)
            .assert();
        json(&list.success().get_output().stdout)
    }

    /// Waits until this number of consumers is connected.
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
        command.args(PATIENT).args(options);
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

    /// Returns its exit status, its events, and its summary.
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

#[test]
fn a_watch_ends_once_nobody_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let channel = Channel::start(folder.path(), "channel.ior", &[]);
    let mut watching = Watching::start(&channel, &[]);
    channel.has_consumers(1);
    let child = watching.0.as_mut().unwrap();
    drop(child.stdout.take());
    let status = within(Duration::from_secs(60), || child.try_wait().unwrap());
    assert!(status.is_some(), "it goes on for nobody");
    channel.has_consumers(0);
}

fn push(channel: &Channel, options: &[&str]) -> Value {
    let push = rtorb()
        .args(["events", "push", channel.reference(), "--json"])
        .args(PATIENT)
        .args(options)
        .assert()
        .success();
    json(&push.get_output().stdout)
}

/// What a command prints.
fn told(arguments: &[&str]) -> String {
    let assert = rtorb().args(arguments).args(PATIENT).assert().success();
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

/// Starts a gateway. It gives up its connections once a call has taken longer than the timeout, and events are lost then.
fn gateway(from: &Channel, to: &Channel, options: &[&str]) -> Running {
    let ends = ["events", "gateway", from.reference(), to.reference()];
    Running::start(&[&ends[..], &PATIENT, options].concat())
}

#[test]
fn a_push_tells_each_lateness_with_its_unit() {
    let folder = tempfile::tempdir().unwrap();
    let channel = Channel::start(folder.path(), "channel.ior", &[]);
    let reference = channel.reference();
    let pushed = told(&[
        "events", "push", reference, "--type", "20", "--rate", "1000", "--count", "20",
    ]);
    let (_, late) = pushed.split_once(", late by ").expect("it tells it");
    for part in late.trim().split(", ") {
        let (time, _) = part.split_once(' ').expect("a time and words");
        assert!(
            time.ends_with('s') && rtorb_sched::times::parse_ns(time).is_ok(),
            "{pushed}"
        );
    }
    assert!(
        late.contains(" in the median, ") && late.trim().ends_with(" at most"),
        "{pushed}"
    );
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
    let listed = told(&["events", "list", channel.reference()]);
    let begin = "200 events received, 0 suppliers connected now; refused: 0 too large";
    assert!(listed.starts_with(begin), "{listed}");
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
    let any = serde_json::json!({"type": "string", "value": "one"});
    assert_eq!(events[0]["any"], any);
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
    let mut gateways = [gateway(&here, &there, &[]), gateway(&there, &here, &[])];
    let all = ["--type", "20", "--check-sequence", "--count", "101"];
    let at_here = Watching::start(&here, &all);
    let at_there = Watching::start(&there, &all);
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
    // The last event of each, which no gateway forwards.
    for channel in [&here, &there] {
        push(channel, &["--type", "20", "--ttl", "0"]);
    }
    for watching in [at_here, at_there] {
        let (status, events, end) = watching.ended();
        assert_eq!((status, events.len()), (Some(0), 101), "{end}");
        assert_eq!(end["sequence"]["numbered"], 100, "{end}");
    }
    for channel in [&here, &there] {
        assert_eq!(channel.statistics()["received"], 101, "none came back");
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
fn a_gateway_goes_to_another_lane_with_the_consumers_that_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let lanes = ["--lanes", "60,10", "--best-effort"];
    let from = Channel::start(folder.path(), "from.ior", &lanes);
    let to = Channel::start(folder.path(), "to.ior", &lanes);
    let mut gateway = gateway(&from, &to, &[]);
    let lane = |lane: i16| {
        let of_gateway = || {
            let consumer = from.statistics()["consumers"][0].clone();
            (consumer["lane"] == lane && consumer["connection"] == "open").then_some(())
        };
        within(Duration::from_secs(30), of_gateway).expect("the gateway is that lane's");
    };
    let watch = |rt_info| Watching::start(&to, &["--type", "20", "--rt-info", rt_info]);
    let mut watching = vec![watch("5")];
    lane(10);
    watching.push(watch("50"));
    lane(60);
    push(&from, &["--type", "20", "--count", "10"]);
    let arrived = || {
        let delivered = to.statistics()["consumers"].as_array().unwrap().clone();
        let all = delivered.iter().all(|it| it["events"]["delivered"] == 10);
        (all && delivered.len() == 2).then_some(())
    };
    within(Duration::from_secs(30), arrived).expect("both get all");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.ended(), Some(0));
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
    told(&["serve", "--lanes", "5,5"], "--lanes is 5,5");
    told(&["serve", "--queue-events", "0"], "--queue-events is 0");
    told(&["serve", "--queue-bytes", "10"], "--queue-bytes is 10");
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

#[test]
fn a_killed_consumer_costs_the_others_nothing_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    // A consumer that a busy host lets wait is neither dropped nor loses events.
    let room = ["--queue-events", "4096", "--queue-bytes", "4000000"];
    let options = ["--ping-every", "200ms", "--hang-timeout", "60s"];
    let options = [&options[..], &room].concat();
    let channel = Channel::start(folder.path(), "channel.ior", &options);
    let all = [
        "--type",
        "20",
        "--count",
        "3000",
        "--check-sequence",
        "--quiet",
    ];
    let others = [
        Watching::start(&channel, &all),
        Watching::start(&channel, &all),
    ];
    let killed = Watching::start(&channel, &["--type", "20", "--quiet"]);
    channel.has_consumers(3);
    let arguments = [
        "events",
        "push",
        channel.reference(),
        "--type",
        "20",
        "--numbered",
        "--rate",
        "1500",
        "--count",
        "3000",
    ];
    let mut pushing = Running::start(&[&arguments[..], &PATIENT].concat());
    let under_way = || (channel.statistics()["received"].as_u64().unwrap() >= 200).then_some(());
    within(Duration::from_secs(30), under_way).expect("events come");
    drop(killed);
    for other in others {
        let (status, _, end) = other.ended();
        let sequence = &end["sequence"];
        assert_eq!(
            (status, &sequence["numbered"], &sequence["lost"]),
            (Some(0), &3000.into(), &0.into()),
            "{end}"
        );
        assert_eq!(
            (&sequence["repeated"], &sequence["out_of_order"]),
            (&0.into(), &0.into())
        );
    }
    assert_eq!(pushing.ended(), Some(0));
    channel.has_consumers(0);
    assert_eq!(channel.statistics()["departed"]["dead"], 1);
    let listed = told(&["events", "list", channel.reference()]);
    assert!(listed.contains("1 dead"), "{listed}");
}

#[test]
fn a_gateway_finds_a_channel_that_was_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let there = Channel::start(folder.path(), "there.ior", &[]);
    let from_there = Watching::start(&there, &["--type", "20", "--count", "2"]);
    there.has_consumers(1);
    let mut here = Channel::start(folder.path(), "here.ior", &[]);
    let mut gateway = gateway(&here, &there, &["--ping-every", "100ms"]);
    here.has_consumers(1);
    push(&here, &["--type", "20", "--payload", "before"]);
    let one = || (there.statistics()["received"] == 1).then_some(());
    within(Duration::from_secs(30), one).expect("the event goes through");
    // Without a goodbye; the next one has another port.
    here.running.signal(Signal::KILL);
    here.running.0.wait().unwrap();
    std::fs::remove_file(&here.ior_file).unwrap();
    let again = Channel::start(folder.path(), "here.ior", &[]);
    again.has_consumers(1);
    push(&again, &["--type", "20", "--payload", "after"]);
    let (status, events, _) = from_there.ended();
    let payloads: Vec<_> = events
        .iter()
        .map(|event| event["payload"].clone())
        .collect();
    assert_eq!(status, Some(0));
    assert_eq!(payloads, ["hex:6265666f7265", "hex:6166746572"]);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.ended(), Some(0));
}

#[test]
fn consumers_have_the_priorities_of_a_schedule_and_suppliers_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scheduling");
    let file = examples.join("avionics.toml");
    let computed = folder.path().join("computed.toml");
    rtorb()
        .args(["scheduling", "compute"])
        .args([&file, Path::new("--out"), &computed])
        .assert()
        .success();
    let scheduling_ior = folder.path().join("scheduling.ior");
    let _scheduling = Running::start(&[
        "scheduling",
        "serve",
        "--file",
        file.to_str().unwrap(),
        "--ior-file",
        scheduling_ior.to_str().unwrap(),
    ]);
    let ready = || scheduling_ior.exists().then_some(());
    within(Duration::from_secs(30), ready).expect("the Scheduler becomes ready");
    // 1 and 4 are handles of sensors.sample and guidance.step: 60 and 59.
    let by_file = ["--schedule", computed.to_str().unwrap(), "--best-effort"];
    let by_service = [
        "--scheduler",
        scheduling_ior.to_str().unwrap(),
        "--lanes",
        "60,59,10",
        "--best-effort",
    ];
    for (name, options) in [("file.ior", &by_file[..]), ("service.ior", &by_service)] {
        let channel = Channel::start(folder.path(), name, options);
        let watch = |rt_info| Watching::start(&channel, &["--type", "20", "--rt-info", rt_info]);
        let _consumers = ["4", "1"].map(watch);
        channel.has_consumers(2);
        let supplier = ["push", channel.reference(), "--type", "20", "--rate", "10"];
        let _supplier = Running::start(&[&["events"][..], &supplier, &PATIENT].concat());
        let offered = || {
            let statistics = channel.statistics();
            let suppliers = statistics["connected_suppliers"]
                .as_array()
                .unwrap()
                .clone();
            (suppliers.len() == 1).then_some(statistics)
        };
        let statistics = within(Duration::from_secs(30), offered).expect("the supplier connects");
        let lanes: Vec<_> = [0, 1]
            .map(|at| statistics["consumers"][at]["lane"].clone())
            .to_vec();
        assert_eq!(lanes, [60, 59], "{name}");
        let offer = &statistics["connected_suppliers"][0]["publications"];
        assert_eq!(*offer, serde_json::json!([{"source": 1, "event_type": 20}]));
        let refused = Watching::start(&channel, &["--rt-info", "999"]);
        let mut child = refused;
        let status = within(Duration::from_secs(30), || {
            child.0.as_mut().unwrap().try_wait().unwrap()
        });
        assert_eq!(status.expect("it is refused").code(), Some(1));
    }
}

#[test]
fn a_channel_follows_the_scheduler_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scheduling");
    let text = std::fs::read_to_string(examples.join("avionics.toml")).unwrap();
    let file = folder.path().join("system.toml");
    std::fs::write(&file, &text).unwrap();
    let reference = folder.path().join("scheduling.ior");
    let reference = reference.to_str().unwrap();
    let _scheduling = Running::start(&[
        "scheduling",
        "serve",
        "--file",
        file.to_str().unwrap(),
        "--ior-file",
        reference,
    ]);
    let ready = || Path::new(reference).exists().then_some(());
    within(Duration::from_secs(30), ready).expect("the Scheduler becomes ready");
    let options = [
        "--scheduler",
        reference,
        "--lanes",
        "60,59,10",
        "--best-effort",
    ];
    let channel = Channel::start(folder.path(), "channel.ior", &options);
    // 1 and 4 are handles of sensors.sample and guidance.step.
    let watch = |rt_info| Watching::start(&channel, &["--type", "20", "--rt-info", rt_info]);
    let _guidance = watch("4");
    channel.has_consumers(1);
    let _sensors = watch("1");
    channel.has_consumers(2);
    let lanes = || {
        let statistics = channel.statistics();
        let consumers = statistics["consumers"].as_array().unwrap().iter();
        let mut lanes: Vec<_> = consumers
            .map(|one| (one["number"].as_u64(), one["lane"].as_i64().unwrap()))
            .collect();
        lanes.sort_unstable();
        lanes.into_iter().map(|(_, lane)| lane).collect::<Vec<_>>()
    };
    assert_eq!(lanes(), [59, 60]);
    // Shorter first, and then more often than the sensors.
    let shorter = text.replace("worst = \"12ms\"", "worst = \"1ms\"");
    let faster = shorter.replace("period = \"100ms\"", "period = \"25ms\"");
    for new in [&shorter, &faster] {
        std::fs::write(&file, new).unwrap();
        rtorb()
            .args(["model", "apply", "--to", reference])
            .arg(&file)
            .assert()
            .success();
    }
    let has_followed = || (lanes() == [60, 59]).then_some(());
    within(Duration::from_secs(30), has_followed).expect("guidance is the most urgent now");
}

/// The gate builds the command with the feature for this test.
#[cfg(feature = "zenoh")]
#[test]
fn members_of_a_federation_join_two_channels_with_zenoh() {
    let folder = tempfile::tempdir().unwrap();
    let here = Channel::start(folder.path(), "here.ior", &[]);
    let there = Channel::start(folder.path(), "there.ior", &[]);
    let address = rtorb_tests::loopback::own_listener().local_addr().unwrap();
    let endpoint = format!("tcp/{address}");
    let member = |channel: &Channel, name: &str, option: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command
            .args(["events", "federate", channel.reference(), "--json"])
            .args(["--prefix", "test/events", "--name", name, option, &endpoint])
            .args(PATIENT)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let members = [
        member(&here, "here", "--zenoh-listen"),
        member(&there, "there", "--zenoh-connect"),
    ];
    let mut watching = Watching::start(&there, &["--type", "20", "--count", "1"]);
    let crossed = within(Duration::from_secs(60), || {
        push(&here, &["--type", "20", "--payload", "crosses"]);
        watching.0.as_mut().unwrap().try_wait().unwrap()
    });
    assert!(crossed.is_some(), "no event crosses");
    let (status, events, _) = watching.ended();
    assert_eq!((status, events.len()), (Some(0), 1));
    assert_eq!(events[0]["payload"], "hex:63726f73736573");
    let ends = members.map(|member| {
        kill_process(Pid::from_child(&member), Signal::INT).unwrap();
        let output = member.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        json(&output.stdout)
    });
    assert!(
        ends[0]["outgoing"]["published"].as_u64() >= Some(1),
        "{}",
        ends[0]
    );
    assert!(
        ends[1]["incoming"]["delivered"].as_u64() >= Some(1),
        "{}",
        ends[1]
    );
}
