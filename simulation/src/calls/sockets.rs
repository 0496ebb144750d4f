//! Stream sockets, TCP and UNIX.
#![expect(unsafe_code, reason = "foreign functions")]

use super::{answer, is_ours, replace, until_ready};
use crate::world::files::Object;
use crate::world::streams::{Domain, Listener};
use crate::world::{point, with};
use libc::{c_int, c_void, iovec, msghdr, size_t, sockaddr, sockaddr_in, sockaddr_un, socklen_t};
use std::mem::MaybeUninit;

replace! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    if is_simulated(domain, kind) => { let _ = protocol; answer(create(domain, kind)) as c_int }

    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int;
    if is_simulated(domain, kind) => { let _ = protocol; answer(create_pair(kind, pair)) as c_int }

    fn bind(file: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    if is_ours(file) => answer(bind_ours(file, address, length)) as c_int

    fn listen(file: c_int, queue: c_int) -> c_int;
    if is_ours(file) => { let _ = queue; answer(listen_ours(file)) as c_int }

    fn accept4(file: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    if is_ours(file) => { let _ = (address, length); answer(accept(file, flags)) as c_int }

    fn connect(file: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    if is_ours(file) => answer(connect_ours(file, address, length)) as c_int

    fn shutdown(file: c_int, how: c_int) -> c_int;
    if is_ours(file) => {
        point();
        let shut = with(|world| { let id = world.files.id(file)?; world.files.shut(&mut world.core, id, how) });
        answer(shut.map(|()| 0)) as c_int
    }

    fn send(file: c_int, from: *const c_void, count: size_t, flags: c_int) -> isize;
    if is_ours(file) => answer(send_parts(file, &iovec { iov_base: from.cast_mut(), iov_len: count }, 1, flags)) as isize

    fn recv(file: c_int, into: *mut c_void, count: size_t, flags: c_int) -> isize;
    if is_ours(file) => answer(receive(file, room(&iovec { iov_base: into, iov_len: count }, 1), flags)) as isize

    fn sendmsg(file: c_int, message: *const msghdr, flags: c_int) -> isize;
    // SAFETY: the caller gave a message.
    if is_ours(file) => answer(unsafe { send_parts(file, (*message).msg_iov, (*message).msg_iovlen, flags) }) as isize

    fn getsockname(file: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    if is_ours(file) => answer(name(file, address, length, true)) as c_int

    fn getpeername(file: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    if is_ours(file) => answer(name(file, address, length, false)) as c_int

    fn setsockopt(file: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) -> c_int;
    if is_ours(file) => { let _ = (level, option, value, length); 0 }

    fn getsockopt(file: c_int, level: c_int, option: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
    if is_ours(file) => answer(option_of(file, level, option, value.cast(), length)) as c_int
}

fn is_simulated(domain: c_int, kind: c_int) -> bool {
    matches!(domain, libc::AF_INET | libc::AF_UNIX) && kind & 0xf == libc::SOCK_STREAM
}

fn create(domain: c_int, kind: c_int) -> Result<i32, i32> {
    point();
    let domain = if domain == libc::AF_UNIX {
        Domain::Unix
    } else {
        Domain::Tcp
    };
    with(|world| {
        world
            .files
            .create(&world.core, Object::Socket(domain, None), kind)
    })
}

fn create_pair(kind: c_int, pair: *mut c_int) -> Result<i32, i32> {
    point();
    let ends = with(|world| {
        let names = [String::new(), String::new()];
        let ends = world.files.pair(&mut world.core, Domain::Unix, names);
        Ok::<_, i32>([
            world.files.describe(&world.core, ends[0], kind)?,
            world.files.describe(&world.core, ends[1], kind)?,
        ])
    })?;
    // SAFETY: the caller gave room for two numbers.
    unsafe { pair.cast::<[c_int; 2]>().write(ends) };
    Ok(0)
}

/// An address as text.
fn text(address: *const sockaddr, length: socklen_t) -> Result<String, i32> {
    // SAFETY: the caller gave an address.
    match c_int::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says so.
            let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let [a, b, c, d] = address.sin_addr.s_addr.to_ne_bytes();
            Ok(format!(
                "{a}.{b}.{c}.{d}:{}",
                u16::from_be(address.sin_port)
            ))
        }
        libc::AF_UNIX => {
            let count = (length as usize).saturating_sub(size_of::<libc::sa_family_t>());
            let path = address
                .cast::<u8>()
                .wrapping_add(size_of::<libc::sa_family_t>());
            // SAFETY: the address has so many bytes behind its family.
            let path = unsafe { std::slice::from_raw_parts(path, count) };
            let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
            Ok(String::from_utf8_lossy(path).into_owned())
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

fn bind_ours(file: c_int, address: *const sockaddr, length: socklen_t) -> Result<i32, i32> {
    point();
    let mut address = text(address, length)?;
    with(|world| {
        let id = world.files.id(file)?;
        if matches!(
            world.files.file(id)?.object,
            Object::Socket(Domain::Unix, _)
        ) {
            let made = world.disk.create(&mut world.core, &address);
            made.map_err(|_| libc::EADDRINUSE)?;
        }
        if let Some(host) = address.strip_suffix(":0") {
            world.files.next_port += 1;
            address = format!("{host}:{}", 20_000 + world.files.next_port % 20_000);
        }
        let is_taken = world.files.open.values().any(|other| match &other.object {
            Object::Socket(_, Some(bound)) => *bound == address,
            Object::Listener(listener) => listener.address == address,
            _ => false,
        });
        match &mut world.files.file(id)?.object {
            Object::Socket(..) if is_taken => Err(libc::EADDRINUSE),
            Object::Socket(_, bound) => {
                *bound = Some(address);
                Ok(0)
            }
            _ => Err(libc::EINVAL),
        }
    })
}

fn listen_ours(file: c_int) -> Result<i32, i32> {
    point();
    with(|world| {
        let id = world.files.id(file)?;
        let object = &mut world.files.file(id)?.object;
        let (domain, address) = match object {
            Object::Socket(domain, Some(address)) => (*domain, std::mem::take(address)),
            // Only the length of its queue changes.
            Object::Listener(_) => return Ok(0),
            _ => return Err(libc::EINVAL),
        };
        *object = Object::Listener(Listener::new(domain, address));
        Ok(0)
    })
}

fn accept(file: c_int, flags: c_int) -> Result<i32, i32> {
    until_ready("a client", file, false, |world, id| {
        world.files.accept(&mut world.core, id, flags)
    })
}

fn connect_ours(file: c_int, address: *const sockaddr, length: socklen_t) -> Result<i32, i32> {
    point();
    let to = text(address, length)?;
    let begun = with(|world| {
        let id = world.files.id(file)?;
        let Object::Socket(domain, _) = world.files.file(id)?.object else {
            return Err(libc::EISCONN);
        };
        if domain == Domain::Unix {
            world.disk.inode(&to)?;
        }
        world.files.connect(&mut world.core, id, domain, to)?;
        Ok(0)
    });
    if begun != Err(libc::EINPROGRESS) {
        return begun;
    }
    until_ready("a server", file, false, |world, id| {
        if world.files.file(id)?.is_nonblocking {
            return Err(libc::EINPROGRESS);
        }
        match world.files.take_error(id) {
            0 if world.files.readiness(&world.core, id) == 0 => Err(libc::EAGAIN),
            0 => Ok(0),
            errno => Err(errno),
        }
    })
}

/// The bytes of a message that is sent.
pub(super) fn bytes(parts: *const iovec, count: usize) -> Vec<u8> {
    // SAFETY: the caller gave so many parts.
    let parts = unsafe { std::slice::from_raw_parts(parts, count) };
    let mut all = Vec::new();
    for part in parts.iter().filter(|part| part.iov_len > 0) {
        // SAFETY: a part has so many bytes.
        all.extend_from_slice(unsafe {
            std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len)
        });
    }
    all
}

/// The first part of the room for received bytes: a call may always receive less than it could.
pub(super) fn room<'a>(parts: *const iovec, count: usize) -> &'a mut [MaybeUninit<u8>] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: the caller gave so many parts.
    let part = unsafe { &*parts };
    // SAFETY: the part has room for so many bytes, and the caller uses it after the call.
    unsafe { std::slice::from_raw_parts_mut(part.iov_base.cast(), part.iov_len) }
}

fn send_parts(file: c_int, parts: *const iovec, count: usize, flags: c_int) -> Result<usize, i32> {
    send_bytes(file, bytes(parts, count), flags)
}

pub(super) fn send_bytes(file: c_int, bytes: Vec<u8>, flags: c_int) -> Result<usize, i32> {
    let is_nonblocking = flags & libc::MSG_DONTWAIT != 0;
    until_ready("room to send", file, is_nonblocking, |world, id| {
        world.files.send(&mut world.core, id, &bytes)
    })
}

pub(super) fn receive(
    file: c_int,
    room: &mut [MaybeUninit<u8>],
    flags: c_int,
) -> Result<usize, i32> {
    let (is_nonblocking, peeks) = (flags & libc::MSG_DONTWAIT != 0, flags & libc::MSG_PEEK != 0);
    until_ready("bytes", file, is_nonblocking, |world, id| {
        world.files.receive(&mut world.core, id, room, peeks)
    })
}

fn name(
    file: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    is_local: bool,
) -> Result<i32, i32> {
    let (domain, name) = with(|world| {
        let id = world.files.id(file)?;
        Ok(match &world.files.file(id)?.object {
            Object::Socket(domain, bound) => (*domain, bound.clone().unwrap_or_default()),
            Object::Listener(listener) => (listener.domain, listener.address.clone()),
            Object::Stream(stream) if is_local => (stream.domain, stream.local.clone()),
            Object::Stream(stream) => (stream.domain, stream.remote.clone()),
            _ => return Err(libc::ENOTSOCK),
        })
    })?;
    if domain == Domain::Unix {
        let family = libc::AF_UNIX as libc::sa_family_t;
        // SAFETY: the caller gave room for an address; without a path it is the family alone.
        unsafe {
            address
                .cast::<sockaddr_un>()
                .cast::<libc::sa_family_t>()
                .write(family)
        };
        // SAFETY: the caller gave a place for the length.
        unsafe { *length = size_of::<libc::sa_family_t>() as socklen_t };
        return Ok(0);
    }
    let known: std::net::SocketAddrV4 = name.parse().map_err(|_| libc::EINVAL)?;
    let known = sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: known.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(known.ip().octets()),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: the caller gave room for an address of this family.
    unsafe { address.cast::<sockaddr_in>().write_unaligned(known) };
    // SAFETY: the caller gave a place for the length.
    unsafe { *length = size_of::<sockaddr_in>() as socklen_t };
    Ok(0)
}

fn option_of(
    file: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_int,
    length: *mut socklen_t,
) -> Result<i32, i32> {
    let known = match (level, option) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            with(|world| Ok::<_, i32>(world.files.take_error(world.files.id(file)?)))?
        }
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => libc::AF_INET,
        _ => 0,
    };
    // SAFETY: the caller gave room for a number.
    unsafe { value.write(known) };
    // SAFETY: the caller gave a place for the length.
    unsafe { *length = size_of::<c_int>() as socklen_t };
    Ok(0)
}
