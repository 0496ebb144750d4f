//! What the kernel's operations cost.
//!
//! The measuring task has priority 2. Its partners have 3, so that they run as soon as they can, and one has the same priority.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use freertos_in_rust::kernel::tasks::{
    vTaskDelay, vTaskPrioritySet, vTaskResume, xTaskGetCurrentTaskHandle,
};
use freertos_in_rust::port::portYIELD;
use freertos_in_rust::sync::{
    BinarySemaphore, Mutex, Queue, TaskContext, TaskHandle, suspend_self,
};
use rtorb_board::sampling::{self, HandOver, WAKEUPS, less, timed};
use rtorb_board::ticks::Ticks;
use rtorb_board::{Report, interrupt_load, timer};

use crate::{IRQ_PRIORITY, PRIORITY, calls};

const PARTNER_STACK_WORDS: usize = 512;
/// More urgent than the measuring task.
const URGENT: u32 = PRIORITY + 1;
/// Octets of a message, as os/services has them.
const MESSAGE_BYTES: usize = 64;
/// What all tasks use.
struct Shared {
    /// Of the partner that suspends itself.
    suspended: HandOver,
    semaphore: BinarySemaphore,
    semaphore_taken: HandOver,
    requests: Queue<[u8; MESSAGE_BYTES]>,
    replies: Queue<[u8; MESSAGE_BYTES]>,
    mutex: Mutex<u32>,
    /// Lets a partner ask for the mutex.
    ask: BinarySemaphore,
    /// From the release of the mutex until the partner has it.
    released: HandOver,
    /// From when the partner asks for the mutex, which the measuring task holds, until it has it.
    asked: HandOver,
    /// Lets a partner of the same priority yield while `yields` is set.
    begin_yields: BinarySemaphore,
    yields: AtomicBool,
    /// A task at which [`vTaskResume`] does something.
    suspending_task: AtomicU32,
}

/// Measures in so many rounds. The tasks that it starts are there for good: it is called once.
pub fn measure(context: &TaskContext, rounds: u32, report: &mut Report) -> Option<()> {
    let shared: &'static Shared = Box::leak(Box::new(Shared::new(context)?));
    start_partners(context, shared)?;
    let cubit = calls::cubit_of_task(context, URGENT);
    timer::begin();
    let mut ticks = Ticks::running();
    for round in 0..rounds {
        ticks.stop();
        switches(context, shared, round, report);
        synchronization(context, shared, round, report);
        report.calls(round, &cubit);
        report.samples(round, "tick", &ticks.cost());
        wake_ups(round, &ticks, report);
    }
    Some(())
}

fn switches(context: &TaskContext, shared: &Shared, round: u32, report: &mut Report) {
    shared.yields.store(true, Ordering::Relaxed);
    shared.begin_yields.give(context);
    let two = sampling::of(|| timed(|| portYIELD()));
    shared.yields.store(false, Ordering::Relaxed);
    // The partner comes to where it waits.
    portYIELD();
    report.samples(round, "yield", &two.map(|instructions| instructions / 2));
    let task = shared.suspending_task.load(Ordering::Relaxed) as *mut c_void;
    // SAFETY: the task lives for ever.
    let resume = || unsafe { vTaskResume(task) };
    let resumed = sampling::of(|| {
        shared.suspended.begin();
        resume();
        shared.suspended.counts()
    });
    // Not suspended is what a task is for itself.
    let itself = xTaskGetCurrentTaskHandle();
    // SAFETY: it lives, and this call does nothing.
    let nothing = sampling::of(|| timed(|| unsafe { vTaskResume(itself) }));
    report.samples(round, "suspend_resume", &less(resumed, nothing));
}

fn synchronization(context: &TaskContext, shared: &Shared, round: u32, report: &mut Report) {
    let alone = sampling::of(|| timed(|| drop(shared.mutex.lock(context))));
    report.samples(round, "mutex", &alone);
    let release = sampling::of(|| {
        let held = shared.mutex.lock(context);
        timed(|| drop(held))
    });
    let contended = |hand_over: &HandOver| {
        let held = shared.mutex.lock(context);
        // The partner runs until it waits for the mutex.
        shared.ask.give(context);
        shared.released.begin();
        drop(held);
        hand_over.counts()
    };
    let handed = sampling::of(|| contended(&shared.released));
    report.samples(round, "synchronized", &less(handed, release));
    let inherited = sampling::of(|| contended(&shared.asked));
    report.samples(round, "inheritance", &inherited);
    let semaphore = sampling::of(|| {
        shared.semaphore_taken.begin();
        shared.semaphore.give(context);
        shared.semaphore_taken.counts()
    });
    report.samples(round, "semaphore", &semaphore);
    let message = sampling::of(|| {
        timed(|| {
            shared.requests.send(context, &[7; MESSAGE_BYTES]);
            shared.replies.receive(context);
        })
    });
    report.samples(round, "message", &message);
}

