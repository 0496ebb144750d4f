//! `rtorb lab agent` and `--agent`: servers on another host, and what happens when one of the two goes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rtorb_results::Results;
use rtorb_tests::loopback::own_listener;
use rustix::process::Signal;

use crate::support::{Running, children, rtorb, skip, waits, within};

#[test]
fn servers_run_on_the_agent_and_results_say_so() {
    let agent = Agent::start(&[], "127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    rtorb()
        .args(["lab", "run", "orb/demux", "--glance", "--agent"])
        .arg(&agent.address)
        .arg("--out")
        .arg(folder.path())
        .assert()
        .success();
    check_results(folder.path(), "orb/demux", &agent.address);
    assert!(children(agent.running.0.id()).is_empty());
}

#[test]
fn an_agent_in_another_network_namespace_serves_and_a_silent_laboratory_loses_its_servers() {
    let Some(hosts) = Hosts::make(1) else {
        return;
    };
    let agent = hosts.agent(1);
    let folder = tempfile::tempdir().unwrap();
    let lab = |effort: &str| {
        let mut command = hosts.laboratory();
        command
            .args(["lab", "run", "orb/throughput", effort, "--agent"])
            .arg(&agent.address)
            .arg("--out")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running(command.spawn().unwrap())
    };
    let mut running = lab("--glance");
    let status = within(Duration::from_secs(120), || running.0.try_wait().unwrap());
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    check_results(folder.path(), "orb/throughput", &agent.address);

    let _running = lab("--full");
    let servers = agent.servers(3);
    hosts.cut();
    // The kernel asks after a silent peer for eight seconds.
    gone_within(Duration::from_secs(60), &servers);
}

#[test]
fn receivers_and_event_channel_have_a_host_each() {
    has_a_host_each("one", &[]);
}

// All namespaces have one clock; the other ways of knowing the time of an output are those of real hosts.

#[test]
fn hosts_compare_their_clocks_by_datagrams() {
    has_a_host_each("datagram", &["--clocks", "datagram"]);
}

#[test]
fn hosts_have_disciplined_clocks() {
    has_a_host_each("disciplined", &["--clocks", "disciplined:50us"]);
}

/// Runs edges on three hosts, with these options for the time of an output, which results call so.
fn has_a_host_each(clock: &str, options: &[&str]) {
    let Some(hosts) = Hosts::make(3) else {
        return;
    };
    let agents = [1, 2, 3].map(|host| hosts.agent(host));
    let folder = tempfile::tempdir().unwrap();
    let name = "orb/edge";
    let mut command = hosts.laboratory();
    command.args(["lab", "run", name, "--glance"]).args(options);
    for agent in &agents {
        command.args(["--agent", &agent.address]);
    }
    let done = command.arg("--out").arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {said}");
    let results = Results::read(&Results::path(folder.path(), name)).unwrap();
    assert!(results.complete, "{said}");
    assert!(results.lost.is_empty(), "{:?}", results.lost);
    assert!(results.server_host.is_some());
    assert_eq!(results.further_hosts.len(), 2);
    let wanted = [
        ("part", "call"),
        ("clock", clock),
        ("placement", "own_hosts"),
    ];
    let from_edges: Vec<_> = results.matching(&wanted).collect();
    assert!(!from_edges.is_empty(), "{name}");
    let is_possible = |min: f64| (1e3..1e9).contains(&min);
    assert!(from_edges.iter().all(|series| series.wrong == 0));
    assert!(
        from_edges
            .iter()
            .all(|series| is_possible(series.statistics.min))
    );
    let loads = from_edges
        .iter()
        .map(|series| series.labels["load"].to_string());
    assert_eq!(loads.collect::<BTreeSet<_>>().len(), 2, "{name}");
    let has_server_of = |agent: &Agent| {
        let mut processes = results.scheduling.iter();
        processes.any(|process| process.process.contains(&agent.address))
    };
    assert_eq!(agents.each_ref().map(has_server_of), [true; 3], "{clock}");
    for agent in &agents {
        assert!(children(agent.running.0.id()).is_empty());
    }
}

#[test]
fn an_agent_that_is_not_there_or_is_none_is_told_of() {
    let free = own_listener();
    let address = free.local_addr().unwrap().to_string();
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = free.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    });
    let error = refused(&address);
    assert!(error.contains("does not speak as an agent"), "{error}");
    assert_eq!(answer.join().unwrap(), "rtorb-agent 3 hello\n");
    // The listener is gone.
    let error = refused(&address);
    let command = ["rtorb lab agent --listen", "--insecure", "--tls-ca"];
    for part in [&*address, "cannot be reached"].into_iter().chain(command) {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn another_version_and_a_second_laboratory_are_refused() {
    let agent = Agent::start(&[], "127.0.0.1:0");
    let (_, answer) = agent.say("rtorb-agent 9 hello");
    assert!(answer.starts_with("rtorb-agent 3 error "), "{answer}");
    assert!(answer.contains("version 9"), "{answer}");
    let (first, answer) = agent.say("rtorb-agent 3 hello");
    assert!(answer.starts_with("rtorb-agent 3 welcome {"), "{answer}");
    let error = refused(&agent.address);
    assert!(error.contains("serves the laboratory"), "{error}");
    drop(first);
    // When the first has gone, the next is served.
    let served = || {
        let (_, answer) = agent.say("rtorb-agent 3 hello");
        answer.contains(" welcome ").then_some(())
    };
    within(Duration::from_secs(60), served).expect("the agent goes on");
}

#[test]
fn an_agent_starts_its_servers_alone_and_for_its_laboratory_alone() {
    let agent = Agent::start(&[], "127.0.0.1:0");
    let (_control, answer) = agent.say("rtorb-agent 3 hello");
    let json = answer.strip_prefix("rtorb-agent 3 welcome ").unwrap();
    let welcome: serde_json::Value = serde_json::from_str(json).unwrap();
    let session = welcome["session"].as_u64().unwrap();
    let file = tempfile::tempdir().unwrap();
    let touched = file.path().join("touched");
    let exec = format!(
        "rtorb-agent 3 server {session} 1 exec touch {}",
        touched.display()
    );
    let (_, answer) = agent.say(&exec);
    assert!(
        answer.starts_with("error ") && answer.contains("exec"),
        "{answer}"
    );
    assert!(!touched.exists());
    let role = "raw-server tcp 127.0.0.1:0";
    let (_, answer) = agent.say(&format!("rtorb-agent 3 server {} 1 {role}", session + 1));
    assert!(answer.starts_with("error "), "{answer}");
    assert!(children(agent.running.0.id()).is_empty());
    let (server, answer) = agent.say(&format!("rtorb-agent 3 server {session} 1 {role}"));
    assert!(answer.starts_with("ready 127.0.0.1:"), "{answer}");
    let servers = agent.servers(1);
    // The server ends with its own connection.
    drop(server);
    within(Duration::from_secs(60), || {
        (!runs(servers[0])).then_some(())
    })
    .expect("it ends");
}

/// The gate builds the command with the feature for this test.
#[cfg(feature = "tls")]
#[test]
fn an_agent_with_tls_serves_laboratories_with_a_certificate_alone() {
    let keys = tempfile::tempdir().unwrap();
    let path = |name: &str| keys.path().join(name).to_str().unwrap().to_owned();
    let make = |words: &[&str]| {
        rtorb().arg("keys").args(words).assert().success();
    };
    let folder = path("");
    make(&["ca", &folder]);
    make(&["server", &folder, "board", "127.0.0.1"]);
    make(&["client", &folder, "laboratory"]);
    let trusting = ["--tls-ca".to_owned(), path("ca.pem")];
    let with = |name: &str| {
        let files = [path(&format!("{name}.pem")), path(&format!("{name}.key"))];
        let [certificate, key] = files;
        let own = ["--tls-certificate".to_owned(), certificate];
        let all = own.into_iter().chain(["--tls-key".to_owned(), key]);
        all.chain(trusting.clone()).collect::<Vec<_>>()
    };
    let (board, laboratory) = (with("board"), with("laboratory"));
    let agent = Agent::start_with(&[], "127.0.0.1:0", &words(&board));

    let error = refused(&agent.address);
    assert!(error.contains("--tls-ca"), "plain: {error}");
    let error = refused_with(&agent.address, &words(&trusting));
    let reason = "does not accept this laboratory's certificate";
    assert!(error.contains(reason), "without one: {error}");
    let others = tempfile::tempdir().unwrap();
    let other = others.path().join("ca.pem");
    make(&["ca", others.path().to_str().unwrap()]);
    let mut distrusting = laboratory.clone();
    *distrusting.last_mut().unwrap() = other.to_str().unwrap().to_owned();
    let error = refused_with(&agent.address, &words(&distrusting));
    assert!(error.contains("no trusted authority"), "{error}");
    assert!(children(agent.running.0.id()).is_empty());

    let out = tempfile::tempdir().unwrap();
    rtorb()
        .args(["lab", "run", "orb/demux", "--glance", "--agent"])
        .arg(&agent.address)
        .arg("--out")
        .arg(out.path())
        .args(&laboratory)
        .assert()
        .success();
    check_results(out.path(), "orb/demux", &agent.address);
    let gone = || children(agent.running.0.id()).is_empty().then_some(());
    within(Duration::from_secs(60), gone).expect("its servers end");
}

#[test]
fn what_was_measured_before_the_agent_died_is_reported() {
    let agent = Agent::start(&[], "127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let mut lab = full_run(&agent, folder.path());
    let servers = agent.servers(4);
    // Two clients have had bursts, the second after the first one's was reported: there is something to report.
    let with_bursts = || {
        let clients = children(lab.0.id());
        let called = clients.iter().filter(|client| waits(**client) > 5_000);
        (called.count() >= 2).then_some(clients)
    };
    let clients = within(Duration::from_secs(120), with_bursts).expect("bursts are measured");
    agent.running.signal(Signal::KILL);
    assert_eq!(lab.ended(), Some(1));
    let results = Results::read(&Results::path(folder.path(), "orb/throughput")).unwrap();
    assert!(!results.complete);
    assert!(!results.series.is_empty());
    let lost = results
        .notes
        .iter()
        .any(|note| note.contains(&agent.address) && note.contains("was lost"));
    assert!(lost, "{:?}", results.notes);
    gone_within(Duration::from_secs(60), &servers);
    gone_within(Duration::from_secs(60), &clients);
}

#[test]
fn servers_of_a_killed_laboratory_end_and_the_next_one_is_served() {
    let agent = Agent::start(&[], "127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let mut lab = full_run(&agent, folder.path());
    let servers = agent.servers(4);
    lab.signal(Signal::KILL);
    lab.ended();
    gone_within(Duration::from_secs(60), &servers);
    let welcomed = || {
        let (_, answer) = agent.say("rtorb-agent 3 hello");
        answer.contains(" welcome ").then_some(())
    };
    within(Duration::from_secs(60), welcomed).expect("the agent goes on");
}

/// Three of ours and a raw one serve there.
fn full_run(agent: &Agent, folder: &Path) -> Running {
    let out = folder.to_str().unwrap();
    let name = "orb/throughput";
    Running::start(&[
        "lab",
        "run",
        name,
        "--full",
        "--agent",
        &agent.address,
        "--out",
        out,
    ])
}

/// What a run with an agent at this address fails with.
fn refused(address: &str) -> String {
    refused_with(address, &[])
}

/// The same with these options.
fn refused_with(address: &str, options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let assert = rtorb()
        .args([
            "lab",
            "run",
            "orb/demux",
            "--glance",
            "--agent",
            address,
            "--out",
        ])
        .arg(folder.path())
        .args(options)
        .assert()
        .code(1);
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

fn check_results(folder: &Path, name: &str, address: &str) {
    let results = Results::read(&Results::path(folder, name)).unwrap();
    assert!(results.complete);
    assert!(results.server_host.is_some());
    assert_eq!(results.parameters["agent"].to_string(), address);
    let ours: Vec<_> = results
        .matching(&[("orb", "rtorb"), ("transport", "tcp")])
        .collect();
    assert!(!ours.is_empty());
    assert!(results.series.iter().all(|series| series.wrong == 0));
    assert_eq!(results.matching(&[("transport", "unix")]).count(), 0);
    let there = results
        .scheduling
        .iter()
        .filter(|process| process.process.contains(address));
    assert!(there.count() >= 1, "{:?}", results.scheduling);
}

#[cfg(feature = "tls")]
fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

fn runs(id: u32) -> bool {
    // One that has ended and was not waited for is still listed.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn gone_within(timeout: Duration, processes: &[u32]) {
    let gone = || processes.iter().all(|id| !runs(*id)).then_some(());
    within(timeout, gone).unwrap_or_else(|| panic!("{processes:?} end"));
}

/// A running agent.
struct Agent {
    running: Running,
    address: String,
}

impl Agent {
    /// Starts it by `prefix` and waits until it listens.
    fn start(prefix: &[&str], listen: &str) -> Self {
        Self::start_with(prefix, listen, &[])
    }

    /// The same with these options.
    fn start_with(prefix: &[&str], listen: &str, options: &[&str]) -> Self {
        let program = assert_cmd::cargo::cargo_bin!("rtorb")
            .to_str()
            .unwrap()
            .to_owned();
        let words: Vec<&str> = prefix
            .iter()
            .copied()
            .chain([program.as_str(), "lab", "agent", "--listen", listen])
            .chain(options.iter().copied())
            .collect();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let running = Running(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("agent listens on ");
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { running, address }
    }

    /// Sends a line on a new connection, and answers that with the line that comes back.
    fn say(&self, line: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        let mut reader = BufReader::new(&stream);
        reader.read_line(&mut answer).unwrap();
        (stream, answer.trim_end().to_owned())
    }

    /// Waits until it has `count` servers, and returns them.
    fn servers(&self, count: usize) -> Vec<u32> {
        let id = self.running.0.id();
        let servers = within(Duration::from_secs(60), || {
            Some(children(id)).filter(|servers| servers.len() >= count)
        });
        servers.expect("the agent starts servers")
    }
}

/// Hosts that are network namespaces, joined by a switch; removed at the end.
struct Hosts {
    /// That of the laboratory first.
    names: Vec<String>,
}

impl Hosts {
    /// That of the laboratory and so many of agents. `None`, with the reason printed, when this process may not make any and need not.
    fn make(agents: usize) -> Option<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let (id, made) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = (0..=agents).map(|host| format!("rtorb-{id}-{made}-{host}"));
        let hosts = Self {
            names: names.collect(),
        };
        let laboratory = &hosts.names[0];
        let mut lines = vec![
            format!("netns add {laboratory}"),
            format!("-n {laboratory} link add switch type bridge"),
            format!("-n {laboratory} addr add 10.213.7.1/24 dev switch"),
            format!("-n {laboratory} link set switch up"),
            format!("-n {laboratory} link set lo up"),
        ];
        for (host, name) in hosts.names.iter().enumerate().skip(1) {
            let port = format!("port{host}");
            lines.extend([
                format!("netns add {name}"),
                format!("link add {port} netns {laboratory} type veth peer name wire netns {name}"),
                format!("-n {laboratory} link set {port} master switch up"),
                format!("-n {name} addr add {}/24 dev wire", address(host)),
                format!("-n {name} link set wire up"),
                format!("-n {name} link set lo up"),
            ]);
        }
        match lines.iter().try_for_each(|line| ip(line)) {
            Ok(()) => Some(hosts),
            Err(why) => {
                skip(&format!("network namespaces take root and iproute2: {why}"));
                None
            }
        }
    }

    /// Starts the agent of this host, counted from 1.
    fn agent(&self, host: usize) -> Agent {
        let prefix = ["ip", "netns", "exec", &self.names[host]];
        Agent::start_with(&prefix, &format!("{}:0", address(host)), &["--insecure"])
    }

    /// The command of the laboratory's host.
    fn laboratory(&self) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[0]])
            .arg(assert_cmd::cargo::cargo_bin!("rtorb"));
        command
    }

    /// Pulls the wire of the laboratory out.
    fn cut(&self) {
        ip(&format!("-n {} link set switch down", self.names[0])).unwrap();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            // It may never have been made.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// That of a host.
fn address(host: usize) -> String {
    format!("10.213.7.{}", host + 1)
}

fn ip(line: &str) -> Result<(), String> {
    let done = Command::new("ip").args(line.split(' ')).output();
    let output = done.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {line}: {}", error.trim()))
}
