//! A stream through shared memory: the rings, the socket beside them, and the waits of its threads.
//!
//! A waiting thread lingers, then sleeps on a futex word of the segment. The end of a peer wakes no futex: `peer_watch` detects it and
//! wakes the thread. On a connection that is not watched, a sleeping thread checks the socket every [`SLEEP_NS`]. The threads of an
//! event loop wait at the doorbell: they poll the socket, and the peer sends one byte there.

use super::lingering::Lingering;
use crate::clock::{coarse_monotonic_ns, monotonic_ns};
use crate::strategies::SharedMemoryWait;
use crate::transport::{Unsent, gather};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use rtorb_os::byte_rings::{Awaited, BrokenRing, ByteRings, Duplex, Receiver, Sender};
use rtorb_os::clock::timespec;
use rtorb_os::recheck_lock::RecheckLock;
use rtorb_os::waiting_word::Place;
use rtorb_wire::cdr::Segment;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// One end of a connection through shared memory. The stream owns the socket, so it is a parameter here.
#[derive(Debug)]
pub(crate) struct MemoryLink {
    rings: Arc<ByteRings>,
    /// One thread at a time sends: the ORB ensures it, and a thread that finds the lock held fails.
    sender: RecheckLock<Sender>,
    /// One thread at a time receives, as with `sender`.
    receiver: RecheckLock<Receiver>,
    lingering: Lingering,
    /// True if an event loop waits for bytes, at the doorbell.
    is_polled: AtomicBool,
    /// True if bytes arrived while a thread lingered: the doorbell did not ring for them.
    has_lingered: AtomicBool,
    /// True if a [`PeerWatch`](super::PeerWatch) wakes sleeping threads when the peer ends.
    is_watched: AtomicBool,
    /// True if a thread sleeps or is about to, for each [`Awaited`]. The peer cannot write it.
    is_asleep: [AtomicBool; 2],
    /// True if a thread that sleeps until bytes arrive shall look up: its wait fails with `INTR`.
    is_interrupted: AtomicBool,
    /// True if receiving or sending has ended, by this side or by the peer, for each [`Awaited`].
    has_ended: [AtomicBool; 2],
}

/// How long a thread sleeps at a time on a connection that is not watched, in nanoseconds: it finds a killed peer after that time.
const SLEEP_NS: u64 = 100_000_000;

/// The most bytes of the doorbell that are read at once. There is one for each time that it rang, so there are few.
const RINGS_MAX: usize = 64;

impl MemoryLink {
    pub(super) fn new(duplex: Duplex, wait: SharedMemoryWait) -> Self {
        Self {
            rings: duplex.rings,
            sender: RecheckLock::new(duplex.sender),
            receiver: RecheckLock::new(duplex.receiver),
            lingering: Lingering::new(wait),
            is_polled: AtomicBool::new(false),
            has_lingered: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            is_asleep: [const { AtomicBool::new(false) }; 2],
            is_interrupted: AtomicBool::new(false),
            has_ended: [const { AtomicBool::new(false) }; 2],
        }
    }

    /// Makes the peer ring the doorbell when it sends next.
    pub(super) fn await_at_doorbell(&self) {
        self.rings.announce(Awaited::Bytes, Place::Doorbell);
    }

    /// Prepares the connection for an event loop: the socket becomes readable when bytes arrive.
    pub(crate) fn register_for_polling(&self) {
        self.is_polled.store(true, Ordering::Relaxed);
        self.await_at_doorbell();
    }

