//! Threads as the kernel lists them: their names, policies, priorities and CPUs are what the configuration says.

use rtorb_os::sched::{SchedPolicy, allowed, current_affinity};
use rtorb_os::thread::{ThreadConfig, spawn, thread_id};
use std::fs;
use std::sync::mpsc;

#[test]
fn each_thread_has_the_name_policy_priority_and_cpu_of_its_configuration() {
    let last_cpu = current_affinity()
        .last()
        .copied()
        .expect("it runs somewhere");
    let rows = [
        ("plain", None),
        ("low-lane", Some(SchedPolicy::Fifo(10))),
        ("high-lane", Some(SchedPolicy::Fifo(40))),
        ("in-turn", Some(SchedPolicy::RoundRobin(20))),
        ("when-idle", Some(SchedPolicy::Idle)),
        // The kernel keeps 15 octets.
        ("a-name-of-more-than-15", Some(SchedPolicy::Other)),
    ];
    for (name, policy) in rows {
        if let Some(refused) = policy.and_then(|policy| allowed(policy).err()) {
            println!("skipped {name}: {refused}");
            continue;
        }
        let config = ThreadConfig {
            policy,
            affinity: vec![last_cpu],
            stack_bytes: Some(256 << 10),
        };
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let work = move || {
            tell.send(thread_id()).expect("it is waited for");
            let _ = ended.recv();
        };
        let thread = spawn(name, &config, work).expect("allowed");
        let listed = Listed::of(told.recv().expect("it began"));
        drop(end);
        thread.join().expect("no panic").expect("it was begun");

        let expected = policy.unwrap_or(SchedPolicy::Other);
        assert_eq!(listed.name, name[..name.len().min(15)]);
        assert_eq!(listed.policy, expected.name());
        assert_eq!(listed.priority, expected.priority());
        assert_eq!(listed.cpus, last_cpu.to_string());
    }
}

/// A thread of this process in /proc (proc(5)).
struct Listed {
    name: String,
    policy: &'static str,
    priority: u8,
    cpus: String,
}

impl Listed {
    fn of(thread: u32) -> Self {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).expect("it is there")
        };
        let stat = read("stat");
        // The name is in brackets and may hold anything; what follows begins with field 3.
        let fields: Vec<_> = stat
            .rsplit(')')
            .next()
            .expect("one")
            .split_whitespace()
            .collect();
        let policy = match fields[41 - 3] {
            "0" => "SCHED_OTHER",
            "1" => "SCHED_FIFO",
            "2" => "SCHED_RR",
            "5" => "SCHED_IDLE",
            other => panic!("policy {other}"),
        };
        let status = read("status");
        let cpus = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Self {
            name: read("comm").trim_end().to_owned(),
            policy,
            priority: fields[40 - 3].parse().expect("a number"),
            cpus: cpus.expect("told").trim().to_owned(),
        }
    }
}
