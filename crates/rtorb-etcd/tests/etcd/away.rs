//! etcd that does not answer.

use super::member::{Member, wait_until};
use super::serving::{Serving, name};
use rtorb::{CompletionStatus, ExceptionKind};
use rtorb_etcd::EtcdStore;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::naming::shared_store::{SharedCommit, SharedStore, SharedWrites};
use rtorb_services::naming::{NamingConfig, NamingError, NamingService, StoreError, StoreFailure};
use rtorb_services::stubs::naming::cos_naming::NamingContextBindError;
use rtorb_tests::running::{signal_process, stop_process};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn while_etcd_is_away_changes_are_transient_and_names_are_resolved_and_then_it_goes_on() {
    let Some(mut etcd) = Member::start() else {
        return;
    };
    let url = etcd.url("names");
    let [a, b] = [(); 2].map(|()| Serving::start(&url));
    let object = a.object("object");
    a.root.bind(&name("before"), Some(&object)).expect("bound");
    wait_until("the other service", || b.has("before"));
    etcd.kill();
    for service in [&a, &b] {
        let refused = service.root.bind(&name("during"), Some(&object));
        let Err(NamingContextBindError::System(exception)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(exception.kind, ExceptionKind::Transient, "{exception}");
        let failure = StoreFailure::of_exception(&exception);
        assert_eq!(failure, Some(StoreFailure::Unavailable));
        assert!(service.has("before"));
    }
    // Now that the connection is known to be lost, it is known that nothing was sent.
    let refused = a.root.bind(&name("during"), Some(&object));
    let Err(NamingContextBindError::System(exception)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(exception.completed, CompletionStatus::No, "{exception}");
    etcd.start_again();
    wait_until("etcd", || {
        a.root.bind(&name("after"), Some(&object)).is_ok()
    });
    wait_until("the other service", || b.has("after"));
    let warnings = a.warnings.lock().expect("no panic").join("\n");
    for part in [
        url.as_str(),
        "clients get TRANSIENT, names are still resolved",
        "again",
    ] {
        assert!(warnings.contains(part), "{part} in {warnings}");
    }
}

#[test]
fn an_etcd_that_hangs_holds_up_a_change_for_a_stated_time_and_no_lookup() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let service = Serving::start(&etcd.url("names"));
    let object = service.object("object");
    let bind = |text: &str| service.root.bind(&name(text), Some(&object));
    bind("before").expect("bound");
    stop_process(etcd.id());
    let refused = bind("during");
    let Err(NamingContextBindError::System(exception)) = refused else {
        panic!("{refused:?}");
    };
    let failure = StoreFailure::of_exception(&exception);
    assert_eq!(failure, Some(StoreFailure::Unavailable), "{exception}");
    assert_eq!(exception.completed, CompletionStatus::Maybe);
    assert!(service.has("before") && !service.has("during"));
    // A client that waits for less gets its answer then; it may be its own or the service's.
    let hasty = service.root.with_timeout(Duration::from_millis(50));
    let refused = hasty.bind(&name("hasty"), Some(&object));
    let Err(NamingContextBindError::System(exception)) = refused else {
        panic!("{refused:?}");
    };
    let is_late = [ExceptionKind::Timeout, ExceptionKind::Transient];
    assert!(is_late.contains(&exception.kind), "{exception}");
    signal_process(etcd.id(), "CONT");
    wait_until("etcd", || bind("after").is_ok());
}

#[test]
fn a_member_that_is_not_there_is_passed_over() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let one_dead = format!("etcd://127.0.0.1:1,{}/names", etcd.endpoint());
    let a = Serving::start(&one_dead);
    let b = Serving::start(&etcd.url("names"));
    let object = a.object("object");
    a.root.bind(&name("a"), Some(&object)).expect("bound");
    b.root.bind(&name("b"), Some(&object)).expect("bound");
    wait_until("both services", || a.has("b") && b.has("a"));
}

#[test]
fn a_member_that_hangs_does_not_keep_a_service_from_its_start() {
    let Some(etcd) = Member::start() else {
        return;
    };
    // The kernel takes the connection, and no process answers.
    let hanging = TcpListener::bind("127.0.0.1:0").expect("a port");
    let hanging_at = hanging.local_addr().expect("an address");
    let service = Serving::start(&format!("etcd://{hanging_at},{}/names", etcd.endpoint()));
    let object = service.object("object");
    let bound = service.root.bind(&name("a"), Some(&object));
    bound.expect("bound");
}

#[test]
fn a_commit_for_which_no_connection_is_opened_in_time_is_known_not_to_be_made() {
    let full = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = full.local_addr().expect("an address");
    // These connections fill the queue of the listening socket, and the kernel answers no others.
    let mut waiting = Vec::new();
    while let Ok(connected) = TcpStream::connect_timeout(&at, Duration::from_millis(100)) {
        waiting.push(connected);
        if waiting.len() == 900 {
            return rtorb_tests::skip("the kernel lets more than 900 connections wait");
        }
    }
    let store = EtcdStore::open(&format!("etcd://{at}/names")).expect("a store");
    let commit = SharedCommit {
        base: 0,
        writes: SharedWrites {
            mark: b"mark".to_vec(),
            writes: vec![("about".to_owned(), None)],
        },
    };
    let refused = store.commit(&commit, monotonic_ns() + 60_000_000_000);
    let refused = refused.expect_err("no connection");
    assert_eq!(refused.failure, StoreFailure::Unavailable, "{refused:?}");
    assert_eq!(refused.completed, CompletionStatus::No, "{refused:?}");
}

#[test]
fn a_service_does_not_start_without_etcd_and_says_what_to_do() {
    let orb = rtorb::Orb::builder().build().expect("an ORB");
    let store = EtcdStore::open("etcd://127.0.0.1:1/names").expect("a store");
    let refused = NamingService::serve_shared(&orb, NamingConfig::default(), Arc::new(store));
    let refused = refused.expect_err("no store answers");
    let is_shared = matches!(
        &refused,
        NamingError::Store {
            why: StoreError::Shared {
                failure: StoreFailure::Unavailable,
                ..
            },
            ..
        }
    );
    assert!(is_shared, "{refused:?}");
    let said = refused.to_string();
    for part in [
        "etcd://127.0.0.1:1/names",
        "Connection refused",
        "see that the store runs",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}
