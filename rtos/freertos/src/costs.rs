//! What the kernel's operations cost, in instructions: the emulator's clock counts them (`-icount shift=0`: one is a nanosecond).

use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::ptr::{read_volatile, write_volatile};
use freertos_in_rust::port::portYIELD;
use freertos_in_rust::sync::{BinarySemaphore, Mutex, Queue, TaskContext, TaskHandle};
use rtorb_embedded_cubit::guest::Cost;

/// The board's first timer counts down at the processor's clock: one in 40 ns.
const TIMER_CONTROL: *mut u32 = 0x4000_0000 as *mut u32;
const TIMER_VALUE: *mut u32 = 0x4000_0004 as *mut u32;
const TIMER_RELOAD: *mut u32 = 0x4000_0008 as *mut u32;
const NS_OF_COUNT: u32 = 40;

/// The kernel's tick, which is stopped meanwhile: its interrupts are no part of the costs.
const SYSTICK_CONTROL: *mut u32 = 0xe000_e010 as *mut u32;

/// Repetitions of each operation.
const ROUNDS: u32 = 1_000;
const STACK_WORDS: usize = 512;

/// What both tasks use. The partner waits for `ask`, and answers by `answer`.
struct Pair {
    ask: BinarySemaphore,
    answer: BinarySemaphore,
    requests: Queue<u32>,
    replies: Queue<u32>,
}

/// The cost of each operation. `priority` is that of the calling task.
///
/// The partner tasks that it starts are there for good: it is called once.
pub fn measured(context: &TaskContext, priority: u32) -> Option<Vec<Cost>> {
    // SAFETY: nothing waits for time to pass while this task measures.
    let ticking = unsafe { read_volatile(SYSTICK_CONTROL) };
    // SAFETY: as above.
    unsafe { write_volatile(SYSTICK_CONTROL, 0) }
    let pair: &'static Pair = alloc::boxed::Box::leak(alloc::boxed::Box::new(Pair {
        ask: BinarySemaphore::new(context)?,
        answer: BinarySemaphore::new(context)?,
        requests: Queue::new(context, 1)?,
        replies: Queue::new(context, 1)?,
    }));
    let partners: [(&[u8], extern "C" fn(*mut c_void)); 2] = [
        (b"semaphore", answer_semaphores),
        (b"queue", answer_messages),
    ];
    for (name, task) in partners {
        let shared = core::ptr::from_ref(pair).cast_mut().cast();
        // SAFETY: the pair lives for ever, and its parts may be shared between tasks.
        unsafe { TaskHandle::spawn_with_param(context, name, STACK_WORDS, priority, task, shared) }
            .ok()?;
    }
    let mutex = Mutex::new(context, 0_u32)?;
    begin_timer();
    let mut costs = Vec::new();
    let mut note = |operation: &str, instructions| {
        costs.push(Cost {
            operation: String::from(operation),
            instructions,
        });
    };
    note("nothing", of(|_| {}));
    // Before the partners wait: nobody else is ready.
    note("mutex", of(|_| drop(mutex.lock(context))));
    note(
        "semaphore",
        of(|_| {
            pair.ask.give(context);
            pair.answer.take(context);
        }),
    );
    note(
        "message",
        of(|round| {
            pair.requests.send(context, &round);
            pair.replies.receive(context);
        }),
    );
    // Both partners wait now: the calling task is the only one that is ready.
    note("yield", of(|_| portYIELD()));
    // SAFETY: the value is the kernel's own.
    unsafe { write_volatile(SYSTICK_CONTROL, ticking) }
    Some(costs)
}

/// Instructions that one execution of `operation` takes, in the mean.
fn of(mut operation: impl FnMut(u32)) -> u32 {
    // The partner comes to the place where it waits.
    operation(0);
    let before = timer();
    for round in 0..ROUNDS {
        operation(round);
    }
    before.wrapping_sub(timer()) * NS_OF_COUNT / ROUNDS
}

extern "C" fn answer_semaphores(pair: *mut c_void) {
    // SAFETY: it is the pair, which lives for ever.
    let pair = unsafe { &*pair.cast::<Pair>() };
    // SAFETY: this is a task.
    let context = unsafe { TaskContext::assume() };
    loop {
        pair.ask.take(&context);
        pair.answer.give(&context);
    }
}

extern "C" fn answer_messages(pair: *mut c_void) {
    // SAFETY: it is the pair, which lives for ever.
    let pair = unsafe { &*pair.cast::<Pair>() };
    // SAFETY: this is a task.
    let context = unsafe { TaskContext::assume() };
    loop {
        if let Some(request) = pair.requests.receive(&context) {
            pair.replies.send(&context, &request);
        }
    }
}

fn begin_timer() {
    // SAFETY: it is the board's first timer, which nothing else uses.
    unsafe { write_volatile(TIMER_RELOAD, u32::MAX) }
    // SAFETY: as above; the one enables it, without an interrupt.
    unsafe { write_volatile(TIMER_CONTROL, 1) }
}

fn timer() -> u32 {
    // SAFETY: as above; reading has no effect.
    unsafe { read_volatile(TIMER_VALUE) }
}
