//! SIGHUP, delivered to a thread that waits for it.

use rtorb_os::hangup::Hangup;
use rustix::process::{Signal, getpid, kill_process};
use std::thread;

#[test]
fn each_wait_gets_a_signal_that_came_before_or_comes_and_can_be_cancelled() {
    let watch = Hangup::watch().expect("a handler");
    let send = || kill_process(getpid(), Signal::HUP).expect("its own process");
    send();
    send();
    assert!(watch.wait(), "both came before");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| watch.wait());
        send();
        assert!(waiting.join().expect("no panic"), "it came");
    });
    watch.cancel();
    assert!(!watch.wait(), "cancelled");
}
