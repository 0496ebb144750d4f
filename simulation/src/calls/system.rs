//! System calls by their numbers: futexes, scheduling, and what else the C library has no function for.
#![expect(unsafe_code, reason = "foreign functions")]

use super::clocks::nanoseconds;
use super::real;
use super::word::Word;
use super::{answer, descriptors, is_ours, polling, replace};
use crate::world::futexes::Locking;
use crate::world::tasks::{Policy, Tasks, Ticket, Woken};
use crate::world::{World, block, point, with};
use libc::{c_int, c_long, c_uint, c_void, size_t, timespec};

/// The arguments of a system call behind its number.
type Arguments = [c_long; 6];

replace! {
    fn syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long;
    if true => call(number, [a, b, c, d, e, f])

    fn gettid() -> c_int;
    if true => with(|world| Tasks::number(world.core.tasks.current))

    /// The same in all processes, as references have it.
    fn getpid() -> c_int;
    if true => Tasks::number(0)

    fn getrandom(into: *mut c_void, bytes: size_t, flags: c_uint) -> isize;
    if true => { let _ = flags; draw(into, bytes) as isize }

    fn sched_setaffinity(thread: c_int, bytes: size_t, set: *const c_void) -> c_int;
    if true => { let _ = (thread, bytes, set); 0 }

    fn sched_getaffinity(thread: c_int, bytes: size_t, set: *mut c_void) -> c_int;
    if true => { let _ = thread; real!(sched_getaffinity(0 => c_int, bytes => size_t, set => *mut c_void) -> c_int) }
}

fn call(number: c_long, arguments: Arguments) -> c_long {
    let [a, b, c, d, ..] = arguments;
    match number {
        libc::SYS_futex => answer(futex(arguments)),
        libc::SYS_fcntl if is_ours(a as c_int) => {
            answer(descriptors::control(a as c_int, b as c_int, c))
        }
        libc::SYS_gettid => with(|world| Tasks::number(world.core.tasks.current)).into(),
        libc::SYS_getrandom => draw(a as *mut c_void, b as usize),
        libc::SYS_eventfd2 => answer(polling::bell(a as u64, b as c_int)),
        libc::SYS_epoll_pwait2 => {
            // SAFETY: the caller gave a time, or null.
            let time = unsafe { nanoseconds(d as *const timespec) };
            polling::wait_for_events(a as c_int, b as *mut libc::epoll_event, c as c_int, time)
                .into()
        }
        libc::SYS_sched_setscheduler => answer(set_policy(a, Some(b as c_int), priority_at(c))),
        libc::SYS_sched_setparam => answer(set_policy(a, None, priority_at(b))),
        libc::SYS_sched_setattr => answer(set_attributes(a, b)),
        libc::SYS_sched_getattr => answer(attributes(a, b)),
        libc::SYS_capget => capabilities(arguments),
        _ => real::system_call(number, arguments),
    }
}

fn draw(into: *mut c_void, bytes: usize) -> c_long {
    // SAFETY: the caller gave room for so many bytes.
    let room = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes) };
    with(|world| room.fill_with(|| world.core.random.number() as u8));
    bytes as c_long
}

