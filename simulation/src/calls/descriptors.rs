//! What all descriptors have: reading, writing, closing, flags.
#![expect(unsafe_code, reason = "foreign functions")]

use super::sockets::{bytes, receive, room, send_bytes};
use super::{answer, is_ours, polling, replace};
use crate::world::files::{IN, Object};
use crate::world::{point, with};
use libc::{c_int, c_long, c_ulong, c_void, iovec, size_t};

replace! {
    fn close(file: c_int) -> c_int;
    if is_ours(file) => { point(); answer(with(|world| world.files.close(&mut world.core, file)).map(|()| 0)) as c_int }

    fn read(file: c_int, into: *mut c_void, count: size_t) -> isize;
    if is_ours(file) => answer(read_ours(file, into, count)) as isize

    fn write(file: c_int, from: *const c_void, count: size_t) -> isize;
    if is_ours(file) => answer(write_ours(file, from, count)) as isize

    fn readv(file: c_int, parts: *const iovec, count: c_int) -> isize;
    if is_ours(file) => answer(receive(file, room(parts, count as usize), 0)) as isize

    fn writev(file: c_int, parts: *const iovec, count: c_int) -> isize;
    if is_ours(file) => answer(send_bytes(file, bytes(parts, count as usize), 0)) as isize

    fn fcntl(file: c_int, command: c_int, argument: c_long) -> c_int;
    if is_ours(file) => answer(control(file, command, argument)) as c_int

    fn ioctl(file: c_int, request: c_ulong, argument: *mut c_int) -> c_int;
    if is_ours(file) => answer(ioctl_ours(file, request, argument)) as c_int
}

fn is_stream(file: c_int) -> Result<bool, i32> {
    with(|world| {
        let id = world.files.id(file)?;
        Ok(matches!(world.files.file(id)?.object, Object::Stream(_)))
    })
}

fn read_ours(file: c_int, into: *mut c_void, count: usize) -> Result<i64, i32> {
    if is_stream(file)? {
        let part = iovec {
            iov_base: into,
            iov_len: count,
        };
        return receive(file, room(&part, 1), 0).map(|count| count as i64);
    }
    let count = polling::read_count(file)?;
    // SAFETY: the caller gave room for eight bytes, which bells and timers ask for.
    unsafe { into.cast::<u64>().write_unaligned(count) };
    Ok(8)
}

fn write_ours(file: c_int, from: *const c_void, count: usize) -> Result<i64, i32> {
    if is_stream(file)? {
        let part = iovec {
            iov_base: from.cast_mut(),
            iov_len: count,
        };
        return send_bytes(file, bytes(&part, 1), 0).map(|count| count as i64);
    }
    point();
    // SAFETY: the caller gave eight bytes, which bells ask for.
    let more = unsafe { from.cast::<u64>().read_unaligned() };
    with(|world| {
        let id = world.files.id(file)?;
        let Object::Bell { rings } = &mut world.files.file(id)?.object else {
            return Err(libc::EINVAL);
        };
        *rings = rings.saturating_add(more);
        world.files.notify(&mut world.core, id, IN);
        Ok(8)
    })
}

pub(super) fn control(file: c_int, command: c_int, argument: c_long) -> Result<i32, i32> {
    with(|world| {
        let id = world.files.id(file)?;
        match command {
            libc::F_GETFD => Ok(libc::FD_CLOEXEC),
            libc::F_SETFD => Ok(0),
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => world.files.describe(&world.core, id, 0),
            // Another process has none.
            libc::F_OFD_SETLK | libc::F_OFD_SETLKW => Ok(0),
            libc::F_OFD_GETLK => {
                let lock = argument as *mut libc::flock64;
                // SAFETY: the caller gave the structure.
                unsafe { (*lock).l_type = libc::F_UNLCK as i16 };
                Ok(0)
            }
            libc::F_GETFL if world.files.file(id)?.is_nonblocking => {
                Ok(libc::O_RDWR | libc::O_NONBLOCK)
            }
            libc::F_GETFL => Ok(libc::O_RDWR),
            libc::F_SETFL => {
                world.files.file(id)?.is_nonblocking = argument as c_int & libc::O_NONBLOCK != 0;
                Ok(0)
            }
            _ => Err(libc::EINVAL),
        }
    })
}

fn ioctl_ours(file: c_int, request: c_ulong, argument: *mut c_int) -> Result<i32, i32> {
    point();
    with(|world| {
        let id = world.files.id(file)?;
        match request {
            libc::FIONBIO => {
                // SAFETY: the caller gave a number.
                world.files.file(id)?.is_nonblocking = unsafe { *argument } != 0;
            }
            libc::TIOCOUTQ => {
                let bytes = world.files.connected(id)?.on_the_way;
                // SAFETY: the caller gave a place for a number.
                unsafe { *argument = bytes as c_int };
            }
            _ => return Err(libc::ENOTTY),
        }
        Ok(0)
    })
}
