//! The state of a server's connection under loom, which tries the interleavings of the threads that work for a connection.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p rtorb-wire --release --test loom`. The driver here has the steps of a server's session
//! without its I/O: what the event loop watches for and what waits to be sent are under one lock.
#![cfg(loom)]

use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use rtorb_wire::Writer;
use rtorb_wire::connection::{ReceiveLimits, Receiver, ServerConnection, ServerPhase, Side};
use rtorb_wire::giop::{self, Version};
use std::process::Command;

/// All interleavings in which threads are stopped at most three times against their will.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A server's connection whose stream and event loop are counters.
struct Driver {
    state: ServerConnection,
    /// A thread is sending on the stream.
    is_sending: AtomicBool,
    sending: Mutex<Sending>,
}

struct Sending {
    /// Messages that wait to be sent.
    outbox: u32,
    /// Messages that the client got.
    sent: u32,
    /// What the event loop watches for.
    watched: Watched,
    /// The event loop has been asked to report the connection at once, or to report that its outbox is empty.
    is_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Bytes,
    Nothing,
    Room,
    /// The connection is not watched any more.
    Removed,
}

impl Driver {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: ServerConnection::new(),
            is_sending: AtomicBool::new(false),
            sending: Mutex::new(Sending {
                outbox: 0,
                sent: 0,
                watched: Watched::Bytes,
                is_reported: false,
            }),
        })
    }

    fn watch(&self) {
        self.watch_for_phase(&mut self.sending.lock().unwrap());
    }

    fn watch_for_phase(&self, sending: &mut Sending) {
        sending.watched = match self.state.phase() {
            ServerPhase::Reading => Watched::Bytes,
            ServerPhase::Requested => {
                sending.is_reported = true;
                Watched::Bytes
            }
            ServerPhase::Held => Watched::Nothing,
            ServerPhase::Ended => Watched::Removed,
            ServerPhase::Draining | ServerPhase::Finishing => sending.watched,
        };
    }

    /// Sends a reply that a stream with room takes.
    fn reply(&self) {
        self.state.note_answered();
        if self.state.sends_alone() {
            self.send();
            let mut sending = self.sending.lock().unwrap();
            assert_eq!(sending.outbox, 0, "a reply is sent before earlier ones");
            sending.sent += 1;
            return;
        }
        self.send_locked();
    }

    /// Sends a message as a thread does that does not send alone.
    fn send_locked(&self) {
        let mut sending = self.sending.lock().unwrap();
        if sending.outbox > 0 {
            sending.outbox += 1;
        } else {
            self.send();
            sending.sent += 1;
        }
    }

    /// Sends a message on the stream, which only one thread may do at a time.
    fn send(&self) {
        let is_alone = !self.is_sending.swap(true, Ordering::AcqRel);
        assert!(is_alone, "the messages of two threads mix");
        self.is_sending.store(false, Ordering::Release);
    }

    /// Sends a reply that the stream does not take.
    fn keep(&self) {
        let mut sending = self.sending.lock().unwrap();
        sending.outbox += 1;
        if sending.outbox == 1 {
            assert!(self.state.drain(), "nothing waited before");
            sending.watched = Watched::Room;
        }
    }

    /// Sends what waits, as the event loop does when the stream has room.
    fn flush(&self) {
        let mut sending = self.sending.lock().unwrap();
        if sending.watched != Watched::Room {
            return;
        }
        sending.sent += core::mem::take(&mut sending.outbox);
        if self.state.drained() {
            self.watch_for_phase(&mut sending);
            sending.is_reported = true;
        }
    }

    /// The reader takes a request out.
    fn take(&self) {
        self.state.note_message(Version::V1_2);
        self.state.take();
    }

    fn hold(&self) -> bool {
        let is_held = self.state.hold();
        if is_held {
            self.watch();
        }
        is_held
    }

    fn request(&self) -> bool {
        let is_requested = self.state.request();
        if is_requested {
            self.watch();
        }
        is_requested
    }

    fn reported(&self) -> bool {
        let is_reported = self.state.reported();
        if is_reported {
            self.watch();
        }
        is_reported
    }

    fn served(&self) {
        if self.state.served() {
            self.watch();
        }
    }

    fn end(&self) {
        if self.state.end() {
            self.watch();
        }
    }

    /// Asserts that the event loop watches for what the phase needs.
    fn assert_watched(&self) {
        let sending = self.sending.lock().unwrap();
        let expected = match self.state.phase() {
            ServerPhase::Reading | ServerPhase::Requested => Watched::Bytes,
            ServerPhase::Held => Watched::Nothing,
            ServerPhase::Ended => Watched::Removed,
            ServerPhase::Draining | ServerPhase::Finishing => Watched::Room,
        };
        assert_eq!(sending.watched, expected);
        assert_eq!(self.state.has_unsent(), sending.outbox > 0);
    }
}

