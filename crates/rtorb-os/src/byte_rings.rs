//! Two rings of bytes in memory that two processes share, one for each direction.
//!
//! The peer may be broken or hostile and write anything anywhere in the segment at any moment. Therefore:
//!
//! * The segment is a memfd that nobody can shrink or grow (`F_SEAL_SHRINK`, `F_SEAL_GROW`), so that no access can fault.
//! * Each end keeps its own positions in its own memory. It checks the position of the peer each time that it reads it.
//! * Bytes are copied from the segment into private memory before anyone looks at them. There is no reference to bytes in the
//!   segment: Rust assumes that what a reference leads to does not change, and the peer may change it. `shared_copy` copies.

use crate::shared_copy::{copy_in, copy_out};
use crate::waiting_word::{Place, WaitingWord};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// One end of two rings, with its only sender and its only receiver.
#[derive(Debug)]
pub struct Duplex {
    /// The part that all threads share: waiting, waking and ending.
    pub rings: Arc<ByteRings>,
    /// Sends through the ring of this end.
    pub sender: Sender,
    /// Receives from the ring of the peer.
    pub receiver: Receiver,
}

/// One end of two rings, as all its threads share it. [`Sender`] and [`Receiver`] move the bytes.
#[derive(Debug)]
pub struct ByteRings {
    base: NonNull<u8>,
    /// Bytes that each ring has room for, a power of two.
    capacity: usize,
    side: Side,
    /// Bytes that this end has sent. Only its sender writes it.
    sent: AtomicU64,
    /// Bytes that this end has received. Only its receiver writes it.
    received: AtomicU64,
}

/// Sends the bytes of one end. There is one, and one thread at a time uses it:
///
/// ```compile_fail,E0596
/// fn send_beside_others(sender: &rtorb_os::byte_rings::Sender) {
///     let _ = sender.send(&[]);
/// }
/// ```
#[derive(Debug)]
pub struct Sender {
    rings: Arc<ByteRings>,
    /// The number of sent bytes that the peer is known to have taken.
    taken: u64,
}

/// Receives the bytes of one end. There is one, and one thread at a time uses it:
///
/// ```compile_fail,E0596
/// fn receive_beside_others(receiver: &rtorb_os::byte_rings::Receiver) {
///     let _ = receiver.receive(&mut []);
/// }
/// ```
#[derive(Debug)]
pub struct Receiver {
    rings: Arc<ByteRings>,
}

/// The end that made the segment, or the one that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Maker = 0,
    Opener = 1,
}

/// What an end of the rings may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Bytes to receive.
    Bytes,
    /// Room for bytes to send: half of the ring, so that a thread is not woken for each byte.
    Room,
}

/// The peer wrote an impossible position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer wrote an impossible position into the shared memory")]
pub struct BrokenRing;

/// The state of one end of one ring, on a cache line of its own.
#[derive(Debug)]
#[repr(C, align(64))]
struct End {
    /// Bytes that went through this end.
    position: AtomicU64,
    waiting: WaitingWord,
    /// Not 0 once this end sends or receives nothing more.
    has_ended: AtomicU32,
    /// The CPU on which the thread of this end ran last, plus 1; 0 if it is unknown.
    cpu: AtomicU32,
}

#[derive(Debug)]
#[repr(C)]
struct ByteRing {
    sender: End,
    receiver: End,
}

/// The ring of each side's bytes.
type Header = [ByteRing; 2];

/// The smallest capacity of a ring.
pub const CAPACITY_MIN: usize = 4096;

/// The largest capacity of a ring.
pub const CAPACITY_MAX: usize = 64 << 20;

const HEADER_BYTES: usize = 4096;
const _: () = assert!(
    size_of::<Header>() <= HEADER_BYTES,
    "the header has one page"
);

// SAFETY: the segment stays mapped as long as `self`, all positions are atomic, and no reference leads to the other bytes.
unsafe impl Send for ByteRings {}
// SAFETY: as above. Only the sender and the receiver reach the other bytes, and there is one of each.
unsafe impl Sync for ByteRings {}

