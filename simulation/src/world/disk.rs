//! A disk: the files as programs see them, what of them is stable, and what a loss of power leaves of the rest.
//!
//! No process has a file open together with another one: locks of files are always granted.

use super::Core;
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;

/// The number of a file on the disk; never used again.
pub(crate) type InodeId = u64;

#[derive(Debug, Default)]
pub(crate) struct Disk {
    inodes: BTreeMap<InodeId, Inode>,
    names: Names,
    stable_names: Names,
    /// The changes of names that are not stable, in order.
    unstable_names: Vec<(String, Option<InodeId>)>,
    next: InodeId,
    /// Changes were lost.
    has_failed: bool,
}

type Names = BTreeMap<String, InodeId>;

#[derive(Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    stable: Vec<u8>,
    /// The changes that are not stable, in order.
    unstable: Vec<Change>,
    /// The changes that a call has made stable, from the first one on.
    synced: u64,
    /// The blocks that it has on the disk.
    blocks: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

/// The disk writes a sector whole or not at all, and sectors in any order.
const SECTOR: u64 = 512;
/// The disk gives its space to files in blocks.
const BLOCK: u64 = 4096;

impl Disk {
    pub(crate) fn inode(&self, path: &str) -> Result<InodeId, i32> {
        self.names.get(path).copied().ok_or(libc::ENOENT)
    }

    /// Makes a file that has no name yet.
    pub(crate) fn create(&mut self, core: &mut Core, path: &str) -> Result<InodeId, i32> {
        check_error(core)?;
        if self.names.contains_key(path) {
            return Err(libc::EEXIST);
        }
        self.next += 1;
        self.inodes.insert(self.next, Inode::default());
        self.name(path, Some(self.next));
        Ok(self.next)
    }

    pub(crate) fn link(&mut self, core: &mut Core, from: &str, to: &str) -> Result<(), i32> {
        check_error(core)?;
        let inode = self.inode(from)?;
        if self.names.contains_key(to) {
            return Err(libc::EEXIST);
        }
        self.name(to, Some(inode));
        Ok(())
    }

    pub(crate) fn unlink(&mut self, core: &mut Core, path: &str) -> Result<(), i32> {
        self.inode(path)?;
        check_error(core)?;
        self.name(path, None);
        Ok(())
    }

    /// Makes the names stable. Returns the time that this takes.
    pub(crate) fn sync_names(&mut self, core: &mut Core) -> Result<u64, i32> {
        check_error(core)?;
        self.unstable_names.clear();
        self.stable_names = self.names.clone();
        Ok(core.random.below(core.faults.sync_ns_max + 1))
    }

    pub(crate) fn length(&self, inode: InodeId) -> u64 {
        self.inodes
            .get(&inode)
            .map_or(0, |inode| inode.bytes.len() as u64)
    }

    pub(crate) fn read(
        &mut self,
        core: &mut Core,
        inode: InodeId,
        offset: u64,
        room: &mut [MaybeUninit<u8>],
    ) -> Result<usize, i32> {
        check_error(core)?;
        let bytes = &self.file(inode)?.bytes;
        let bytes = bytes.get(offset as usize..).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(bytes) {
            to.write(*from);
        }
        Ok(bytes.len().min(room.len()))
    }