/// Starts a thread that works for the connection.
fn spawn<T: 'static>(
    driver: &Arc<Driver>,
    run: impl FnOnce(&Driver) -> T + 'static,
) -> thread::JoinHandle<T> {
    let driver = driver.clone();
    thread::spawn(move || run(&driver))
}

#[test]
fn loom_a_held_connection_is_read_again_when_its_requests_have_replies() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        let replier = spawn(&driver, |driver| {
            driver.reply();
            driver.served();
        });
        let is_held = driver.hold();
        replier.join().unwrap();
        assert!(
            driver.state.is_read(),
            "no thread would read the connection again"
        );
        driver.assert_watched();
        assert_eq!(driver.sending.lock().unwrap().is_reported, is_held);
    });
}

#[test]
fn loom_of_two_repliers_the_last_has_a_held_connection_read_again() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.take();
        let repliers = [0, 1].map(|_| spawn(&driver, Driver::served));
        if !driver.hold() {
            assert!(driver.state.sends_alone(), "all have replies");
        }
        for replier in repliers {
            replier.join().unwrap();
        }
        assert!(
            driver.state.is_read(),
            "no thread would read the connection again"
        );
        driver.assert_watched();
    });
}

#[test]
fn loom_the_replies_of_two_threads_do_not_mix() {
    model(|| {
        let driver = Driver::new();
        driver.state.take_out();
        driver.take();
        let replier = spawn(&driver, |driver| {
            driver.reply();
            driver.served();
        });
        // The reader: a request that came behind is served in place if no other is taken out.
        if driver.state.serve_in_place() {
            assert!(
                driver.state.sends_alone(),
                "only the reader takes requests out"
            );
        }
        driver.reply();
        replier.join().unwrap();
        assert!(driver.state.is_idle());
    });
}

#[test]
fn loom_a_reply_that_is_not_taken_is_sent_before_later_ones_and_reading_goes_on() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.take();
        let event_loop = spawn(&driver, Driver::flush);
        let replier = spawn(&driver, |driver| {
            driver.reply();
            driver.served();
        });
        driver.hold();
        driver.keep();
        driver.served();
        driver.reply();
        event_loop.join().unwrap();
        replier.join().unwrap();
        driver.assert_watched();
        driver.flush();
        assert_eq!(driver.sending.lock().unwrap().sent, 3);
        assert!(driver.state.is_idle() && driver.state.is_read());
        assert!(driver.sending.lock().unwrap().is_reported);
        driver.assert_watched();
    });
}

/// A connection that ends while a reply is not taken. The connection may be held before.
fn end_amid_a_reply(is_held: bool) {
    let driver = Driver::new();
    driver.take();
    assert!(!is_held || driver.hold());
    let closer = spawn(&driver, Driver::end);
    let event_loop = spawn(&driver, Driver::flush);
    driver.keep();
    driver.served();
    closer.join().unwrap();
    event_loop.join().unwrap();
    driver.assert_watched();
    driver.flush();
    driver.assert_watched();
    assert_eq!(driver.state.phase(), ServerPhase::Ended);
    assert_eq!(driver.sending.lock().unwrap().sent, 1);
}

#[test]
fn loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more() {
    model(|| end_amid_a_reply(false));
    model(|| end_amid_a_reply(true));
}

#[test]
fn loom_a_report_that_was_requested_comes_unless_it_is_not_needed() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        // A replier whose reply is not taken, then the event loop.
        let replier = spawn(&driver, |driver| {
            driver.keep();
            driver.flush();
            driver.served();
        });
        driver.request();
        replier.join().unwrap();
        assert!(driver.sending.lock().unwrap().is_reported);
        driver.assert_watched();
    });
}

#[test]
fn loom_a_report_that_is_not_needed_is_not_watched_for() {
    model(|| {
        let driver = Driver::new();
        let next_reader = spawn(&driver, |driver| {
            driver.reported();
        });
        assert!(driver.request(), "nothing is in the way");
        next_reader.join().unwrap();
        driver.assert_watched();
        if driver.state.is_requested() {
            assert!(driver.sending.lock().unwrap().is_reported);
            assert!(driver.reported());
        }
        assert_eq!(driver.state.phase(), ServerPhase::Reading);
    });
}