    /// Interrupts a thread that sleeps until bytes arrive: receiving fails with `INTR`. One that is about to sleep may miss it.
    #[cold]
    pub(crate) fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Release);
        if self.is_asleep[Awaited::Bytes as usize].load(Ordering::Relaxed) {
            self.rings.wake();
        }
    }

    /// Notes that a [`PeerWatch`](super::PeerWatch) finds the end of the peer.
    pub(super) fn note_watched(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Sends as much of a message as there is room for, and returns the number of bytes.
    #[inline]
    pub(crate) fn send_message_now(
        &self,
        socket: &OwnedFd,
        own: &[u8],
        lent: &[Segment<'_>],
    ) -> Result<usize, Errno> {
        if lent.is_empty() {
            return self.send_now(socket, &mut [IoSlice::new(own)]);
        }
        let (mut parts, count) = gather(own, lent);
        self.send_now(socket, &mut parts[..count])
    }

    /// Sends all parts, and waits for room until `deadline_ns` at the latest.
    #[inline]
    pub(crate) fn send(
        &self,
        socket: &OwnedFd,
        mut parts: &mut [IoSlice<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        let mut has_begun = false;
        loop {
            let unsent = |errno| Unsent { errno, has_begun };
            let sent = self.put(socket, parts).map_err(unsent)?;
            has_begun |= sent > 0;
            IoSlice::advance_slices(&mut parts, sent);
            if parts.iter().all(|part| part.is_empty()) {
                return Ok(());
            }
            let unsent = |errno| Unsent { errno, has_begun };
            let is_over = self.wait(socket, Awaited::Room, deadline_ns);
            if !is_over.map_err(unsent)? {
                return Err(unsent(Errno::AGAIN));
            }
        }
    }

    /// Sends as much as there is room for, and returns the number of bytes.
    ///
    /// If that is not all and an event loop waits, the peer rings the doorbell when there is room.
    #[inline]
    fn send_now(&self, socket: &OwnedFd, mut parts: &mut [IoSlice<'_>]) -> Result<usize, Errno> {
        let mut total = 0;
        loop {
            let sent = self.put(socket, parts)?;
            total += sent;
            IoSlice::advance_slices(&mut parts, sent);
            let is_whole = parts.iter().all(|part| part.is_empty());
            if is_whole || !self.is_polled.load(Ordering::Relaxed) {
                return Ok(total);
            }
            self.rings.announce(Awaited::Room, Place::Doorbell);
            if !self.is_over(Awaited::Room)? {
                return Ok(total);
            }
            self.rings.withdraw(Awaited::Room);
        }
    }

    /// Receives at least one byte. Returns 0 if the peer has ended.
    #[inline]
    pub(crate) fn receive(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        loop {
            let received = self.take(socket, into)?;
            if received > 0 {
                return Ok(received);
            }
            if self.has_ended(Awaited::Bytes) {
                // The bytes that were sent before the end are in the ring by now.
                return self.take(socket, into);
            }
            self.wait(socket, Awaited::Bytes, None)?;
        }
    }

    /// Receives available bytes without waiting. Fails with `AGAIN` if there are none.
    ///
    /// With an event loop, either `into` is full afterwards, or the doorbell rings for the next byte.
    #[inline]
    pub(crate) fn receive_now(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        let is_polled = self.is_polled.load(Ordering::Relaxed);
        if is_polled && !self.has_lingered.load(Ordering::Relaxed) {
            self.read_doorbell(socket);
        }
        self.has_lingered.store(false, Ordering::Relaxed);
        let mut total = 0;
        loop {
            total += self.take(socket, &mut into[total..])?;
            if total == into.len() {
                return Ok(total);
            }
            if self.has_ended(Awaited::Bytes) {
                return Ok(total + self.take(socket, &mut into[total..])?);
            }
            if is_polled {
                self.await_at_doorbell();
                if self.is_over(Awaited::Bytes)? {
                    continue;
                }
            }
            return if total > 0 {
                Ok(total)
            } else {
                Err(Errno::AGAIN)
            };
        }
    }

    /// Returns true if bytes are left for which the doorbell does not ring. Without an event loop there are none.
    pub(crate) fn holds_unreported_bytes(&self) -> bool {
        if !self.is_polled.load(Ordering::Relaxed) {
            return false;
        }
        self.await_at_doorbell();
        // The caller finds an error when it receives.
        self.rings.is_ready(Awaited::Bytes).unwrap_or(true)
    }

    /// Returns true if the wait strategy lingers.
    pub(crate) fn lingers(&self) -> bool {
        self.lingering.lingers()
    }

    /// Lingers before the thread waits in an event loop. Returns true if there are bytes, or the end.
    ///
    /// The doorbell does not ring until the caller has received the bytes.
    pub(crate) fn linger(&self) -> bool {
        self.rings.withdraw(Awaited::Bytes);
        // The caller finds an error when it receives.
        let is_over = || self.is_over(Awaited::Bytes);
        let comes = self.lingering.linger(&self.rings, is_over);
        let comes = comes.unwrap_or(true);
        // If the doorbell has rung before, its byte is read after the next ring.
        self.has_lingered.store(comes, Ordering::Relaxed);
        comes || self.holds_unreported_bytes()
    }

    /// Appends available bytes to `into`: at most `bytes_max`, and no more than it has room for. Fails with `AGAIN` if there are none.
    #[inline]
    pub(crate) fn receive_behind_now(
        &self,
        socket: &OwnedFd,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<usize, Errno> {
        let has_ended = self.has_ended(Awaited::Bytes);
        let received =
            self.with_receiver(socket, |receiver| receiver.receive_behind(into, bytes_max));
        match received? {
            0 if has_ended => Ok(0),
            0 => Err(Errno::AGAIN),
            received => {
                self.call_sender(socket);
                Ok(received)
            }
        }
    }

    /// Receives available bytes and discards them.
    pub(crate) fn discard(&self, socket: &OwnedFd) {
        self.read_doorbell(socket);
        if self.with_receiver(socket, Receiver::discard).is_ok() {
            self.call_sender(socket);
        }
    }

    /// Waits for bytes or the end until `deadline_ns`. Returns false if it passes first.
    pub(crate) fn await_readable(
        &self,
        socket: &OwnedFd,
        deadline_ns: Option<u64>,
    ) -> Result<bool, Errno> {
        Ok(self.is_over(Awaited::Bytes)? || self.wait(socket, Awaited::Bytes, deadline_ns)?)
    }

    /// Returns true if the peer has ended the connection, or is gone.
    pub(crate) fn has_peer_gone(&self, socket: &OwnedFd) -> bool {
        self.look_at_peer(socket);
        self.has_ended(Awaited::Bytes) || self.has_ended(Awaited::Room)
    }

    /// Reads the bytes of the doorbell, so that the socket is readable when it rings next. Notes the end of the peer.
    pub(crate) fn read_doorbell(&self, socket: &OwnedFd) {
        let mut rings = [MaybeUninit::<u8>::uninit(); RINGS_MAX];
        match recv(socket, &mut rings[..], RecvFlags::DONTWAIT) {
            Ok((_, 1..)) | Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                self.note_end(Awaited::Bytes);
                self.look_at_peer(socket);
            }
        }
    }

    /// Ends sending, receiving or both, and wakes the threads of both ends that wait for it.
    pub(crate) fn end(&self, socket: &OwnedFd, what: Shutdown) {
        let ended = match what {
            Shutdown::Read => [Awaited::Bytes].as_slice(),
            Shutdown::Write => &[Awaited::Room],
            Shutdown::Both => &[Awaited::Bytes, Awaited::Room],
        };
        for awaited in ended {
            self.note_end(*awaited);
            self.rings.end(*awaited);
        }
        self.rings.wake();
        // It fails only if the peer is gone, and then it has ended.
        let _ = shutdown(socket, what);
    }

    /// Puts as many bytes into the ring as there is room for, and calls the peer.
    #[inline]
    fn put(&self, socket: &OwnedFd, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
        if self.has_ended(Awaited::Room) {
            return Err(Errno::PIPE);
        }
        let mut sender = self.sender.try_lock().ok_or(Errno::BUSY)?;
        let sent = sender.send(parts);
        drop(sender);
        let sent = sent.map_err(|error| self.broken(socket, error))?;
        if self.rings.call_peer(Awaited::Bytes) {
            self.ring_doorbell(socket);
        }
        Ok(sent)
    }

    /// Takes available bytes out of the ring, and calls a peer that waits for room.
    #[inline]
    fn take(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        let received = self.with_receiver(socket, |receiver| receiver.receive(into))?;
        if received > 0 {
            self.call_sender(socket);
        }
        Ok(received)
    }

    /// Calls `work` with the receiver. Fails with `BUSY` if another thread has it.
    #[inline]
    fn with_receiver<T>(
        &self,
        socket: &OwnedFd,
        work: impl FnOnce(&mut Receiver) -> Result<T, BrokenRing>,
    ) -> Result<T, Errno> {
        let mut receiver = self.receiver.try_lock().ok_or(Errno::BUSY)?;
        let done = work(&mut receiver);
        drop(receiver);
        done.map_err(|error| self.broken(socket, error))
    }

    #[inline]
    fn call_sender(&self, socket: &OwnedFd) {
        if self.rings.has_made_room() && self.rings.call_peer(Awaited::Room) {
            self.ring_doorbell(socket);
        }
    }

    /// Sends a byte to a peer that waits at its doorbell.
    ///
    /// If the peer takes no more, sending has ended. What is in the ring counts as sent: the peer may still serve it.
    #[inline(never)]
    fn ring_doorbell(&self, socket: &OwnedFd) {
        loop {
            match send(socket, &[1], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                // A full socket is readable, which is all that the doorbell has to achieve.
                Ok(_) | Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => return self.note_end(Awaited::Room),
            }
        }
    }

    /// Waits for bytes or room, or the end. Returns false if `deadline_ns` passes first.
    fn wait(
        &self,
        socket: &OwnedFd,
        awaited: Awaited,
        deadline_ns: Option<u64>,
    ) -> Result<bool, Errno> {
        let is_over = || self.is_over(awaited);
        if self.lingering.linger(&self.rings, is_over)? {
            return Ok(true);
        }
        while !self.sleep(awaited, deadline_ns)? {
            if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= monotonic_ns()) {
                return Ok(false);
            }
            self.look_at_peer(socket);
            let is_for_bytes = matches!(awaited, Awaited::Bytes);
            if is_for_bytes && self.is_interrupted.swap(false, Ordering::Acquire) {
                return Err(Errno::INTR);
            }
        }
        Ok(true)
    }

    /// Sleeps on the futex word once. Returns true if the wait is over.
    fn sleep(&self, awaited: Awaited, deadline_ns: Option<u64>) -> Result<bool, Errno> {
        let until_ns = if self.is_watched.load(Ordering::Relaxed) {
            deadline_ns
        } else {
            let until_ns = coarse_monotonic_ns() + SLEEP_NS;
            Some(until_ns.min(deadline_ns.unwrap_or(u64::MAX)))
        };
        // Before the fence of the announcement: either this thread sees the end, or the thread that notes the end sees this one.
        self.is_asleep[awaited as usize].store(true, Ordering::Relaxed);
        self.rings.announce(awaited, Place::Word);
        let is_over = self.is_over(awaited);
        if is_over == Ok(false) {
            self.rings.sleep(awaited, until_ns);
        }
        self.rings.withdraw(awaited);
        self.is_asleep[awaited as usize].store(false, Ordering::Relaxed);
        match is_over {
            Ok(false) => self.is_over(awaited),
            known => known,
        }
    }

    /// Wakes the threads that sleep on an ended connection. Returns true if one may still sleep: call it again.
    ///
    /// A peer that keeps writing into the futex word can prevent one wake-up, but not all.
    pub(super) fn wake_ended(&self) -> bool {
        fence(Ordering::SeqCst);
        let sleeps = [Awaited::Bytes, Awaited::Room].into_iter().any(|awaited| {
            let index = awaited as usize;
            self.has_ended[index].load(Ordering::Relaxed)
                && self.is_asleep[index].load(Ordering::Relaxed)
        });
        if sleeps {
            self.rings.wake();
        }
        sleeps
    }

    /// Notes the end if the peer is gone. Does not read the doorbell, because another thread may wait for its bytes.
    #[cold]
    fn look_at_peer(&self, socket: &OwnedFd) {
        let mut interest = [PollFd::new(socket, PollFlags::empty())];
        let is_gone = poll(&mut interest, Some(&timespec(0))).is_ok()
            && interest[0]
                .revents()
                .intersects(PollFlags::HUP | PollFlags::ERR);
        if is_gone {
            self.note_end(Awaited::Bytes);
            self.note_end(Awaited::Room);
        }
    }

    /// Returns true if there are bytes or room, or there will never be any.
    #[inline]
    fn is_over(&self, awaited: Awaited) -> Result<bool, Errno> {
        match self.rings.is_ready(awaited) {
            Ok(is_ready) => Ok(is_ready || self.has_ended(awaited)),
            Err(BrokenRing) => Err(Errno::PROTO),
        }
    }

    #[inline]
    fn has_ended(&self, awaited: Awaited) -> bool {
        self.has_ended[awaited as usize].load(Ordering::Acquire)
            || self.rings.has_peer_ended(awaited)
    }

    pub(super) fn note_end(&self, awaited: Awaited) {
        self.has_ended[awaited as usize].store(true, Ordering::Release);
    }

    /// Ends a connection whose peer has written wrong positions.
    #[cold]
    fn broken(&self, socket: &OwnedFd, _: BrokenRing) -> Errno {
        self.end(socket, Shutdown::Both);
        Errno::PROTO
    }
}
