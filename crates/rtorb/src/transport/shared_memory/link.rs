//! A stream through shared memory: the rings, the socket beside them, and the waits of its threads.
//!
//! A thread that waits lingers, then sleeps on a futex word of the segment. A futex knows nothing of the end of a peer: `peer_watch`
//! sees it and wakes the thread. On a connection that it does not watch, a thread that waits for room looks at the socket every
//! [`SLEEP_NS`]. The threads of an event loop wait for bytes at the doorbell: they poll the socket, and the peer sends one byte
//! there.

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

/// One end of a connection through shared memory. Its socket is a parameter, because the stream has it.
#[derive(Debug)]
pub(crate) struct Link {
    rings: Arc<ByteRings>,
    /// One thread at a time sends. The ORB sees to that, so a thread never finds the lock held; if it did, it would fail.
    sender: RecheckLock<Sender>,
    /// One thread at a time receives, likewise.
    receiver: RecheckLock<Receiver>,
    lingering: Lingering,
    /// An event loop waits for bytes, at the doorbell.
    is_polled: AtomicBool,
    /// Bytes came while a thread lingered, for which the doorbell was not rung.
    has_lingered: AtomicBool,
    /// A [`PeerWatch`](super::PeerWatch) wakes the threads that sleep when the peer ends.
    is_watched: AtomicBool,
    /// A thread sleeps, or is about to. The peer cannot write this.
    is_asleep: [AtomicBool; 2],
    /// Nothing more is received, or sent: this end has ended it, or the socket says so.
    has_ended: [AtomicBool; 2],
}

/// How long a thread sleeps at once if nobody watches its peer, in nanoseconds: the bound on finding that it was killed.
const SLEEP_NS: u64 = 100_000_000;

/// Bytes of the doorbell that are read at once. Each is a call that was answered, so there are few.
const RINGS_MAX: usize = 64;