#[test]
fn loom_a_request_that_comes_early_is_noticed_whatever_the_reader_does() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        let other_reader = spawn(&driver, |driver| driver.state.take_out());
        let replier = spawn(&driver, Driver::served);
        let was_taken_out = driver.state.is_taken_out();
        let is_in_place = was_taken_out && driver.state.serve_in_place();
        other_reader.join().unwrap();
        replier.join().unwrap();
        assert_eq!(driver.state.is_taken_out(), !is_in_place);
        assert!(driver.state.serve_in_place(), "none is taken out any more");
        assert!(!driver.state.is_taken_out());
    });
}

#[test]
fn loom_a_connection_that_gives_way_does_so_whatever_else_happens() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        let closer = spawn(&driver, |driver| {
            driver.state.give_way();
            driver.state.report_end();
        });
        let replier = spawn(&driver, Driver::served);
        driver.request();
        driver.end();
        closer.join().unwrap();
        replier.join().unwrap();
        assert!(driver.state.gives_way() && driver.state.is_ending());
        assert_eq!(driver.state.phase(), ServerPhase::Ended);
        driver.assert_watched();
        assert!(driver.state.is_idle() || !driver.state.is_answered());
    });
}

#[test]
fn loom_a_bulk_reply_is_remembered_while_the_bound_is_raised() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.state.note_answered();
        assert!(!driver.state.may_be_bulk());
        let replier = spawn(&driver, |driver| {
            driver.state.note_bulk_reply();
        });
        driver.state.raise_bound(4);
        replier.join().unwrap();
        assert!(driver.state.may_be_bulk());
        driver.state.raise_bound(4);
        assert!(driver.hold(), "one request reaches the bound");
    });
}

#[test]
fn loom_a_connection_is_held_at_its_bound_and_read_when_half_of_its_requests_have_replies() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.state.note_answered();
        for taken in 1..4 {
            driver.state.raise_bound(4);
            assert!(taken == 1 || !driver.hold(), "the bound is not reached");
            driver.take();
        }
        driver.state.raise_bound(4);
        assert!(driver.hold());
        driver.served();
        assert!(!driver.state.is_read(), "a quarter has replies");
        let repliers = [0, 1].map(|_| spawn(&driver, Driver::served));
        for replier in repliers {
            replier.join().unwrap();
        }
        assert!(driver.state.is_requested());
        driver.assert_watched();
    });
}

#[test]
fn loom_a_held_connection_is_read_again_whatever_becomes_of_its_bound() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.state.note_answered();
        driver.take();
        assert!(driver.hold());
        let bulk = spawn(&driver, |driver| {
            driver.state.note_bulk_reply();
            driver.served();
        });
        driver.reply();
        driver.served();
        bulk.join().unwrap();
        assert!(driver.state.is_read());
        driver.assert_watched();
    });
}

#[test]
fn loom_a_report_that_has_come_may_be_requested_again() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        let replier = spawn(&driver, Driver::served);
        driver.request();
        // The event loop reports the connection, whose reader leaves bytes behind again.
        driver.sending.lock().unwrap().is_reported = false;
        assert!(driver.request());
        assert!(driver.sending.lock().unwrap().is_reported);
        replier.join().unwrap();
        driver.assert_watched();
    });
}

#[test]
fn loom_a_connection_that_is_to_be_reported_is_held_at_its_bound_too() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.take();
        let replier = spawn(&driver, Driver::served);
        assert!(driver.request());
        assert!(driver.hold(), "one request reaches the bound");
        replier.join().unwrap();
        driver.assert_watched();
        driver.served();
        assert!(driver.state.is_requested());
        driver.assert_watched();
    });
}

#[test]
fn loom_a_client_that_sends_no_more_still_gets_its_last_reply() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        assert!(!driver.state.is_answered());
        let event_loop = spawn(&driver, |driver| driver.state.report_end());
        driver.reply();
        driver.served();
        event_loop.join().unwrap();
        assert!(driver.state.is_ending() && !driver.state.gives_way());
        assert!(driver.state.is_idle() && driver.state.is_read());
        assert_eq!(driver.sending.lock().unwrap().sent, 1);
    });
}