    /// Writes some of the bytes; returns how many.
    pub(crate) fn write(
        &mut self,
        core: &mut Core,
        inode: InodeId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<usize, i32> {
        check_error(core)?;
        let count = if bytes.len() > 1 && core.random.one_in(core.faults.split_one_in) {
            1 + core.random.below(bytes.len() as u64) as usize
        } else {
            bytes.len()
        };
        let end = offset + count as u64;
        let blocks = offset / BLOCK..end.div_ceil(BLOCK);
        let used: usize = self.inodes.values().map(|inode| inode.blocks.len()).sum();
        let file = self.file(inode)?;
        let new = blocks
            .clone()
            .filter(|block| !file.blocks.contains(block))
            .count();
        if new > 0 && (used + new) as u64 * BLOCK > core.faults.disk_bytes {
            return Err(libc::ENOSPC);
        }
        file.blocks.extend(blocks);
        if end > file.bytes.len() as u64 {
            file.change(Change::Length(end));
        }
        let bytes = bytes[..count].to_vec();
        file.change(Change::Write { offset, bytes });
        Ok(count)
    }

    pub(crate) fn set_length(
        &mut self,
        core: &mut Core,
        inode: InodeId,
        length: u64,
    ) -> Result<(), i32> {
        check_error(core)?;
        self.file(inode)?.change(Change::Length(length));
        Ok(())
    }

    /// Begins to make what was written stable; returns up to which change, and the time that this takes.
    pub(crate) fn begin_sync(
        &mut self,
        core: &mut Core,
        inode: InodeId,
    ) -> Result<(u64, u64), i32> {
        let file = self.file(inode)?;
        let until = file.synced + file.unstable.len() as u64;
        Ok((until, core.random.below(core.faults.sync_ns_max + 1)))
    }

    /// Ends it. As Linux, a call that fails leaves changes that no later call writes.
    pub(crate) fn end_sync(
        &mut self,
        core: &mut Core,
        inode: InodeId,
        until: u64,
    ) -> Result<(), i32> {
        let failed = check_error(core);
        let file = self.file(inode)?;
        let count = until.saturating_sub(file.synced);
        file.synced += count;
        let changes: Vec<_> = file.unstable.drain(..count as usize).collect();
        for change in changes {
            if failed.is_ok() || core.random.one_in(2) {
                change.apply(&mut file.stable);
            }
        }
        self.has_failed |= failed.is_err();
        failed
    }

    /// True if changes that a call did not make stable are lost since the last loss of power.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Leaves what is stable, and any part of what is not: sectors, lengths, and names as far as the file system's log goes.
    pub(crate) fn lose_power(&mut self, random: &mut Random) {
        self.has_failed = false;
        let logged = random.below(self.unstable_names.len() as u64 + 1) as usize;
        for (path, inode) in self.unstable_names.drain(..).take(logged) {
            set_name(&mut self.stable_names, &path, inode);
        }
        self.names = self.stable_names.clone();
        let kept_one_in = random.choose(&[0, 1, 2, 5]);
        for file in self.inodes.values_mut() {
            file.synced += file.unstable.len() as u64;
            for change in file.unstable.drain(..) {
                for part in change.sectors() {
                    if random.one_in(kept_one_in) {
                        part.apply(&mut file.stable);
                    }
                }
            }
            file.bytes = file.stable.clone();
        }
        self.forget_nameless();
    }

    fn file(&mut self, inode: InodeId) -> Result<&mut Inode, i32> {
        self.inodes.get_mut(&inode).ok_or(libc::EIO)
    }

    fn name(&mut self, path: &str, inode: Option<InodeId>) {
        set_name(&mut self.names, path, inode);
        self.unstable_names.push((path.to_owned(), inode));
    }

    fn forget_nameless(&mut self) {
        let named: BTreeSet<_> = self.names.values().copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }
}

impl Inode {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.bytes);
        self.unstable.push(change);
    }
}

impl Change {
    /// A write that reaches behind the end ends there: its length is another change.
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Length(length) => to.resize(*length as usize, 0),
            Self::Write { offset, bytes } => {
                let place = to.get_mut(*offset as usize..).unwrap_or_default();
                for (to, from) in place.iter_mut().zip(bytes) {
                    *to = *from;
                }
            }
        }
    }

    /// The parts that are written whole or not at all.
    fn sectors(self) -> Vec<Self> {
        let Self::Write { mut offset, bytes } = self else {
            return vec![self];
        };
        let mut rest = &*bytes;
        let mut sectors = Vec::new();
        while !rest.is_empty() {
            let count = (SECTOR - offset % SECTOR).min(rest.len() as u64);
            let (bytes, others) = rest.split_at(count as usize);
            let bytes = bytes.to_vec();
            sectors.push(Self::Write { offset, bytes });
            (rest, offset) = (others, offset + count);
        }
        sectors
    }
}

fn set_name(names: &mut Names, path: &str, inode: Option<InodeId>) {
    match inode {
        Some(inode) => _ = names.insert(path.to_owned(), inode),
        None => _ = names.remove(path),
    }
}

fn check_error(core: &mut Core) -> Result<(), i32> {
    if core.random.one_in(core.faults.disk_error_one_in) {
        return Err(libc::EIO);
    }
    Ok(())
}