impl Duplex {
    /// Makes a segment with two rings of `capacity` bytes, and returns its maker's end and the file for the peer.
    ///
    /// # Errors
    /// `INVAL` if the capacity is no power of two between [`CAPACITY_MIN`] and [`CAPACITY_MAX`]; otherwise the host's refusal.
    pub fn create(capacity: usize) -> Result<(Self, OwnedFd), Errno> {
        if !is_capacity(capacity) {
            return Err(Errno::INVAL);
        }
        let file = memfd_create("rtorb", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, segment_bytes(capacity) as u64)?;
        fcntl_add_seals(&file, seals())?;
        let rings = ByteRings::map(&file, capacity, Side::Maker)?;
        Ok((Self::of(rings), file))
    }

    /// Opens the segment that a peer made and sent.
    ///
    /// # Errors
    /// `INVAL` if its size is not that of the capacity, `PERM` if its size is not sealed; otherwise the host's refusal.
    pub fn open(file: impl AsFd, capacity: usize) -> Result<Self, Errno> {
        let is_sealed = fcntl_get_seals(&file).is_ok_and(|found| found.contains(seals()));
        if !is_sealed {
            return Err(Errno::PERM);
        }
        let bytes = fstat(&file)?.st_size;
        if !is_capacity(capacity) || usize::try_from(bytes) != Ok(segment_bytes(capacity)) {
            return Err(Errno::INVAL);
        }
        ByteRings::map(file, capacity, Side::Opener).map(Self::of)
    }

    fn of(rings: ByteRings) -> Self {
        let rings = Arc::new(rings);
        Self {
            sender: Sender {
                rings: Arc::clone(&rings),
                taken: 0,
            },
            receiver: Receiver {
                rings: Arc::clone(&rings),
            },
            rings,
        }
    }
}

impl Sender {
    /// Sends as many bytes of the parts as there is room for, and returns their number.
    /// [Call](ByteRings::call_peer) the peer then.
    ///
    /// # Errors
    /// [`BrokenRing`] if the peer wrote nonsense.
    #[inline]
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> Result<usize, BrokenRing> {
        let rings = &*self.rings;
        let sent = rings.sent.load(Ordering::Relaxed);
        let bytes = parts.iter().map(|part| part.len()).sum();
        // The peer wrote `taken`, at most the capacity before `sent`: that may be before 0.
        let mut room = rings.capacity - sent.wrapping_sub(self.taken) as usize;
        if room < bytes {
            (room, self.taken) = rings.room()?;
        }
        let mut position = sent;
        for part in parts {
            let count = part.len().min(room);
            self.put(position, &part[..count]);
            position += count as u64;
            room -= count;
        }
        rings.sent.store(position, Ordering::Relaxed);
        let end = &rings.outgoing().sender;
        end.position.store(position, Ordering::Release);
        Ok((position - sent) as usize)
    }

    /// Copies bytes into the outgoing ring. There must be room for them.
    #[inline]
    fn put(&self, position: u64, bytes: &[u8]) {
        let rings = &*self.rings;
        let (to, until_end) = rings.place(rings.side, position);
        let first = bytes.len().min(until_end);
        // SAFETY: `place` returns a place in the ring with `until_end` bytes behind it, and private bytes are not in the ring.
        unsafe { copy_in(to, bytes.as_ptr(), first) };
        if first < bytes.len() {
            let (to, _) = rings.place(rings.side, 0);
            let rest = &bytes[first..];
            // SAFETY: a message part is shorter than the ring, because there was room for it.
            unsafe { copy_in(to, rest.as_ptr(), rest.len()) };
        }
    }
}