#[test]
fn loom_a_deferred_reply_does_not_mix_with_one_in_place() {
    model(|| {
        let driver = Driver::new();
        driver.state.note_message(Version::V1_2);
        driver.state.note_deferred();
        let responder = spawn(&driver, |driver| {
            driver.send_locked();
            driver.state.note_settled();
        });
        // The reader serves the next request in place.
        driver.state.note_message(Version::V1_2);
        driver.reply();
        let is_idle = driver.state.is_idle();
        let sent = driver.sending.lock().unwrap().sent;
        assert!(!is_idle || sent == 2, "idle before the deferred reply");
        responder.join().unwrap();
        assert!(driver.state.is_idle());
    });
}

#[test]
fn loom_a_request_of_this_end_does_not_mix_with_a_reply_in_place() {
    model(|| {
        let driver = Driver::new();
        driver.state.share_sending();
        let caller = spawn(&driver, Driver::send_locked);
        driver.state.note_message(Version::V1_2);
        driver.reply();
        caller.join().unwrap();
        assert!(driver.state.is_idle());
        assert_eq!(driver.sending.lock().unwrap().sent, 2);
    });
}

#[test]
fn loom_a_connection_is_not_idle_while_a_servant_executes_after_its_early_reply() {
    model(|| {
        let driver = Driver::new();
        driver.state.note_message(Version::V1_2);
        let has_returned = Arc::new(AtomicBool::new(false));
        let returned = has_returned.clone();
        let server = spawn(&driver, move |driver| {
            driver.state.note_early_reply();
            driver.state.note_answered();
            // Nothing reads the rest of the next message meanwhile.
            driver.state.note_partial();
            driver.state.look_at_partial();
            assert!(!driver.state.look_at_partial(), "the client is not late");
            returned.store(true, Ordering::Relaxed);
            driver.state.note_executed();
        });
        // A thread that looks for an idle connection to close.
        let is_idle = driver.state.is_idle();
        assert!(!is_idle || has_returned.load(Ordering::Relaxed));
        server.join().unwrap();
        assert!(driver.state.is_idle());
    });
}

#[test]
fn loom_a_part_of_a_message_is_noted_whatever_the_replier_does() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        let replier = spawn(&driver, |driver| {
            driver.reply();
            driver.served();
        });
        driver.state.note_partial();
        replier.join().unwrap();
        // The next two looks, between which nothing comes.
        driver.state.note_partial();
        assert!(!driver.state.look_at_partial());
        assert!(driver.state.look_at_partial(), "the rest has not come");
        driver.state.note_message(Version::V1_2);
        assert!(!driver.state.look_at_partial() && !driver.state.is_answered());
    });
}

#[test]
fn loom_a_message_whose_rest_has_come_is_not_late() {
    model(|| {
        let driver = Driver::new();
        driver.state.note_partial();
        assert!(!driver.state.look_at_partial());
        let has_come = Arc::new(AtomicBool::new(false));
        let came = has_come.clone();
        let reader = spawn(&driver, move |driver| {
            driver.state.note_message(Version::V1_2);
            came.store(true, Ordering::Release);
        });
        let has_come = has_come.load(Ordering::Acquire);
        let is_late = driver.state.look_at_partial();
        assert!(!(is_late && has_come), "the second look, and nothing new");
        reader.join().unwrap();
        assert!(!driver.state.look_at_partial());
    });
}

#[test]
fn loom_a_message_whose_last_fragment_has_come_is_not_late() {
    let mut w = Writer::new(Vec::new(), 1 << 10);
    giop::write_locate_request(&mut w, Version::V1_2, 2, &[7; 100]).unwrap();
    let parts: Vec<_> = giop::fragments(&w.to_bytes(), 64).collect();
    let limits = ReceiveLimits {
        message_bytes_max: 1 << 10,
        fragmented_messages_max: 1,
    };
    model(move || {
        let driver = Driver::new();
        let mut receiver = Receiver::new(Side::Server, limits);
        let mut receive = move |state: &ServerConnection, part: &[u8]| {
            receiver.free()[..part.len()].copy_from_slice(part);
            receiver.advance(part.len());
            receiver.next_of(state).unwrap().is_some()
        };
        assert!(!receive(&driver.state, &parts[0]));
        assert!(!driver.state.look_at_partial());
        let has_come = Arc::new(AtomicBool::new(false));
        let came = has_come.clone();
        let rest = parts[1..].concat();
        let reader = spawn(&driver, move |driver| {
            assert!(receive(&driver.state, &rest));
            came.store(true, Ordering::Release);
        });
        let has_come = has_come.load(Ordering::Acquire);
        let is_late = driver.state.look_at_partial();
        assert!(!(is_late && has_come), "the second look, and nothing new");
        reader.join().unwrap();
        assert!(!driver.state.look_at_partial());
    });
}

