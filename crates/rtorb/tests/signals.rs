//! The end of an ORB by a signal, which the whole process gets: the only test of its program.

use rtorb::exception::local;
use rtorb::{DispatchStrategy, ExceptionKind, Orb, OrbError, SystemException};
use rtorb_tests::running::until;
use rtorb_tests::scheduling::tasks;
use rtorb_tests::stubs::exchange::{Party, PartyServant};
use rustix::process::{Signal, getpid, kill_process};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Sends a signal while it is called, and answers when the ORB's function for signals lets it.
struct Signalled {
    end: Mutex<Receiver<()>>,
}

impl PartyServant for Signalled {
    fn name(&self) -> Result<String, SystemException> {
        kill_process(getpid(), Signal::TERM).expect("this process");
        let end = self.end.lock().expect("no panic");
        end.recv_timeout(Duration::from_secs(60))
            .map(|()| "answered".to_owned())
            .map_err(|_| ExceptionKind::Internal.into())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(7)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_signal_ends_the_orb_after_the_application_has_undone_what_it_did_and_calls_are_answered() {
    if std::env::var_os(IS_SHUT_DOWN).is_some() {
        get_a_signal_after_the_end();
    }
    let strategies = [
        DispatchStrategy::ThreadPerConnection,
        DispatchStrategy::WorkerPool,
    ];
    for dispatch in strategies {
        let (release, end) = sync_channel(1);
        let orb = Orb::builder().dispatch(dispatch).build().expect("an ORB");
        let servant = Signalled {
            end: Mutex::new(end),
        };
        let party = orb.root_poa().expect("it listens").activate(servant);
        let party: Party = party.expect("room");
        let text = party.as_object().to_string();
        orb.shutdown_on_signals(undo(&text, release))
            .expect("a thread");
        let again = orb.shutdown_on_signals(|| ());
        assert!(matches!(again, Err(OrbError::System(e)) if e == local::SIGNALS_TAKEN));
        thread::scope(|scope| {
            let served = scope.spawn(|| orb.run());
            let party = party_of(&text);
            assert_eq!(party.name().as_deref(), Ok("answered"), "{dispatch:?}");
            assert_eq!(served.join().expect("no panic"), Ok(()));
        });
        assert!(orb.shutdown_on_signals(|| ()).is_err(), "it has ended");
    }
    let orb = Orb::builder().build().expect("an ORB");
    orb.shutdown_on_signals(|| panic!("there is no signal"))
        .expect("a thread");
    orb.destroy().expect("the thread ends with the ORB");
    all_that_end_the_orb_wait_for_a_function_that_ends_it_too();
    a_signal_after_the_end_ends_the_process();
}

fn all_that_end_the_orb_wait_for_a_function_that_ends_it_too() {
    let orb = Orb::builder().build().expect("an ORB");
    let has_ended = Arc::new(AtomicBool::new(false));
    let (own, ended) = (orb.clone(), Arc::clone(&has_ended));
    let before = move || {
        own.destroy().expect("no servant calls it");
        thread::sleep(Duration::from_millis(100));
        ended.store(true, Ordering::SeqCst);
    };
    orb.shutdown_on_signals(before).expect("a thread");
    kill_process(getpid(), Signal::TERM).expect("this process");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                assert_eq!(orb.run(), Ok(()));
                assert!(has_ended.load(Ordering::SeqCst));
            });
            scope.spawn(|| {
                assert_eq!(orb.destroy(), Ok(()));
                assert!(has_ended.load(Ordering::SeqCst));
            });
        }
    });
}

/// A program of its own: an ORB that nobody runs is shut down, and its thread for signals ends.
fn a_signal_after_the_end_ends_the_process() {
    let program = std::env::current_exe().expect("its own program");
    let mut command = Command::new(program);
    command.arg("--nocapture").env(IS_SHUT_DOWN, "1");
    let ended = command.status().expect("it can be started");
    assert_eq!(ended.code(), Some(128 + Signal::TERM.as_raw()));
}

/// Set for a program that shuts an ORB down and then gets a signal.
const IS_SHUT_DOWN: &str = "RTORB_TEST_IS_SHUT_DOWN";

fn get_a_signal_after_the_end() {
    let orb = Orb::builder().build().expect("an ORB");
    orb.shutdown_on_signals(|| ()).expect("a thread");
    orb.shutdown();
    until("its thread ends", || {
        let tasks = tasks(std::process::id());
        let mut names = tasks.iter().map(|task| task.name.as_str());
        (!names.any(|name| name == "rtorb-signals")).then_some(())
    });
    kill_process(getpid(), Signal::TERM).expect("this process");
    // Another thread may get it.
    let (_open, nothing) = sync_channel::<()>(0);
    let waited = nothing.recv_timeout(Duration::from_secs(20));
    panic!("the signal has no effect: {waited:?}");
}

/// Calls the server, which still serves, and lets it answer the call in progress.
fn undo(text: &str, release: SyncSender<()>) -> impl FnOnce() + Send + 'static {
    let text = text.to_owned();
    move || {
        assert_eq!(party_of(&text).level(), Ok(7));
        release.send(()).expect("there is room");
    }
}

fn party_of(text: &str) -> Party {
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(text).expect("a reference");
    Party::narrow(&object).expect("it answers")
}
