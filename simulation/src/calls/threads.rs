//! Threads: real ones, which take turns.
#![expect(unsafe_code, reason = "foreign functions")]

use super::baton::Baton;
use super::replace;
use crate::world::tasks::State;
use crate::world::{block, end_task, give_way, point, set_simulated, with};
use libc::{c_char, c_int, c_void, pthread_attr_t, pthread_t};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

type Main = extern "C" fn(*mut c_void) -> *mut c_void;

/// What a new thread begins with.
struct Start {
    main: Main,
    argument: *mut c_void,
    baton: Arc<Baton>,
}

thread_local! {
    static ENDS: Cell<u32> = const { Cell::new(0) };
}

/// Rounds of destructors that a thread makes before it gives up its turn: those of other keys come first.
const ROUNDS: u32 = 2;

/// A key whose destructor runs when a thread has run those of its thread-local variables.
fn last_key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is writable, and the destructor takes any value.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) };
        assert_eq!(made, 0, "there is room for a key");
        key
    })
}

/// The destructor of [`last_key`].
extern "C" fn leave(value: *mut c_void) {
    ENDS.set(ENDS.get() + 1);
    if ENDS.get() < ROUNDS {
        // SAFETY: the key is made, and its destructor takes any value.
        unsafe { libc::pthread_setspecific(last_key(), value) };
        return;
    }
    end_task();
    set_simulated(false);
}

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: whoever started the thread left the box to it.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    let Start {
        main,
        argument,
        baton,
    } = *start;
    // SAFETY: the key is made, and its destructor takes any value.
    unsafe { libc::pthread_setspecific(last_key(), std::ptr::without_provenance(1)) };
    baton.take();
    drop(baton);
    set_simulated(true);
    main(argument)
}

fn start(
    native: *mut pthread_t,
    attributes: *const pthread_attr_t,
    main: Main,
    argument: *mut c_void,
    baton: Arc<Baton>,
) -> c_int {
    let start = Box::into_raw(Box::new(Start {
        main,
        argument,
        baton,
    }));
    let start = start.cast::<c_void>();
    let begin: Main = begin;
    real!(pthread_create(native => *mut pthread_t, attributes => *const pthread_attr_t, begin => Main, start => *mut c_void) -> c_int)
}

fn create(
    native: *mut pthread_t,
    attributes: *const pthread_attr_t,
    main: Main,
    argument: *mut c_void,
) -> c_int {
    point();
    let (task, baton) = with(|world| {
        let policy = world.core.tasks.current().policy;
        world.core.tasks.add(policy)
    });
    set_simulated(false);
    let started = start(native, attributes, main, argument, baton);
    set_simulated(true);
    // SAFETY: the caller gave a place for the handle.
    let handle = unsafe { *native } as usize;
    with(|world| {
        let task = &mut world.core.tasks.all[task];
        task.handle = handle;
        if started != 0 {
            task.state = State::Ended;
        }
    });
    started
}

fn join(handle: pthread_t, value: *mut *mut c_void) -> c_int {
    point();
    let ticket = with(|world| {
        let ticket = world.core.tasks.ticket();
        let tasks = &mut world.core.tasks.all;
        let task = tasks
            .iter_mut()
            .rev()
            .find(|task| task.handle == handle as usize)?;
        (task.state != State::Ended).then(|| {
            task.joiners.push(ticket);
            ticket
        })
    });
    if let Some(ticket) = ticket {
        block("the end of a thread", ticket, None);
    }
    real!(pthread_join(handle => pthread_t, value => *mut *mut c_void) -> c_int)
}

replace! {
    fn pthread_create(native: *mut pthread_t, attributes: *const pthread_attr_t, main: Main, argument: *mut c_void) -> c_int;
    if true => create(native, attributes, main, argument)

    fn pthread_join(thread: pthread_t, value: *mut *mut c_void) -> c_int;
    if true => join(thread, value)

    fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int;
    if true => { note_name(name); let _ = thread; 0 }

    fn sched_yield() -> c_int;
    if true => { give_way(); 0 }
}

/// Only threads themselves set their names.
fn note_name(name: *const c_char) {
    // SAFETY: the caller gave a name that ends with 0.
    let name = unsafe { std::ffi::CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned();
    with(|world| world.core.tasks.current().name = name);
}

/// Runs the first thread of the world to its end.
pub(crate) fn run_first(main: impl FnOnce(), baton: Arc<Baton>) {
    last_key();
    let main: Box<Box<dyn FnOnce()>> = Box::new(Box::new(main));
    let argument = Box::into_raw(main).cast();
    let mut native = 0;
    baton.pass();
    let started = start(&raw mut native, std::ptr::null(), call, argument, baton);
    assert_eq!(started, 0, "the host has a thread");
    let nowhere = std::ptr::null_mut::<*mut c_void>();
    real!(pthread_join(native => pthread_t, nowhere => *mut *mut c_void) -> c_int);
}

/// Ends the process without any cleaning up: its other threads wait for ever.
pub(crate) fn exit_at_once(status: i32) -> ! {
    // SAFETY: it takes one number.
    unsafe { libc::_exit(status) }
}

pub(crate) fn set_error(errno: i32) {
    // SAFETY: the place is the calling thread's own.
    unsafe { *libc::__errno_location() = errno }
}

/// Calls what [`run_first`] leaves to its thread.
extern "C" fn call(main: *mut c_void) -> *mut c_void {
    // SAFETY: `run_first` waits for this thread, to which it left a box of this type.
    let main = unsafe { Box::from_raw(main.cast::<Box<dyn FnOnce()>>()) };
    main();
    std::ptr::null_mut()
}