impl Receiver {
    /// Receives as many bytes as there are and `into` has room for. [Call](ByteRings::call_peer) the peer then.
    ///
    /// # Errors
    /// [`BrokenRing`] if the peer wrote nonsense.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, BrokenRing> {
        let count = self.rings.receivable()?.min(into.len());
        // SAFETY: `into` has room for `count` bytes, and is no part of the segment.
        unsafe { self.take(into.as_mut_ptr(), count) };
        Ok(count)
    }

    /// Appends received bytes to `into`: at most `bytes_max`, and no more than it has room for.
    ///
    /// # Errors
    /// [`BrokenRing`] if the peer wrote nonsense.
    pub fn receive_behind(
        &mut self,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<usize, BrokenRing> {
        let spare = into.spare_capacity_mut();
        let count = self.rings.receivable()?.min(spare.len()).min(bytes_max);
        // SAFETY: the spare room has at least `count` bytes, and is no part of the segment.
        unsafe { self.take(spare.as_mut_ptr().cast(), count) };
        let length = into.len() + count;
        // SAFETY: the first `count` bytes behind the old length were just written.
        unsafe { into.set_len(length) };
        Ok(count)
    }

    /// Discards all bytes that have arrived.
    ///
    /// # Errors
    /// [`BrokenRing`] if the peer wrote nonsense.
    pub fn discard(&mut self) -> Result<(), BrokenRing> {
        let count = self.rings.receivable()?;
        self.advance(count);
        Ok(())
    }

    /// Copies the next bytes of the incoming ring to `into`, and notes that they were received.
    ///
    /// # Safety
    /// `into` must have room for `count` bytes outside of the segment, and `count` must be at most the capacity.
    #[inline]
    unsafe fn take(&mut self, into: *mut u8, count: usize) {
        let rings = &*self.rings;
        let from_side = rings.side.other();
        let (from, until_end) = rings.place(from_side, rings.received.load(Ordering::Relaxed));
        let first = count.min(until_end);
        // SAFETY: `place` returns a place in the ring with `until_end` bytes behind it; the caller vouches for `into`.
        unsafe { copy_out(into, from, first) };
        if first < count {
            let (from, _) = rings.place(from_side, 0);
            // SAFETY: `first` is less than `count`, for which `into` has room.
            let into = unsafe { into.add(first) };
            // SAFETY: the rest is shorter than the ring, and `into` has room for it.
            unsafe { copy_out(into, from, count - first) };
        }
        self.advance(count);
    }

    /// Notes that `count` bytes were received.
    #[inline]
    fn advance(&mut self, count: usize) {
        let rings = &*self.rings;
        let received = rings.received.load(Ordering::Relaxed) + count as u64;
        rings.received.store(received, Ordering::Relaxed);
        let end = &rings.incoming().receiver;
        end.position.store(received, Ordering::Release);
    }
}

impl ByteRings {
    /// True if the awaited bytes, or the awaited room, are there.
    ///
    /// # Errors
    /// [`BrokenRing`] if the peer wrote nonsense.
    #[inline]
    pub fn is_ready(&self, awaited: Awaited) -> Result<bool, BrokenRing> {
        match awaited {
            Awaited::Bytes => Ok(self.receivable()? > 0),
            Awaited::Room => Ok(self.room()?.0 >= self.capacity / 2),
        }
    }

    /// Announces that this end is about to wait. Check [whether it has to](Self::is_ready) after this.
    #[inline]
    pub fn announce(&self, awaited: Awaited, place: Place) {
        self.own_end(awaited).waiting.announce(place);
    }

    /// Takes the announcement back.
    #[inline]
    pub fn withdraw(&self, awaited: Awaited) {
        self.own_end(awaited).waiting.withdraw();
    }

    /// Sleeps until the peer or [`wake`](Self::wake) calls, at the latest until `deadline_ns` of CLOCK_MONOTONIC. Announce it first.
    #[inline]
    pub fn sleep(&self, awaited: Awaited, deadline_ns: Option<u64>) {
        self.own_end(awaited).waiting.sleep(deadline_ns);
    }

    /// Wakes the peer if it waits for what this end has done: sent, where it awaits bytes; received, where it awaits room.
    ///
    /// Returns true if it waits at its doorbell: ring it.
    #[inline]
    pub fn call_peer(&self, awaited: Awaited) -> bool {
        self.peer_end(awaited).waiting.call()
    }

    /// True if half of the ring from the peer is empty: then a peer that awaits room is called.
    #[inline]
    #[must_use]
    pub fn has_made_room(&self) -> bool {
        self.receivable()
            .is_ok_and(|left| left <= self.capacity / 2)
    }

    /// Wakes the threads of this end that sleep, whatever the peer has written.
    pub fn wake(&self) {
        for awaited in [Awaited::Bytes, Awaited::Room] {
            self.own_end(awaited).waiting.wake();
        }
    }

    /// Ends what this end sends ([`Awaited::Room`]) or receives ([`Awaited::Bytes`]), and wakes the peer if it sleeps.
    pub fn end(&self, awaited: Awaited) {
        self.own_end(awaited).has_ended.store(1, Ordering::SeqCst);
        let other = match awaited {
            Awaited::Bytes => Awaited::Room,
            Awaited::Room => Awaited::Bytes,
        };
        self.call_peer(other);
    }

    /// True if the peer sends no more bytes, or takes no more.
    #[inline]
    #[must_use]
    pub fn has_peer_ended(&self, awaited: Awaited) -> bool {
        let ring = match awaited {
            Awaited::Bytes => &self.incoming().sender,
            Awaited::Room => &self.outgoing().receiver,
        };
        ring.has_ended.load(Ordering::Acquire) != 0
    }

