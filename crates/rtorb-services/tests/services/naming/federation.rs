//! Names that go on in a server that takes a connection and never answers.

use super::outcome;
use super::serving::{Serving, name};
use rtorb::{CompletionStatus, ExceptionKind};
use rtorb_services::naming::NamingConfig;
use rtorb_services::stubs::naming::cos_naming::{NamingContext, NamingContextBindError};
use std::net::TcpListener;
use std::time::Duration;

/// A service with the name `silent` for a context of a server that never answers.
fn with_silence(config: NamingConfig) -> (Serving, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let serving = Serving::new(config);
    let there = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x");
    let there = serving.client.string_to_object(&there).expect("a URL");
    let there = NamingContext::unchecked_narrow(there);
    serving
        .root
        .bind_context(&name("silent"), Some(&there))
        .expect("bound");
    (serving, silent)
}

#[test]
fn a_server_that_does_not_answer_in_time_is_named_and_a_doubtful_change_is_told() {
    let (serving, _silent) = with_silence(NamingConfig {
        // A busy host has sent the request before.
        forward_timeout: Duration::from_secs(2),
        ..NamingConfig::default()
    });
    let root = &serving.root;
    let resolved = outcome::of(root.resolve(&name("silent/a")).map(|_| ()));
    assert_eq!(resolved.text, "CannotProceed a");
    // It may be bound there: the client must not be told to bind again.
    match root.bind(&name("silent/a"), Some(&serving.object("a"))) {
        Err(NamingContextBindError::System(exception)) => {
            assert_eq!(exception.kind, ExceptionKind::Timeout);
            assert_eq!(exception.completed, CompletionStatus::Maybe);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn servers_that_do_not_answer_take_no_more_threads_than_they_may() {
    let (serving, silent) = with_silence(NamingConfig {
        forward_timeout: Duration::from_secs(20),
        forwards_max: 1,
        ..NamingConfig::default()
    });
    let resolve = || {
        let resolved = serving.root.resolve(&name("silent/a"));
        outcome::of(resolved.map(|_| ())).text
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(resolve);
        // The first call has come to the other server, and stays there.
        let (held, _) = silent.accept().expect("a connection");
        assert_eq!(resolve(), "CannotProceed a");
        assert!(!first.is_finished(), "the one call that there may be");
        // The rest of the service goes on as ever.
        let bound = serving.root.bind(&name("b"), Some(&serving.object("b")));
        assert_eq!(outcome::of(bound).text, "done");
        // Now the server ends.
        drop(silent);
        drop(held);
        assert_eq!(first.join().expect("answered"), "CannotProceed a");
    });
}
