//! Scheduling policies, as threads ask for them and as the kernel gives or refuses them.

use rtorb_os::Refused;
use rtorb_os::sched::{SchedPolicy, allowed, apply_policy_to, current_policy};
use rtorb_os::thread::{ThreadConfig, spawn, thread_id};
use rustix::io::Errno;
use std::sync::mpsc::channel;

/// The policy of a new thread whose configuration asks for `policy`.
fn obtained(policy: SchedPolicy) -> Result<SchedPolicy, Refused> {
    let config = ThreadConfig {
        policy: Some(policy),
        ..ThreadConfig::default()
    };
    let thread = spawn("policy", &config, current_policy)?;
    Ok(thread.join().expect("no panic").expect("it was begun"))
}

fn deadline(runtime_ns: u64, deadline_ns: u64, period_ns: u64) -> SchedPolicy {
    SchedPolicy::Deadline {
        runtime_ns,
        deadline_ns,
        period_ns,
    }
}

#[test]
fn a_thread_gets_the_policy_of_its_configuration_or_a_refusal() {
    let policies = [
        SchedPolicy::Other,
        SchedPolicy::Idle,
        SchedPolicy::Fifo(7),
        SchedPolicy::RoundRobin(9),
        deadline(1_000_000, 5_000_000, 10_000_000),
    ];
    for policy in policies {
        match obtained(policy) {
            Ok(seen) => assert_eq!(seen, policy),
            Err(refused) => {
                assert!(policy.is_real_time());
                println!("skipped: {refused}");
            }
        }
    }
}

#[test]
fn a_thread_can_set_the_policy_of_another() {
    let ((id_sender, id), (wake, woken)) = (channel(), channel::<()>());
    let thread = spawn("another", &ThreadConfig::default(), move || {
        id_sender.send(thread_id()).expect("it is awaited");
        woken.recv().expect("it is woken");
        current_policy()
    });
    let own = current_policy();
    let applied = apply_policy_to(id.recv().expect("it runs"), SchedPolicy::Fifo(7));
    wake.send(()).expect("it waits");
    let seen = thread.expect("a thread").join().expect("no panic");
    match applied {
        Ok(()) => assert_eq!(seen, Some(SchedPolicy::Fifo(7))),
        Err(refused) => println!("skipped: {refused}"),
    }
    assert_eq!(current_policy(), own);
    for no_thread in [0, u32::MAX] {
        let refused = apply_policy_to(no_thread, SchedPolicy::Other).expect_err("no thread");
        assert_eq!(refused.errno, Errno::SRCH);
    }
}

#[test]
fn a_policy_that_no_kernel_has_is_refused_as_invalid() {
    let wrong = [
        SchedPolicy::Fifo(0),
        SchedPolicy::Fifo(100),
        SchedPolicy::RoundRobin(0),
        deadline(1_000, 5_000_000, 10_000_000),
        deadline(6_000_000, 5_000_000, 10_000_000),
        deadline(1_000_000, 5_000_000, 4_000_000),
        deadline(1_000_000, 5_000_000, 0),
        deadline(u64::MAX, u64::MAX, u64::MAX),
    ];
    for policy in wrong {
        let asked = allowed(policy).expect_err("invalid");
        assert_eq!(asked.errno, Errno::INVAL, "{policy}");
        assert_eq!(obtained(policy).expect_err("invalid"), asked);
    }
}

#[test]
fn allowed_predicts_what_a_thread_gets() {
    for policy in [
        SchedPolicy::Other,
        SchedPolicy::Idle,
        SchedPolicy::Fifo(99),
        SchedPolicy::RoundRobin(1),
    ] {
        match (allowed(policy), obtained(policy)) {
            (Err(asked), tried) => assert_eq!(tried, Err(asked)),
            (Ok(()), Err(tried)) => println!("a container's refusal: {tried}"),
            (Ok(()), Ok(seen)) => assert_eq!(seen, policy),
        }
    }
}
