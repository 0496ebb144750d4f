//! SIGUSR1, for which a thread looks.

use rtorb_os::user_signal::UserSignal;
use rustix::process::{Signal, getpid, kill_process};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_signal_is_seen_once_and_ends_nothing() {
    let watch = UserSignal::watch().expect("a handler");
    for _ in 0..2 {
        assert!(!watch.came_since(), "none came since");
        kill_process(getpid(), Signal::USR1).expect("its own process");
        // Another thread may take the signal, a little later.
        let end = Instant::now() + Duration::from_secs(60);
        while !watch.came_since() {
            assert!(Instant::now() < end, "it comes");
            thread::yield_now();
        }
    }
    assert!(!watch.came_since(), "each was one");
}
