//! A call through three processes has the priority of the first caller in every one of them.

use std::process::Command;
use std::thread;

use rtorb::Orb;
use rtorb::rt::Priority;
use rtorb_tests::relay::has_priorities;
use rtorb_tests::running::Running;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Relay;

/// How each process serves: every dispatch strategy that takes a propagated priority is the first, the middle or the last.
const WAYS: [[&str; 3]; 3] = [
    ["thread_per_connection", "reactive", "lanes"],
    ["lanes", "thread_per_connection", "lanes"],
    ["worker_pool", "leader_followers", "thread_per_connection"],
];

#[test]
fn the_priority_of_the_first_caller_is_that_of_every_servant() {
    if !has_priorities() {
        return;
    }
    for way in WAYS {
        let scratch = Scratch::new();
        let mut processes = Vec::new();
        let mut next: Option<String> = None;
        for (number, name) in way.iter().enumerate().rev() {
            let file = scratch.join(format!("{number}.ior"));
            let mut command = Command::new(env!("CARGO_BIN_EXE_relay"));
            command.arg(name).arg(&file).args(&next);
            let (running, reference) = Running::until_written(&mut command, &file);
            processes.push(running);
            next = Some(reference);
        }
        let first = next.expect("three processes");
        let callers: Vec<_> = [10, 30, 20]
            .map(|priority| {
                thread::spawn({
                    let first = first.clone();
                    move || check(&first, priority, way)
                })
            })
            .into();
        for caller in callers {
            caller.join().expect("every station saw the priority");
        }
    }
}

/// Calls on a thread of its own, for its priority stays with it.
fn check(first: &str, priority: i16, way: [&str; 3]) {
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(first).expect("a reference");
    let relay = Relay::unchecked_narrow(object);
    let wanted = Priority::new(priority).expect("legal");
    orb.rt_current()
        .set_the_priority(wanted)
        .expect("it is allowed");
    for _ in 0..10 {
        let seen = relay.pass_on().expect("three processes answer");
        let seen: Vec<_> = seen
            .iter()
            .map(|seen| (&*seen.who, seen.corba, seen.kernel))
            .collect();
        let expected = way.map(|name| (name, priority, priority));
        assert_eq!(seen, expected, "called with priority {priority}");
    }
}