fn futex(arguments: Arguments) -> Result<i64, i32> {
    let [word, operation, value, time, second, bits] = arguments;
    // SAFETY: the caller's word is there during the call, and the world forgets it with the call.
    let word = unsafe { Word::at(word as usize) };
    let (value, bits) = (value as u32, bits as u32);
    point();
    let command = operation as c_int & libc::FUTEX_CMD_MASK;
    match command {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAIT_REQUEUE_PI => {
            // SAFETY: the caller gave a time, or null.
            let time = unsafe { nanoseconds(time as *const timespec) };
            // SAFETY: as for the first word.
            let lock = unsafe { Word::at(second as usize) };
            let lock = (command == libc::FUTEX_WAIT_REQUEUE_PI).then_some(lock);
            let bits = if command == libc::FUTEX_WAIT_BITSET {
                bits
            } else {
                u32::MAX
            };
            let (ticket, now_ns) = with(|world| {
                let World { core, futexes, .. } = world;
                futexes
                    .wait(core, word, value, bits, lock)
                    .map(|ticket| (ticket, core.now_ns))
            })?;
            let from_ns = if command == libc::FUTEX_WAIT {
                now_ns
            } else {
                0
            };
            sleep("a futex", ticket, time.map(|ns| ns.saturating_add(from_ns)))
        }
        libc::FUTEX_WAKE => Ok(with(|world| {
            world.futexes.wake(&mut world.core, word, value, u32::MAX)
        })),
        libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
            // SAFETY: the caller gave a time, or null.
            let until_ns = unsafe { nanoseconds(time as *const timespec) };
            match with(|world| world.futexes.lock(&mut world.core, word))? {
                Locking::Held => Ok(0),
                Locking::Waits(ticket) => sleep("a lock", ticket, until_ns),
            }
        }
        libc::FUTEX_UNLOCK_PI => {
            with(|world| world.futexes.unlock(&mut world.core, word)).map(|()| 0)
        }
        libc::FUTEX_CMP_REQUEUE_PI => {
            // SAFETY: as for the first word.
            let lock = unsafe { Word::at(second as usize) };
            with(|world| {
                world
                    .futexes
                    .requeue(&mut world.core, word, lock, bits, time as u32)
            })
        }
        _ => Err(libc::ENOSYS),
    }
}

const FUTEX_LOCK_PI2: c_int = 13;

fn sleep(waits_for: &'static str, ticket: Ticket, until_ns: Option<u64>) -> Result<i64, i32> {
    with(|world| world.futexes.inherit(&mut world.core.tasks));
    if block(waits_for, ticket, until_ns) == Woken::ByEvent {
        return Ok(0);
    }
    with(|world| world.futexes.give_up(&mut world.core, ticket));
    Err(libc::ETIMEDOUT)
}

fn priority_at(address: c_long) -> u32 {
    // SAFETY: the caller gave the kernel's structure, which is one number.
    unsafe { *(address as *const u32) }
}

fn set_policy(thread: c_long, number: Option<c_int>, priority: u32) -> Result<i64, i32> {
    point();
    with(|world| {
        let task = world
            .core
            .tasks
            .numbered(thread as c_int)
            .ok_or(libc::ESRCH)?;
        let number = number.unwrap_or(world.core.tasks.all[task].policy.number);
        let number = number & !libc::SCHED_RESET_ON_FORK;
        let is_real_time = matches!(number, libc::SCHED_FIFO | libc::SCHED_RR);
        if is_real_time != (1..100).contains(&priority) {
            return Err(libc::EINVAL);
        }
        world
            .core
            .tasks
            .set_policy(task, Policy { number, priority });
        world.futexes.inherit(&mut world.core.tasks);
        Ok(())
    })?;
    // A thread that is lowered is preempted here.
    point();
    Ok(0)
}

fn set_attributes(thread: c_long, attributes: c_long) -> Result<i64, i32> {
    // SAFETY: the caller gave the structure.
    let number = unsafe { (*(attributes as *const libc::sched_attr)).sched_policy } as c_int;
    with(|world| {
        let task = world
            .core
            .tasks
            .numbered(thread as c_int)
            .ok_or(libc::ESRCH)?;
        world.core.tasks.set_policy(
            task,
            Policy {
                number,
                priority: 0,
            },
        );
        world.futexes.inherit(&mut world.core.tasks);
        Ok(0)
    })
}

fn attributes(thread: c_long, into: c_long) -> Result<i64, i32> {
    let policy = with(|world| {
        let task = world
            .core
            .tasks
            .numbered(thread as c_int)
            .ok_or(libc::ESRCH)?;
        Ok::<_, i32>(world.core.tasks.all[task].policy)
    })?;
    let into = into as *mut libc::sched_attr;
    // SAFETY: the caller gave room for the structure.
    unsafe { (*into).sched_policy = policy.number as u32 };
    // SAFETY: as above.
    unsafe { (*into).sched_priority = policy.priority };
    Ok(0)
}

/// The world allows every priority.
fn capabilities(arguments: Arguments) -> c_long {
    const SYS_NICE: u32 = 1 << 23;
    let returned = real::system_call(libc::SYS_capget, arguments);
    let effective = arguments[1] as *mut u32;
    if returned == 0 && !effective.is_null() {
        // SAFETY: the kernel has just written the structure, whose first number this is.
        unsafe { *effective |= SYS_NICE };
    }
    returned
}
