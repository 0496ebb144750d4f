//! Waits until threads of this process sleep.

use std::fs;
use std::path::Path;

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
    until_in_three_looks("the other threads sleep", others_sleep);
}

/// Returns when each of these threads sleeps or has ended, as seen in three looks in a row.
///
/// # Panics
///
/// They do not all sleep within [`PATIENCE`](crate::running::PATIENCE).
pub fn until_asleep(threads: &[u32]) {
    let tasks = Path::new("/proc/self/task");
    let sleep = || (threads.iter()).all(|thread| sleeps(&tasks.join(thread.to_string())));
    until_in_three_looks("the threads sleep", sleep);
}

fn until_in_three_looks(what: &str, is_so: impl Fn() -> bool) {
    let mut looks = 0;
    until(what, || {
        looks = if is_so() { looks + 1 } else { 0 };
        (looks == 3).then_some(())
    });
}

fn others_sleep() -> bool {
    let own = fs::read_link("/proc/thread-self").expect("a thread of Linux");
    let own = own.file_name().expect("its id");
    let threads = fs::read_dir("/proc/self/task").expect("threads of Linux");
    (threads.flatten()).all(|thread| thread.file_name() == own || sleeps(&thread.path()))
}

/// True if the thread with that folder sleeps or has ended.
fn sleeps(thread: &Path) -> bool {
    // A thread that has ended has no file any more.
    let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("S", |(_, fields)| fields);
    state.starts_with('S')
}
