//! The scheduling of Zenoh's threads. It is that of the process's first session, so this is a program of its own.

use rtorb::thread::SchedPolicy;
use rtorb_os::sched::{allowed, current_policy_of};
use rtorb_os::thread::{ThreadConfig, spawn};
use rtorb_services::events::gateway::Find;
use rtorb_tests::running::until;
use rtorb_zenoh::{Federation, FederationConfig};

/// The threads of this process whose names are those of Zenoh, with their policies.
fn threads_of_zenoh() -> Vec<(String, SchedPolicy)> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let thread = |task: std::io::Result<std::fs::DirEntry>| {
        let task = task.ok()?;
        // A thread may end meanwhile.
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let id = task.file_name().to_str()?.parse().ok()?;
        let name = name.trim_end().to_owned();
        let (kind, _) = name.split_once('-')?;
        let is_of_zenoh = ["app", "acc", "tx", "rx", "net"].contains(&kind);
        is_of_zenoh.then(|| (name, current_policy_of(id)))
    };
    tasks.filter_map(thread).collect()
}

/// Starts a member that listens, and one that connects to it, from a thread with a policy.
fn start(policy: SchedPolicy) -> [Federation; 2] {
    let starter = ThreadConfig {
        policy: Some(policy),
        ..ThreadConfig::default()
    };
    let started = spawn("starter", &starter, || {
        let orb = rtorb::Orb::builder().best_effort().build().expect("an ORB");
        let address = rtorb_tests::loopback::own_listener().local_addr();
        let endpoint = format!("tcp/{}", address.expect("it has an address"));
        let mut listening = FederationConfig::new("test", "listening");
        listening.network.listen = vec![endpoint.clone()];
        let mut connecting = FederationConfig::new("test", "connecting");
        connecting.network.connect = vec![endpoint];
        [listening, connecting].map(|config| {
            // There is no channel, and the member tries again.
            let find: Find = Box::new(|| Err(rtorb::ExceptionKind::Transient.into()));
            Federation::start(&orb, find, config, |_| {}).expect("it starts")
        })
    });
    let started = started.expect("the host permits it").join();
    started.expect("it does not panic").expect("it has run")
}

#[test]
fn threads_of_zenoh_are_not_real_time_even_if_the_starter_is() {
    let fifo = SchedPolicy::Fifo(10);
    let policy = match allowed(fifo) {
        Ok(()) => fifo,
        Err(refused) => {
            eprintln!("the starter is not real-time: {refused}");
            SchedPolicy::Other
        }
    };
    let members = start(policy);
    until("the members have met", || {
        let has_met = |member: &Federation| member.statistics().members == 1;
        members.iter().all(has_met).then_some(())
    });
    let threads = threads_of_zenoh();
    for kind in ["app-", "acc-", "tx-", "rx-", "net-"] {
        let has_kind = threads.iter().any(|(name, _)| name.starts_with(kind));
        assert!(has_kind, "{kind}: {threads:?}");
    }
    let others: Vec<_> = (threads.iter())
        .filter(|(_, policy)| *policy != SchedPolicy::Other)
        .collect();
    assert!(others.is_empty(), "{others:?}");
}
