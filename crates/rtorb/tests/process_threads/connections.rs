//! Which connections a client thread keeps, shares and gives up.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rtorb::{CompletionStatus, ConnectionStrategy, Limits, Orb, OrbBuilder, WaitStrategy};
use rtorb_tests::fake::{FakeServer, Peer, yes};
use rtorb_tests::ours::{Ours, activate_readable};
use rtorb_tests::running::until;
use rtorb_tests::stubs::exchange::Desk;

pub(crate) fn a_reference_that_is_made_anew_for_each_call_uses_the_connection_that_is_there() {
    let (server, counts) = counting();
    let orb = orb(Orb::builder());
    for _ in 0..5 {
        let object = orb.string_to_object(&server.reference()).expect("legal");
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
    }
    assert_eq!(counts.opened.load(Ordering::SeqCst), 1);
}

pub(crate) fn a_reference_without_code_sets_does_not_decide_for_one_that_has_them() {
    let ours = Ours::serve();
    activate_readable(&ours.orb, "CodeSets");
    let orb = orb(Orb::builder());
    let plain = format!("corbaloc::1.2@{}/CodeSets/desk", ours.address());
    let negotiated = ours.text(ours.desk.as_object());
    for (text, word) in [
        (&plain, "caf\u{e9}"),
        (&negotiated, "\u{65e5}\u{672c}"),
        (&plain, "caf\u{e9}"),
    ] {
        let desk = Desk::narrow(&orb.string_to_object(text).expect("legal")).expect("a Desk");
        assert_eq!(desk.echo_string(word).as_deref(), Ok(word), "{text}");
    }
}

pub(crate) fn an_orb_ends_with_its_last_reference_whatever_connections_its_threads_have() {
    let (server, counts) = counting();
    for _ in 0..10 {
        let object = orb(Orb::builder()).string_to_object(&server.reference());
        assert_eq!(object.expect("legal").is_a("IDL:Any:1.0"), Ok(true));
    }
    until("the threads of ORBs that are gone have ended", || {
        (watchdogs().len() <= 1).then_some(())
    });
    // The last one stays until this thread opens another connection or ends.
    until("abandoned connections are closed", || {
        (counts.ended.load(Ordering::SeqCst) == 9).then_some(())
    });
}

pub(crate) fn a_connections_own_thread_ends_with_it() {
    let wait = WaitStrategy::ConnectionThread;
    let strategy = ConnectionStrategy::Multiplexed { wait };
    let threads = |count: usize| {
        let what = format!("connections have {count} threads");
        until(&what, || {
            (named("rtorb-client-").len() == count).then_some(())
        });
    };
    let limits = Limits::with(|limits| limits.shared_connections_max = 2);
    let orb = orb(Orb::builder().connection(strategy).limits(limits));
    let servers = [(); 3].map(|()| counting().0);
    let objects = servers.each_ref().map(|server| {
        let object = orb.string_to_object(&server.reference());
        object.expect("legal")
    });
    for (object, count) in objects.iter().zip([1, 2, 2]) {
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
        threads(count);
    }
    // A request of which nobody knows what became of it takes its connection with it.
    let silent = FakeServer::new(|_, mut peer: Peer| peer.wait_for_end());
    let object = orb.string_to_object(&silent.reference()).expect("legal");
    let hasty = object.with_timeout(Duration::from_millis(20));
    // On a busy host, the time may pass before the request is sent.
    until("a request is sent", || {
        let failed = hasty.is_a("IDL:Any:1.0").expect_err("it is silent");
        (failed.completed != CompletionStatus::No).then_some(())
    });
    threads(1);
    let private = Orb::builder().connection(strategy);
    {
        let other = private.build().expect("the ORB can be built");
        let object = other.string_to_object(&servers[0].reference());
        assert_eq!(object.expect("legal").is_a("IDL:Any:1.0"), Ok(true));
        threads(2);
    }
    threads(1);
    drop((orb, objects, object, hasty));
    threads(0);
}

/// Threads of this process that end calls whose timeout has passed.
fn watchdogs() -> Vec<PathBuf> {
    named("rtorb-watchdog")
}

/// Threads of this process whose names begin so.
pub(crate) fn named(start: &str) -> Vec<PathBuf> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let tasks = tasks.flatten().map(|task| task.path());
    tasks
        .filter(|task| {
            std::fs::read(task.join("comm")).is_ok_and(|name| name.starts_with(start.as_bytes()))
        })
        .collect()
}

/// How many connections a fake server has had, and how many of them have ended.
#[derive(Debug, Default)]
struct Counts {
    opened: AtomicUsize,
    ended: AtomicUsize,
}

/// A server that says yes to everything and counts its connections.
fn counting() -> (FakeServer, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let counted = Arc::clone(&counts);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        counted.opened.fetch_add(1, Ordering::SeqCst);
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
        counted.ended.fetch_add(1, Ordering::SeqCst);
    });
    (server, counts)
}

fn orb(builder: OrbBuilder) -> Orb {
    builder.build().expect("the ORB can be built")
}
