//! Waiting for descriptors: poll, epoll, bells and timers.
#![expect(unsafe_code, reason = "foreign functions")]

use super::clocks::nanoseconds;
use super::{answer, is_ours, replace, until_ready};
use crate::world::epolls::{Epoll, Item};
use crate::world::files::Object;
use crate::world::tasks::Woken;
use crate::world::{block, point, with};
use libc::{c_int, c_uint, c_void, epoll_event, itimerspec, nfds_t, pollfd, timespec};

replace! {
    fn poll(files: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int;
    if are_ours(files, count) => poll_ours(files, count, milliseconds(timeout_ms))

    fn ppoll(files: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const c_void) -> c_int;
    // SAFETY: the caller gave a time, or null.
    if are_ours(files, count) => { let _ = mask; poll_ours(files, count, unsafe { nanoseconds(timeout) }) }

    fn epoll_create1(flags: c_int) -> c_int;
    if true => answer(with(|world| world.files.create(&world.core, Object::Epoll(Epoll::default()), flags))) as c_int

    fn epoll_ctl(set: c_int, operation: c_int, file: c_int, event: *const epoll_event) -> c_int;
    if is_ours(set) => answer(control(set, operation, file, event)) as c_int

    fn epoll_wait(set: c_int, events: *mut epoll_event, max: c_int, timeout_ms: c_int) -> c_int;
    if is_ours(set) => wait_for_events(set, events, max, milliseconds(timeout_ms))

    fn eventfd(rings: c_uint, flags: c_int) -> c_int;
    if true => answer(bell(rings.into(), flags)) as c_int

    fn timerfd_create(clock: c_int, flags: c_int) -> c_int;
    if true => {
        let _ = clock;
        let timer = Object::Timer { set: 0, expired: 0 };
        answer(with(|world| world.files.create(&world.core, timer, flags))) as c_int
    }

    fn timerfd_settime(file: c_int, flags: c_int, time: *const itimerspec, old: *mut itimerspec) -> c_int;
    if is_ours(file) => { let _ = old; answer(set_timer(file, flags, time)) as c_int }
}

fn milliseconds(timeout_ms: c_int) -> Option<u64> {
    u64::try_from(timeout_ms).ok().map(|ms| ms * 1_000_000)
}

pub(super) fn bell(rings: u64, flags: c_int) -> Result<i64, i32> {
    let created = with(|world| {
        world
            .files
            .create(&world.core, Object::Bell { rings }, flags)
    });
    created.map(i64::from)
}

fn set_timer(file: c_int, flags: c_int, time: *const itimerspec) -> Result<i64, i32> {
    point();
    // SAFETY: the caller gave the structure.
    let time = unsafe { nanoseconds(&raw const (*time).it_value) };
    let time = time.filter(|ns| *ns > 0);
    with(|world| {
        let id = world.files.id(file)?;
        let from_ns = if flags & libc::TFD_TIMER_ABSTIME == 0 {
            world.core.now_ns
        } else {
            0
        };
        world.files.set_timer(
            &mut world.core,
            id,
            time.map(|ns| ns.saturating_add(from_ns)),
        )?;
        Ok(0)
    })
}

fn control(
    set: c_int,
    operation: c_int,
    file: c_int,
    event: *const epoll_event,
) -> Result<i64, i32> {
    point();
    // SAFETY: the caller gave an event, or null to delete.
    let event = unsafe { event.as_ref() };
    let item = event.map_or(
        Item {
            interest: 0,
            data: 0,
        },
        |event| Item {
            interest: event.events,
            data: event.u64,
        },
    );
    with(|world| {
        let (set, file) = (world.files.id(set)?, world.files.id(file)?);
        world
            .files
            .control(&mut world.core, set, operation, file, item)?;
        Ok(0)
    })
}

pub(super) fn wait_for_events(
    set: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: Option<u64>,
) -> c_int {
    answer(take_events(set, events, max, timeout)) as c_int
}

fn take_events(
    set: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: Option<u64>,
) -> Result<i64, i32> {
    point();
    let until_ns = timeout.map(|ns| with(|world| world.core.now_ns).saturating_add(ns));
    loop {
        let (taken, ticket) = with(|world| {
            let id = world.files.id(set)?;
            let taken = world.files.take_events(&mut world.core, id, max as usize)?;
            if !taken.is_empty() || until_ns.is_some_and(|at_ns| at_ns <= world.core.now_ns) {
                return Ok::<_, i32>((taken, None));
            }
            let ticket = world.core.tasks.ticket();
            if let Some(epoll) = world.files.epoll(id) {
                epoll.wait(ticket);
            }
            Ok((taken, Some(ticket)))
        })?;
        let Some(ticket) = ticket else {
            for (number, (flags, data)) in taken.iter().enumerate() {
                let event = epoll_event {
                    events: *flags,
                    u64: *data,
                };
                // SAFETY: the caller gave room for `max` events.
                unsafe { events.add(number).write(event) };
            }
            return Ok(taken.len() as i64);
        };
        block("epoll", ticket, until_ns);
    }
}

fn slice<'a>(files: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: the caller of poll gave so many, and uses them after the call.
    unsafe { std::slice::from_raw_parts_mut(files, count as usize) }
}

fn are_ours(files: *mut pollfd, count: nfds_t) -> bool {
    slice(files, count).iter().all(|file| is_ours(file.fd))
}

fn poll_ours(files: *mut pollfd, count: nfds_t, timeout: Option<u64>) -> c_int {
    point();
    let files = slice(files, count);
    let until_ns = timeout.map(|ns| with(|world| world.core.now_ns).saturating_add(ns));
    loop {
        let (ready, ticket) = with(|world| {
            for file in &mut *files {
                let id = world.files.id(file.fd);
                let now = id.map_or(libc::POLLNVAL as u32, |id| {
                    world.files.readiness(&world.core, id)
                });
                let always = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
                // The bits of poll and epoll are the same.
                file.revents = now as i16 & (file.events | always);
            }
            let ready = files.iter().filter(|file| file.revents != 0).count();
            if ready > 0 || until_ns.is_some_and(|at_ns| at_ns <= world.core.now_ns) {
                return (ready, None);
            }
            let ticket = world.core.tasks.ticket();
            for file in &*files {
                if let Ok(id) = world.files.id(file.fd) {
                    world.files.wait(id, ticket);
                }
            }
            (0, Some(ticket))
        });
        let Some(ticket) = ticket else {
            return ready as c_int;
        };
        if block("poll", ticket, until_ns) == Woken::ByTime && until_ns.is_none() {
            return 0;
        }
    }
}

/// Reads the count of a bell or a timer.
pub(super) fn read_count(file: c_int) -> Result<u64, i32> {
    until_ready("a bell or timer", file, false, |world, id| {
        world.files.take_count(id)
    })
}
