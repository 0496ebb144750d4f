//! Four hosts, which are network namespaces, with a channel each, and a partition: each event is delivered to each channel that wants it, or
//! counted there as lost.
//!
//! The threads of Zenoh are those of a process, and a socket is in the network of the thread that opens it, so each host is a process: this
//! program itself. Network namespaces take root and iproute2.
#![forbid(unsafe_code)]

#[path = "federation/setup.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod setup;

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rtorb_services::events::client::{Arrival, Received};
use rtorb_services::events::subscribe::Interest;
use rtorb_tests::running::until;
use rtorb_tests::skip;
use rtorb_zenoh::FederationCongestion;

use setup::{Member, Plant, TYPE, config, event, key};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["host", number, endpoint] => serve(number.parse().expect("a number"), endpoint),
        _ => rtorb_tests::alone::run(
            "after_a_partition_each_event_was_delivered_or_is_counted_as_lost",
            after_a_partition_each_event_was_delivered_or_is_counted_as_lost,
        ),
    }
}

/// The number of hosts.
const HOSTS: usize = 4;

/// What a host says about itself.
#[derive(Clone, Copy, Debug)]
struct HostState {
    members: u64,
    /// Events that waited for this host's member or were passed to Zenoh: all that the supplier has pushed, in the end.
    received: u64,
    published: u64,
    delivered: u64,
    lost: u64,
    unsubscribed: u64,
    discarded: u64,
    waiting: u64,
    /// Events that the consumer got from the supplier of each host.
    consumed: [u64; HOSTS],
}

/// A host: a channel, its member, a consumer and a supplier. It does what the lines of its input say.
fn serve(number: usize, endpoint: &str) {
    let plant = Plant::start();
    let mut config = config(&format!("host{number}"));
    config.network.lease = Duration::from_secs(1);
    config.congestion = FederationCongestion::Drop(Duration::from_millis(1));
    let network = &mut config.network;
    if number == 0 {
        network.listen = vec![endpoint.to_owned()];
    } else {
        network.connect = vec![endpoint.to_owned()];
    }
    let member = Member::start(&plant, config);
    let consumer = plant.consumer(Interest::event_type(TYPE));
    let supplier = plant.supplier();
    let mut consumed = [0; HOSTS];
    for line in stdin().lines() {
        let line = line.expect("its starter writes text");
        if let Some(count) = line.strip_prefix("push ") {
            for _ in 0..count.parse().expect("a count") {
                let event = event(key(number as i32 + 1), 0);
                supplier.push(&[event]).expect("it is sent");
            }
            supplier.arrived().expect("the channel has them");
        }
        let mut arrival = Arrival::default();
        while consumer.next(&mut arrival, 0) == Received::Event {
            consumed[arrival.event.header.source as usize - 1] += 1;
        }
        let counts = member.statistics();
        let (outgoing, incoming) = (counts.outgoing, counts.incoming);
        let [one, two, three, four] = consumed;
        writeln!(
            stdout(),
            "{} {} {} {} {} {} {} {} {one} {two} {three} {four}",
            counts.members,
            outgoing.received - outgoing.looped_back,
            outgoing.published,
            incoming.delivered,
            incoming.lost,
            incoming.unsubscribed,
            incoming.discarded(),
            incoming.waiting,
        )
        .expect("its starter reads");
    }
}

