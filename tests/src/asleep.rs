//! Waits until the other threads of this process sleep.

use std::fs;

use crate::running::until;

/// Returns when all other threads sleep, as seen in three looks in a row.
///
/// On a loaded machine, a thread of a server may begin long after the first calls were served by the others. What it allocates
/// at its beginning does not belong to the calls that are counted then.
///
/// # Panics
///
/// They do not all sleep within [`PATIENCE`](crate::running::PATIENCE).
pub fn until_others_sleep() {
    let mut looks = 0;
    until("the other threads sleep", || {
        looks = if others_sleep() { looks + 1 } else { 0 };
        (looks == 3).then_some(())
    });
}

fn others_sleep() -> bool {
    let own = fs::read_link("/proc/thread-self").expect("a thread of Linux");
    let own = own.file_name().expect("its id");
    let threads = fs::read_dir("/proc/self/task").expect("threads of Linux");
    threads.flatten().all(|thread| {
        // A thread that has ended has no file any more.
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("S", |(_, fields)| fields);
        thread.file_name() == own || state.starts_with('S')
    })
}
