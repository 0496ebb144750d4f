//! The functions of the C library that this program defines itself, so that the ORB below `main` meets the world instead of the
//! operating system.
//!
//! The linker finds these definitions before those of the shared library. On a thread that is not of the world, and for a descriptor
//! that is not, each calls the C library. Each file has the functions of one kind; they convert pointers, and the world does the rest.

pub(crate) mod baton;
mod clocks;
mod descriptors;
pub(crate) mod disk;
mod polling;
#[macro_use]
pub(crate) mod real;
mod sockets;
mod system;
pub(crate) mod threads;
pub(crate) mod word;

use crate::world::files::{FIRST_DESCRIPTOR, FileId};
use crate::world::tasks::Woken;
use crate::world::{World, block, point, with};

/// Defines functions of the C library: what they do if the condition holds, and otherwise they call the C library's.
macro_rules! replace {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty; if $condition:expr => $act:expr)*) => {$(
        $(#[$doc])*
        // SAFETY: the name and the type are those of the C library, and so is what callers may expect.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            if $crate::world::is_simulated() && $condition {
                return $act;
            }
            $crate::calls::real::real!($name($($argument => $type),*) -> $result)
        }
    )*};
}
use replace;

fn is_ours(descriptor: i32) -> bool {
    descriptor >= FIRST_DESCRIPTOR
}

/// The value of a function that returns -1 and sets the error number.
fn answer<T: TryInto<i64>>(result: Result<T, i32>) -> i64 {
    match result {
        Ok(value) => value.try_into().unwrap_or(i64::MAX),
        Err(errno) => {
            threads::set_error(errno);
            -1
        }
    }
}

/// Repeats an attempt until it does not fail with EAGAIN. Meanwhile the thread waits for the descriptor, unless the call or the file is
/// nonblocking.
fn until_ready<T>(
    waits_for: &'static str,
    descriptor: i32,
    is_nonblocking: bool,
    mut attempt: impl FnMut(&mut World, FileId) -> Result<T, i32>,
) -> Result<T, i32> {
    point();
    loop {
        let outcome = with(|world| {
            let id = world.files.id(descriptor)?;
            match attempt(world, id) {
                Err(libc::EAGAIN) if !is_nonblocking && !world.files.file(id)?.is_nonblocking => {
                    let ticket = world.core.tasks.ticket();
                    world.files.wait(id, ticket);
                    Ok(Err(ticket))
                }
                outcome => outcome.map(Ok),
            }
        });
        match outcome? {
            Ok(value) => return Ok(value),
            Err(ticket) => _ = block(waits_for, ticket, None),
        }
    }
}

/// Sleeps until a time; false if something else woke the thread.
pub(crate) fn sleep_until(until_ns: u64) -> bool {
    let ticket = with(|world| world.core.tasks.ticket());
    block("the time", ticket, Some(until_ns)) == Woken::ByTime
}