/// How late a task wakes at a tick, in peace and under interrupts.
fn wake_ups(round: u32, ticks: &Ticks, report: &mut Report) {
    set_priority(URGENT);
    report.samples(round, "wakeup", &lateness(ticks));
    // SAFETY: the handler of all interrupts serves it, without a call of the kernel.
    unsafe { interrupt_load::begin(round, IRQ_PRIORITY) }
    report.samples(round, "wakeup_under_interrupts", &lateness(ticks));
    interrupt_load::end();
    set_priority(PRIORITY);
}

fn lateness(ticks: &Ticks) -> [u32; WAKEUPS] {
    core::array::from_fn(|_| {
        // SAFETY: a task calls this for itself.
        unsafe { vTaskDelay(1) }
        ticks.since_last()
    })
}

fn set_priority(priority: u32) {
    // SAFETY: a task calls this for itself, and the priority is one of the kernel's.
    unsafe { vTaskPrioritySet(core::ptr::null_mut(), priority) }
}

impl Shared {
    fn new(context: &TaskContext) -> Option<Self> {
        Some(Self {
            suspended: HandOver::new(),
            semaphore: BinarySemaphore::new(context)?,
            semaphore_taken: HandOver::new(),
            requests: Queue::new(context, 1)?,
            replies: Queue::new(context, 1)?,
            mutex: Mutex::new(context, 0)?,
            ask: BinarySemaphore::new(context)?,
            released: HandOver::new(),
            asked: HandOver::new(),
            begin_yields: BinarySemaphore::new(context)?,
            yields: AtomicBool::new(false),
            suspending_task: AtomicU32::new(0),
        })
    }
}

fn start_partners(context: &TaskContext, shared: &'static Shared) -> Option<()> {
    let partners: [(&[u8], u32, extern "C" fn(*mut c_void)); 5] = [
        (b"suspend", URGENT, suspend),
        (b"semaphore", URGENT, take_semaphore),
        (b"queue", URGENT, answer_messages),
        (b"mutex", URGENT, lock_mutex),
        (b"yield", PRIORITY, yield_in_turn),
    ];
    for (name, priority, task) in partners {
        let parameter = core::ptr::from_ref(shared).cast_mut().cast();
        // SAFETY: what is shared lives for ever, and may be shared between tasks.
        let started = unsafe {
            TaskHandle::spawn_with_param(
                context,
                name,
                PARTNER_STACK_WORDS,
                priority,
                task,
                parameter,
            )
        };
        let handle = started.ok()?.into_raw() as u32;
        if name == b"suspend" {
            shared.suspending_task.store(handle, Ordering::Relaxed);
        }
    }
    Some(())
}

/// What a partner shares with the measuring task, and its right to call the kernel.
fn partner(shared: *mut c_void) -> (&'static Shared, TaskContext) {
    // SAFETY: it is what all share, which lives for ever.
    let shared = unsafe { &*shared.cast::<Shared>() };
    // SAFETY: a task calls this.
    (shared, unsafe { TaskContext::assume() })
}

extern "C" fn suspend(parameter: *mut c_void) {
    let (shared, context) = partner(parameter);
    loop {
        suspend_self(&context);
        shared.suspended.end();
    }
}

extern "C" fn take_semaphore(parameter: *mut c_void) {
    let (shared, context) = partner(parameter);
    loop {
        shared.semaphore.take(&context);
        shared.semaphore_taken.end();
    }
}

extern "C" fn answer_messages(parameter: *mut c_void) {
    let (shared, context) = partner(parameter);
    loop {
        if let Some(request) = shared.requests.receive(&context) {
            shared.replies.send(&context, &request);
        }
    }
}

extern "C" fn lock_mutex(parameter: *mut c_void) {
    let (shared, context) = partner(parameter);
    loop {
        shared.ask.take(&context);
        shared.asked.begin();
        let held = shared.mutex.lock(&context);
        shared.released.end();
        shared.asked.end();
        drop(held);
    }
}

extern "C" fn yield_in_turn(parameter: *mut c_void) {
    let (shared, context) = partner(parameter);
    loop {
        shared.begin_yields.take(&context);
        while shared.yields.load(Ordering::Relaxed) {
            portYIELD();
        }
    }
}