impl Link {
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
            has_ended: [const { AtomicBool::new(false) }; 2],
        }
    }

    /// Has the peer ring the doorbell when it sends next.
    pub(super) fn await_at_doorbell(&self) {
        self.rings.announce(Awaited::Bytes, Place::Doorbell);
    }

    /// Prepares for an event loop: the socket becomes readable when bytes come.
    pub(crate) fn be_polled(&self) {
        self.is_polled.store(true, Ordering::Relaxed);
        self.await_at_doorbell();
    }

    /// Notes that a [`PeerWatch`](super::PeerWatch) finds the end of the peer.
    pub(super) fn note_watched(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    // What a stream calls is not inlined there: it would cost a call over a socket 50 instructions.

    /// Sends all octets, and waits for room.
    #[inline(never)]
    pub(crate) fn send_octets(&self, socket: &OwnedFd, octets: &[u8]) -> Result<(), Unsent> {
        self.send(socket, &mut [IoSlice::new(octets)], None)
    }

    /// Sends as much of a message as there is room for, and returns the number of bytes.
    #[inline(never)]
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

    /// Receives at least one byte; 0 if the peer has ended.
    #[inline(never)]
    pub(crate) fn receive(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        loop {
            let received = self.take(socket, into)?;
            if received > 0 {
                return Ok(received);
            }
            if self.has_ended(Awaited::Bytes) {
                // What was sent before the end is there by now.
                return self.take(socket, into);
            }
            self.wait(socket, Awaited::Bytes, None)?;
        }
    }

    /// Receives available bytes without waiting; `AGAIN` if there are none.
    ///
    /// With an event loop, either `into` is full afterwards, or the doorbell rings for the next byte.
    #[inline(never)]
    pub(crate) fn receive_now(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        let is_polled = self.is_polled.load(Ordering::Relaxed);
        if is_polled && !self.has_lingered.load(Ordering::Relaxed) {
            self.hear_doorbell(socket);
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

    /// True if bytes are left for which the doorbell does not ring. There are none without an event loop.
    pub(crate) fn holds_unreported_bytes(&self) -> bool {
        if !self.is_polled.load(Ordering::Relaxed) {
            return false;
        }
        self.await_at_doorbell();
        // What is wrong is found by receiving.
        self.rings.is_ready(Awaited::Bytes).unwrap_or(true)
    }

    /// True if the wait strategy lingers.
    pub(crate) fn lingers(&self) -> bool {
        self.lingering.lingers()
    }

    /// Lingers before the thread waits in an event loop; true if there are bytes, or the end. The doorbell is not rung meanwhile.
    ///
    /// Receive them then: that has the doorbell rung again.
    pub(crate) fn linger(&self) -> bool {
        self.rings.withdraw(Awaited::Bytes);
        // What is wrong is found by receiving.
        let is_over = || self.is_over(Awaited::Bytes);
        let comes = self.lingering.linger(&self.rings, is_over);
        let comes = comes.unwrap_or(true);
        // If the doorbell was rung before, it is heard with the next ring.
        self.has_lingered.store(comes, Ordering::Relaxed);
        comes || self.holds_unreported_bytes()
    }

    /// Appends available bytes to `into`: at most `bytes_max`, and no more than it has room for; `AGAIN` if there are none.
    #[inline(never)]
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
        self.hear_doorbell(socket);
        if self.with_receiver(socket, Receiver::discard).is_ok() {
            self.call_sender(socket);
        }
    }

    /// Waits for bytes until `deadline_ns`; false if it passed first. The end counts as bytes.
    pub(crate) fn await_readable(
        &self,
        socket: &OwnedFd,
        deadline_ns: Option<u64>,
    ) -> Result<bool, Errno> {
        Ok(self.is_over(Awaited::Bytes)? || self.wait(socket, Awaited::Bytes, deadline_ns)?)
    }

    /// True if the peer has ended the connection, or is gone.
    pub(crate) fn has_peer_gone(&self, socket: &OwnedFd) -> bool {
        self.look_at_peer(socket);
        self.has_ended(Awaited::Bytes) || self.has_ended(Awaited::Room)
    }

    /// Reads the bytes of the doorbell, so that the socket is readable when it rings next. Notes the end of the peer.
    pub(crate) fn hear_doorbell(&self, socket: &OwnedFd) {
        let mut rings = [MaybeUninit::<u8>::uninit(); RINGS_MAX];
        match recv(socket, &mut rings[..], RecvFlags::DONTWAIT) {
            Ok((_, 1..)) | Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                self.note_end(Awaited::Bytes);
                self.look_at_peer(socket);
            }
        }
    }

    /// Ends what is sent, received, or both, and wakes the threads of both ends that wait for it.
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
        // A peer that is gone already has ended it for us.
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
            ring_doorbell(socket)?;
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

    /// Does `work` with the only receiver; `BUSY` if another thread has it.
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
            // If it is gone, it does not wait.
            let _ = ring_doorbell(socket);
        }
    }

    /// Waits until there is what is awaited, or the end; false if `deadline_ns` passed first.
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
        }
        Ok(true)
    }

    /// Sleeps on the futex word once; true if the wait is over.
    fn sleep(&self, awaited: Awaited, deadline_ns: Option<u64>) -> Result<bool, Errno> {
        let until_ns = if self.is_watched.load(Ordering::Relaxed) {
            deadline_ns
        } else {
            let until_ns = coarse_monotonic_ns() + SLEEP_NS;
            Some(until_ns.min(deadline_ns.unwrap_or(u64::MAX)))
        };
        // Before the fence of the announcement: either this thread sees the end, or who notes it sees this thread.
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

    /// Wakes the threads for which the connection has ended; true if one may sleep still: repeat this.
    ///
    /// A peer that writes into the futex word again and again can hinder a wake-up, but not all of them.
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

    /// Notes the end of a peer that is gone, without reading the doorbell: another thread may wait for that.
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

    /// True if there is what is awaited, or will never be.
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

    /// Ends a connection whose peer wrote nonsense.
    #[cold]
    fn broken(&self, socket: &OwnedFd, _: BrokenRing) -> Errno {
        self.end(socket, Shutdown::Both);
        Errno::PROTO
    }
}

/// Sends a byte to a peer that waits at its doorbell.
#[inline(never)]
fn ring_doorbell(socket: &OwnedFd) -> Result<(), Errno> {
    loop {
        match send(socket, &[1], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            // If the socket is full, it has been rung often enough.
            Ok(_) | Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