    /// Notes the CPU on which this thread runs, for the peer.
    #[inline]
    pub fn note_cpu(&self, cpu: usize) {
        let number = u32::try_from(cpu.saturating_add(1)).unwrap_or(0);
        self.outgoing().sender.cpu.store(number, Ordering::Relaxed);
    }

    /// The CPU on which a thread of the peer ran last, if it said so.
    #[inline]
    #[must_use]
    pub fn peer_cpu(&self) -> Option<usize> {
        let number = self.incoming().sender.cpu.load(Ordering::Relaxed);
        (number as usize).checked_sub(1)
    }

    /// Bytes that can be received.
    #[inline]
    fn receivable(&self) -> Result<usize, BrokenRing> {
        let sent = self.incoming().sender.position.load(Ordering::Acquire);
        self.distance(sent, self.received.load(Ordering::Relaxed))
    }

    /// Bytes that can be sent, and the position up to which the peer has taken bytes.
    #[inline]
    fn room(&self) -> Result<(usize, u64), BrokenRing> {
        let taken = self.outgoing().receiver.position.load(Ordering::Acquire);
        let waiting = self.distance(self.sent.load(Ordering::Relaxed), taken)?;
        Ok((self.capacity - waiting, taken))
    }

    #[inline]
    fn distance(&self, sent: u64, received: u64) -> Result<usize, BrokenRing> {
        match sent.wrapping_sub(received) {
            bytes if bytes <= self.capacity as u64 => Ok(bytes as usize),
            _ => Err(BrokenRing),
        }
    }

    /// The place of a position in a side's ring, and the bytes from there to the end of the ring.
    #[inline]
    fn place(&self, side: Side, position: u64) -> (*mut u8, usize) {
        let offset = position as usize & (self.capacity - 1);
        let begin = HEADER_BYTES + side as usize * self.capacity;
        // SAFETY: the segment has a header and two rings, and `offset` is less than the capacity.
        let place = unsafe { self.base.as_ptr().add(begin + offset) };
        (place, self.capacity - offset)
    }

    /// The end of this side that waits for bytes or room.
    #[inline]
    fn own_end(&self, awaited: Awaited) -> &End {
        match awaited {
            Awaited::Bytes => &self.incoming().receiver,
            Awaited::Room => &self.outgoing().sender,
        }
    }

    /// The end of the other side that waits for bytes or room.
    #[inline]
    fn peer_end(&self, awaited: Awaited) -> &End {
        match awaited {
            Awaited::Bytes => &self.outgoing().receiver,
            Awaited::Room => &self.incoming().sender,
        }
    }

    #[inline]
    fn outgoing(&self) -> &ByteRing {
        &self.header()[self.side as usize]
    }

    #[inline]
    fn incoming(&self) -> &ByteRing {
        &self.header()[self.side.other() as usize]
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the segment begins with a header on a page of its own, and every field is atomic.
        unsafe { self.base.cast().as_ref() }
    }

    fn map(file: impl AsFd, capacity: usize, side: Side) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // Its pages are there before the first message, so that no call waits for one.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let (anywhere, bytes) = (core::ptr::null_mut(), segment_bytes(capacity));
        // SAFETY: the address is null, so the kernel chooses a range that is free.
        let base = unsafe { mmap(anywhere, bytes, access, flags, file, 0) }?;
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?,
            capacity,
            side,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        })
    }
}

impl Drop for ByteRings {
    fn drop(&mut self) {
        self.end(Awaited::Bytes);
        self.end(Awaited::Room);
        // SAFETY: `map` mapped the segment, and no reference to it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), segment_bytes(self.capacity)) };
    }
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Maker => Self::Opener,
            Self::Opener => Self::Maker,
        }
    }
}

/// True for a capacity that rings can have.
#[must_use]
pub const fn is_capacity(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= CAPACITY_MIN && bytes <= CAPACITY_MAX
}

const fn segment_bytes(capacity: usize) -> usize {
    HEADER_BYTES + 2 * capacity
}

/// The size never changes, and neither do the seals.
const fn seals() -> SealFlags {
    SealFlags::SHRINK
        .union(SealFlags::GROW)
        .union(SealFlags::SEAL)
}

#[cfg(test)]
mod tests;