#[test]
fn loom_a_client_becomes_known_once() {
    model(|| {
        let driver = Driver::new();
        driver.take();
        driver.take();
        let replier = spawn(&driver, |driver| driver.state.note_bulk_reply());
        let is_first = driver.state.note_answered();
        let is_other_first = replier.join().unwrap();
        assert!(is_first ^ is_other_first);
        assert!(driver.state.is_known());
    });
}

/// Each transition, and a model that fails without it. A bit is one of the flags of the word.
const NEEDED: [(&str, &str); 24] = [
    (
        "Reading to Requested",
        "loom_a_report_that_is_not_needed_is_not_watched_for",
    ),
    (
        "Requested to Requested",
        "loom_a_report_that_has_come_may_be_requested_again",
    ),
    (
        "Requested to Reading",
        "loom_a_report_that_is_not_needed_is_not_watched_for",
    ),
    (
        "Reading to Held",
        "loom_a_connection_is_held_at_its_bound_and_read_when_half_of_its_requests_have_replies",
    ),
    (
        "Requested to Held",
        "loom_a_connection_that_is_to_be_reported_is_held_at_its_bound_too",
    ),
    (
        "Held to Requested",
        "loom_a_connection_is_held_at_its_bound_and_read_when_half_of_its_requests_have_replies",
    ),
    (
        "Reading to Draining",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "Requested to Draining",
        "loom_a_reply_that_is_not_taken_is_sent_before_later_ones_and_reading_goes_on",
    ),
    (
        "Held to Draining",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "Ended to Finishing",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "Draining to Reading",
        "loom_a_reply_that_is_not_taken_is_sent_before_later_ones_and_reading_goes_on",
    ),
    (
        "Finishing to Ended",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "Reading to Ended",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "Requested to Ended",
        "loom_a_connection_that_gives_way_does_so_whatever_else_happens",
    ),
    (
        "Held to Ended",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "Draining to Finishing",
        "loom_a_connection_that_ends_sends_what_waits_and_is_watched_no_more",
    ),
    (
        "set bit 26",
        "loom_a_request_that_comes_early_is_noticed_whatever_the_reader_does",
    ),
    (
        "serve in place",
        "loom_a_request_that_comes_early_is_noticed_whatever_the_reader_does",
    ),
    (
        "set bit 27",
        "loom_a_client_that_sends_no_more_still_gets_its_last_reply",
    ),
    (
        "set bit 28",
        "loom_a_connection_that_gives_way_does_so_whatever_else_happens",
    ),
    (
        "set bit 29",
        "loom_a_connection_is_not_idle_while_a_servant_executes_after_its_early_reply",
    ),
    (
        "note executed",
        "loom_a_connection_is_not_idle_while_a_servant_executes_after_its_early_reply",
    ),
    (
        "set bit 30",
        "loom_a_deferred_reply_does_not_mix_with_one_in_place",
    ),
    ("set bit 31", "loom_a_client_becomes_known_once"),
];

#[test]
fn loom_each_transition_is_needed_by_a_model() {
    let program = std::env::current_exe().unwrap();
    for (transition, model) in NEEDED {
        let run = Command::new(&program)
            .args(["--exact", model])
            .env("RTORB_LOOM_WITHOUT", transition)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(said.contains("running 1 test"), "{model}: {said}");
        assert!(!run.status.success(), "{model} holds without {transition}");
    }
}

#[test]
fn loom_each_change_of_the_phase_is_listed() {
    let source = include_str!("../src/connection/server_connection.rs");
    let phases = [
        "Reading",
        "Requested",
        "Held",
        "Ended",
        "Draining",
        "Finishing",
    ];
    for (from, to) in phases
        .into_iter()
        .flat_map(|from| phases.map(|to| (from, to)))
    {
        let name = format!("{from} to {to}");
        let is_listed = NEEDED.iter().any(|(transition, _)| *transition == name);
        let is_made = source.contains(&format!("({from}, {to})"));
        assert_eq!(is_listed, is_made, "{name}");
    }
}