/// A host that runs; killed at the end.
struct Host {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(network: &str, number: usize, endpoint: &str) -> Self {
        let own = std::env::current_exe().expect("it has a path");
        let number = number.to_string();
        let mut child = Command::new("ip")
            .args(["netns", "exec", network])
            .arg(own)
            .args(["host", &number, endpoint])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        }
    }

    fn push(&mut self, count: u64) -> HostState {
        writeln!(self.input, "push {count}").expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes text");
        let numbers = line
            .split_whitespace()
            .map(|word| word.parse().expect("numbers"));
        let numbers: Vec<u64> = numbers.collect();
        let [
            members,
            received,
            published,
            delivered,
            lost,
            unsubscribed,
            discarded,
            waiting,
        ] = numbers[..8].try_into().expect("it wrote so many");
        HostState {
            members,
            received,
            published,
            delivered,
            lost,
            unsubscribed,
            discarded,
            waiting,
            consumed: numbers[8..].try_into().expect("one for each host"),
        }
    }

    fn state(&mut self) -> HostState {
        self.push(0)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Ended already, now and then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Networks joined by a switch, which is in one more; removed at the end.
struct Networks {
    /// That of the switch last.
    names: Vec<String>,
}

impl Networks {
    /// `None`, with the reason printed, if this process may not make any and need not.
    fn make() -> Option<Self> {
        let id = std::process::id();
        let names = (0..=HOSTS).map(|host| format!("rtorb-zenoh-{id}-{host}"));
        let networks = Self {
            names: names.collect(),
        };
        let switch = &networks.names[HOSTS];
        let mut lines = vec![
            format!("netns add {switch}"),
            format!("-n {switch} link add switch type bridge"),
            format!("-n {switch} link set switch up"),
        ];
        for (host, name) in networks.names[..HOSTS].iter().enumerate() {
            lines.extend([
                format!("netns add {name}"),
                format!("link add port{host} netns {switch} type veth peer name wire netns {name}"),
                format!("-n {switch} link set port{host} master switch up"),
                format!("-n {name} addr add {}/24 dev wire", address(host)),
                format!("-n {name} link set wire up"),
                format!("-n {name} link set lo up"),
            ]);
        }
        match lines.iter().try_for_each(|line| ip(line)) {
            Ok(()) => Some(networks),
            Err(why) => {
                skip(&format!("network namespaces take root and iproute2: {why}"));
                None
            }
        }
    }

    /// Pulls the wire of a host out, or plugs it in.
    fn set_port(&self, host: usize, state: &str) {
        let switch = &self.names[HOSTS];
        ip(&format!("-n {switch} link set port{host} {state}")).expect("it is there");
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for name in &self.names {
            // It may never have been made.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn address(host: usize) -> String {
    format!("10.213.8.{}", host + 1)
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

fn after_a_partition_each_event_was_delivered_or_is_counted_as_lost() {
    let Some(networks) = Networks::make() else {
        return;
    };
    let endpoint = format!("tcp/{}:7447", address(0));
    let start = |host: usize| Host::start(&networks.names[host], host, &endpoint);
    let mut hosts: Vec<Host> = (0..HOSTS).map(start).collect();
    // Each host has found each other one.
    until("an event crosses from each host to each", || {
        let states = hosts.iter_mut().map(|host| host.push(1));
        let has_all = |state: &HostState| state.consumed.iter().all(|&count| count > 0);
        let all: Vec<bool> = states.map(|state| has_all(&state)).collect();
        all.iter().all(|&has_all| has_all).then_some(())
    });
    let push = |hosts: &mut [Host], count| {
        for host in hosts {
            host.push(count);
        }
    };
    push(&mut hosts, 100);
    let last = HOSTS - 1;
    networks.set_port(last, "down");
    until("the last host is missed", || {
        let are_left = hosts[..last]
            .iter_mut()
            .all(|host| host.state().members == 2);
        (are_left && hosts[last].state().members == 0).then_some(())
    });
    push(&mut hosts, 200);
    networks.set_port(last, "up");
    until("the last host is back", || {
        let mut states = hosts.iter_mut().map(Host::state);
        states.all(|state| state.members == 3).then_some(())
    });
    push(&mut hosts, 100);
    let states = until("each event has an account", || {
        let states: Vec<HostState> = hosts.iter_mut().map(Host::state).collect();
        is_accounted(&states).then_some(states)
    });
    for (host, state) in states.iter().enumerate() {
        println!("host {host}: {state:?}");
        let at_least = if host == last { 3 * 200 } else { 200 };
        assert!(
            state.lost >= at_least,
            "nothing crosses a cut wire: {state:?}"
        );
        let from_others: u64 = state.consumed.iter().sum::<u64>() - state.consumed[host];
        assert_eq!(
            from_others, state.delivered,
            "the consumer has what was delivered"
        );
        assert_eq!(
            state.consumed[host], state.received,
            "its own channel loses nothing"
        );
    }
}

/// True if each host has an account of each event that another one has published.
fn is_accounted(states: &[HostState]) -> bool {
    let published: u64 = states.iter().map(|state| state.published).sum();
    let is_quiet = |state: &HostState| {
        let consumed: u64 = state.consumed.iter().sum();
        state.waiting == 0 && consumed == state.delivered + state.received
    };
    let has_all = |state: &HostState| {
        let account = state.delivered + state.lost + state.unsubscribed + state.discarded;
        account == published - state.published
    };
    states.iter().all(|state| is_quiet(state) && has_all(state))
}
