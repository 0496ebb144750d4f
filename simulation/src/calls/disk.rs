//! Files of the simulated disk: those whose path begins with [`FOLDER`].
#![expect(unsafe_code, reason = "foreign functions")]

use super::sockets::{bytes, room};
use super::{answer, is_ours, replace, sleep_until};
use crate::world::disk::InodeId;
use crate::world::files::Object;
use crate::world::{World, point, with};
use libc::{c_char, c_int, c_uint, c_void, iovec, off64_t, size_t, stat64};
use std::ffi::CStr;

/// The one folder of the disk.
pub(crate) const FOLDER: &str = "/simulated";

replace! {
    fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    if is_on_disk(path) => { let _ = mode; answer(open(path, flags)) as c_int }

    fn unlink(path: *const c_char) -> c_int;
    if is_on_disk(path) => { point(); answer(with(|world| world.disk.unlink(&mut world.core, text(path))).map(|()| 0)) as c_int }

    fn linkat(_folder: c_int, from: *const c_char, _to_folder: c_int, to: *const c_char, _flags: c_int) -> c_int;
    if is_on_disk(from) => { point(); answer(with(|world| world.disk.link(&mut world.core, text(from), text(to))).map(|()| 0)) as c_int }

    fn lstat64(path: *const c_char, into: *mut stat64) -> c_int;
    if is_on_disk(path) => answer(with(|world| world.disk.inode(text(path))).map(|inode| {
        // SAFETY: the caller gave room for the structure.
        unsafe { (*into).st_dev = DEVICE };
        // SAFETY: as above.
        unsafe { (*into).st_ino = inode };
        0
    })) as c_int

    fn statx(file: c_int, path: *const c_char, flags: c_int, mask: c_uint, into: *mut libc::statx) -> c_int;
    if is_ours(file) => { let _ = (path, flags, mask); answer(describe(file, into)) as c_int }

    fn pread64(file: c_int, into: *mut c_void, count: size_t, offset: off64_t) -> isize;
    if is_ours(file) => { point(); answer(act(file, |world, inode| {
        let part = iovec { iov_base: into, iov_len: count };
        world.disk.read(&mut world.core, inode, offset as u64, room(&part, 1))
    })) as isize }

    fn pwrite64(file: c_int, from: *const c_void, count: size_t, offset: off64_t) -> isize;
    if is_ours(file) => { point(); answer(act(file, |world, inode| {
        let part = iovec { iov_base: from.cast_mut(), iov_len: count };
        world.disk.write(&mut world.core, inode, offset as u64, &bytes(&part, 1))
    })) as isize }

    fn ftruncate64(file: c_int, length: off64_t) -> c_int;
    if is_ours(file) => { point(); answer(act(file, |world, inode| {
        world.disk.set_length(&mut world.core, inode, length as u64).map(|()| 0)
    })) as c_int }

    fn fdatasync(file: c_int) -> c_int;
    if is_ours(file) => answer(sync(file)) as c_int

    fn fsync(file: c_int) -> c_int;
    if is_ours(file) => answer(sync(file)) as c_int

    fn flock(file: c_int, operation: c_int) -> c_int;
    if is_ours(file) => { let _ = operation; 0 }
}

/// The number of the disk among the devices of the host.
const DEVICE: u64 = 1;

fn text<'p>(path: *const c_char) -> &'p str {
    // SAFETY: the caller gave a path that ends with 0, and keeps it during the call.
    let path = unsafe { CStr::from_ptr(path) };
    path.to_str().unwrap_or_default()
}

fn is_on_disk(path: *const c_char) -> bool {
    text(path).starts_with(FOLDER)
}

fn open(path: *const c_char, flags: c_int) -> Result<i32, i32> {
    point();
    let path = text(path);
    with(|world| {
        let World {
            core, disk, files, ..
        } = world;
        let object = match disk.inode(path) {
            _ if path == FOLDER => Object::Folder,
            Ok(_) if flags & libc::O_EXCL != 0 => return Err(libc::EEXIST),
            Err(_) if flags & libc::O_CREAT != 0 => Object::OnDisk(disk.create(core, path)?),
            inode => Object::OnDisk(inode?),
        };
        files.create(core, object, 0)
    })
}

/// Does something with a file of the disk.
fn act<T>(file: c_int, act: impl FnOnce(&mut World, InodeId) -> Result<T, i32>) -> Result<T, i32> {
    with(|world| {
        let id = world.files.id(file)?;
        match world.files.file(id)?.object {
            Object::OnDisk(inode) => act(world, inode),
            _ => Err(libc::EINVAL),
        }
    })
}

fn describe(file: c_int, into: *mut libc::statx) -> Result<i32, i32> {
    act(file, |world, inode| {
        let length = world.disk.length(inode);
        // SAFETY: numbers may all be 0.
        let mut known: libc::statx = unsafe { std::mem::zeroed() };
        known.stx_mask = libc::STATX_BASIC_STATS;
        known.stx_mode = (libc::S_IFREG | 0o600) as u16;
        (known.stx_nlink, known.stx_ino, known.stx_size) = (1, inode, length);
        // SAFETY: the caller gave room for the structure.
        unsafe { into.write(known) };
        Ok(0)
    })
}

fn sync(file: c_int) -> Result<i32, i32> {
    point();
    let is_folder = with(|world| {
        let id = world.files.id(file)?;
        Ok::<_, i32>(matches!(world.files.file(id)?.object, Object::Folder))
    })?;
    if is_folder {
        let takes_ns = with(|world| world.disk.sync_names(&mut world.core))?;
        sleep_until(with(|world| world.core.now_ns) + takes_ns);
        return Ok(0);
    }
    let (until, takes_ns) = act(file, |world, inode| {
        world.disk.begin_sync(&mut world.core, inode)
    })?;
    sleep_until(with(|world| world.core.now_ns) + takes_ns);
    act(file, |world, inode| {
        world.disk.end_sync(&mut world.core, inode, until)
    })?;
    Ok(0)
}
