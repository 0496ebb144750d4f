//! Waiting for many descriptors: an epoll set, and one with a bell and a timer.
//!
//! An entry of a slab is registered with its key. The key has the generation of the entry. So an event that a thread took before the
//! entry was removed is not taken for an event of the next entry at its place.
//!
//! The bell and the timer are edge-triggered, and no thread reads them: each ring and each expiry ends one wait of one thread. A
//! ring that comes while no thread waits ends the next wait.

use core::mem::MaybeUninit;
use core::ops::Deref;
use rtorb_os::clock::timespec;
use rtorb_os::slab::Key;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A set of descriptors that one thread or several wait for.
#[derive(Debug)]
pub(crate) struct DescriptorSet(OwnedFd);

/// A set of descriptors with a bell, and a timer if it needs one.
#[derive(Debug)]
pub(crate) struct Poller {
    set: DescriptorSet,
    bell: Bell,
    /// `None` for a set whose waits are bounded otherwise.
    timer: Option<Timer>,
}

/// The name of an entry of a poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

/// An event of a poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// The bell was rung.
    Bell,
    /// The timer expired.
    Timer,
    /// A descriptor with a [number](Token::number) is ready.
    Numbered(u32),
    /// The descriptor of a slab's entry is ready.
    Entry(Token, EventFlags),
}

/// Memory for the events of one system call.
pub(crate) type EventRoom = [MaybeUninit<epoll::Event>];

/// A descriptor that becomes readable when it is rung, and stays so.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

/// A descriptor that becomes readable at a time, and stays so until another time is set.
#[derive(Debug)]
pub(crate) struct Timer(OwnedFd);

/// An event is reported once, to one of the threads that wait.
pub(crate) const ONCE: EventFlags = EventFlags::IN.union(EventFlags::ET);

impl DescriptorSet {
    pub(crate) fn new() -> Result<Self, Errno> {
        epoll::create(CreateFlags::CLOEXEC).map(Self)
    }

    /// Reports those events of a descriptor. The kernel removes it when it is closed, with all its copies.
    pub(crate) fn add(
        &self,
        descriptor: impl AsFd,
        token: Token,
        interest: EventFlags,
    ) -> Result<(), Errno> {
        epoll::add(&self.0, descriptor, token.data(), interest)
    }

    /// Reports those events of a registered descriptor instead, at once if it is ready.
    pub(crate) fn change(
        &self,
        descriptor: impl AsFd,
        token: Token,
        interest: EventFlags,
    ) -> Result<(), Errno> {
        epoll::modify(&self.0, descriptor, token.data(), interest)
    }

    /// Reports no more events of a descriptor.
    pub(crate) fn remove(&self, descriptor: impl AsFd) {
        // It fails only if the descriptor is not registered.
        let _ = epoll::delete(&self.0, descriptor);
    }

    /// Waits for events, at most `timeout_ns`, in whole milliseconds; returns none after the timeout or a signal.
    ///
    /// # Panics
    /// When epoll itself fails, which only a bug can cause.
    #[inline]
    pub(crate) fn wait<'r>(
        &self,
        room: &'r mut EventRoom,
        timeout_ns: Option<u64>,
    ) -> &'r [epoll::Event] {
        let timeout = timeout_ns.map(timespec);
        match epoll::wait(&self.0, room, timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &[],
            Err(errno) => panic!("epoll cannot wait for its own set: {errno}"),
        }
    }
}

impl AsFd for DescriptorSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Poller {
    /// A poller that reports its bell.
    pub(crate) fn new() -> Result<Self, Errno> {
        let poller = Self {
            set: DescriptorSet::new()?,
            bell: Bell::new()?,
            timer: None,
        };
        poller.add(&poller.bell, BELL, ONCE)?;
        Ok(poller)
    }

    /// A poller that reports its bell and its timer.
    pub(crate) fn with_timer() -> Result<Self, Errno> {
        let mut poller = Self::new()?;
        let timer = poller.timer.insert(Timer::new()?);
        poller.set.add(timer, TIMER, ONCE)?;
        Ok(poller)
    }

    /// Ends a wait: one in progress, or else the next one.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Has the timer expire at `at_ns` of the monotonic clock; `None` stops it. Does nothing without a timer.
    pub(crate) fn set_timer(&self, at_ns: Option<u64>) {
        let Some(timer) = &self.timer else {
            debug_assert!(false, "the poller has a timer");
            return;
        };
        timer.set(at_ns);
    }
}

impl Deref for Poller {
    type Target = DescriptorSet;

    #[inline]
    fn deref(&self) -> &DescriptorSet {
        &self.set
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

impl Token {
    /// The token of the entry of a slab that has fewer than 2^31 places.
    pub(crate) fn of(key: Key) -> Self {
        debug_assert!(u64::from(key.index) & NUMBERED == 0, "{key:?}");
        Self(u64::from(key.generation) << 32 | u64::from(key.index))
    }

    /// The token of a descriptor that is never replaced by another one. `number` is less than 2^30.
    pub(crate) fn number(number: u32) -> Self {
        debug_assert!(u64::from(number) & OWN == 0, "{number}");
        Self(NUMBERED | u64::from(number))
    }

    /// The key of the slab's entry.
    #[inline]
    pub(crate) fn key(self) -> Key {
        Key {
            index: self.0 as u32,
            generation: (self.0 >> 32) as u32,
        }
    }

    fn data(self) -> EventData {
        EventData::new_u64(self.0)
    }
}

/// A token with this bit is not a slab's key.
const NUMBERED: u64 = 1 << 31;
/// A token with this bit too is one of the poller's own.
const OWN: u64 = 1 << 30;
const BELL: Token = Token(NUMBERED | OWN);
const TIMER: Token = Token(NUMBERED | OWN | 1);

impl Polled {
    /// The meaning of an event.
    #[inline]
    pub(crate) fn of(event: &epoll::Event) -> Self {
        let token = Token({ event.data }.u64());
        if token.0 & NUMBERED == 0 {
            return Self::Entry(token, event.flags);
        }
        match token {
            BELL => Self::Bell,
            TIMER => Self::Timer,
            Token(numbered) => Self::Numbered((numbered & !NUMBERED) as u32),
        }
    }
}

impl Bell {
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    pub(crate) fn ring(&self) {
        // It fails only if the counter is full, which takes centuries.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Timer {
    pub(crate) fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        timerfd_create(TimerfdClockId::Monotonic, flags).map(Self)
    }

    /// Has the timer expire at `at_ns` of the monotonic clock; `None` stops it.
    pub(crate) fn set(&self, at_ns: Option<u64>) {
        let expiry = Itimerspec {
            it_interval: timespec(0),
            // The kernel takes 0 for no time.
            it_value: timespec(at_ns.map_or(0, |at_ns| at_ns.max(1))),
        };
        // It fails only for a time that the clock does not have.
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &expiry);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};
    use rtorb_os::clock::monotonic_ns;
    use rtorb_os::slab::Slab;
    use std::os::unix::net::UnixStream;

    /// Longer than anything here takes, in nanoseconds.
    const LONG_NS: u64 = 20_000_000_000;

    fn poller() -> Poller {
        Poller::with_timer().expect("the host has descriptors")
    }

    /// What one wait reports, which is to report something.
    fn polled(poller: &Poller) -> Vec<Polled> {
        let mut room = [MaybeUninit::uninit(); 8];
        let events = poller.wait(&mut room, Some(LONG_NS));
        events.iter().map(Polled::of).collect()
    }

    fn is_silent(poller: &Poller) -> bool {
        poller
            .wait(&mut [MaybeUninit::uninit(); 8], Some(0))
            .is_empty()
    }

    /// A socket with bytes to read, and its peer.
    fn readable() -> (UnixStream, UnixStream) {
        let (socket, peer) = UnixStream::pair().expect("the host has sockets");
        rustix::io::write(&peer, b"!").expect("there is room");
        (socket, peer)
    }

    #[test]
    fn an_event_of_a_removed_entry_is_not_one_of_the_next_entry_at_its_place() {
        let (poller, entries) = (poller(), Slab::new(1));
        let (first, _peer) = readable();
        let old = entries.insert("first").expect("room");
        poller
            .add(&first, Token::of(old), EventFlags::IN)
            .expect("it is open");
        let [Polled::Entry(taken, _)] = polled(&poller)[..] else {
            panic!("one entry is ready");
        };
        assert_eq!(*entries.get(taken.key()).expect("it is there"), "first");
        // Another thread removes the entry, and adds another one, before this one looks up the event.
        poller.remove(&first);
        assert!(entries.remove(old));
        let (second, _peer) = readable();
        let new = entries.insert("second").expect("room");
        assert_eq!(new.index, old.index);
        poller
            .add(&second, Token::of(new), EventFlags::IN)
            .expect("it is open");
        assert!(entries.get(taken.key()).is_none());
        assert_eq!(
            polled(&poller),
            [Polled::Entry(Token::of(new), EventFlags::IN)]
        );
    }

    #[test]
    fn tokens_of_entries_numbers_and_the_poller_are_distinct() {
        let poller = poller();
        let key = Key {
            index: (1 << 31) - 1,
            generation: u32::MAX,
        };
        let (entry, _peer) = readable();
        poller
            .add(&entry, Token::of(key), EventFlags::IN)
            .expect("it is open");
        for number in [0, (1 << 30) - 1] {
            let (numbered, _peer) = readable();
            poller
                .add(&numbered, Token::number(number), ONCE)
                .expect("it is open");
            assert!(polled(&poller).contains(&Polled::Numbered(number)));
        }
        poller.ring();
        let events = polled(&poller);
        assert!(events.contains(&Polled::Bell));
        assert!(events.contains(&Polled::Entry(Token::of(key), EventFlags::IN)));
        assert_eq!((events.len(), Token::of(key).key()), (2, key));
    }

    #[test]
    fn a_ring_ends_one_wait_whenever_it_comes() {
        let poller = poller();
        assert!(is_silent(&poller));
        for rings in [1, 3] {
            (0..rings).for_each(|_| poller.ring());
            assert_eq!(polled(&poller), [Polled::Bell]);
            assert!(is_silent(&poller), "{rings} rings before one wait are one");
        }
    }

    #[test]
    fn no_ring_is_lost_while_others_ring_and_a_thread_waits_again_and_again() {
        const RINGS: u32 = 20_000;
        let (poller, [asked, seen]) = (poller(), [const { AtomicU32::new(0) }; 2]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while seen.load(Ordering::SeqCst) < RINGS {
                    assert_eq!(polled(&poller), [Polled::Bell], "a ring was lost");
                    seen.store(asked.load(Ordering::SeqCst), Ordering::SeqCst);
                }
            });
            for number in 1..=RINGS {
                asked.store(number, Ordering::SeqCst);
                poller.ring();
                // The last ring before a wait counts, so each second one comes while the thread waits or begins to.
                while number % 2 == 0 && seen.load(Ordering::SeqCst) < number {
                    // On a busy host, the thread may need this CPU.
                    std::thread::yield_now();
                }
            }
        });
    }

    #[test]
    fn the_timer_expires_once_each_time_that_it_is_set_and_never_early() {
        let poller = poller();
        for delay_ns in [0, 2_000_000] {
            let at_ns = monotonic_ns() + delay_ns;
            poller.set_timer(Some(at_ns));
            assert_eq!(polled(&poller), [Polled::Timer]);
            assert!(monotonic_ns() >= at_ns);
            assert!(is_silent(&poller));
        }
        poller.set_timer(Some(0));
        assert_eq!(polled(&poller), [Polled::Timer], "the time has passed");
        // A timer that is stopped, or set again, does not expire at its earlier time.
        for later_ns in [None, Some(monotonic_ns() + LONG_NS)] {
            poller.set_timer(Some(0));
            poller.set_timer(later_ns);
            assert!(is_silent(&poller));
        }
    }
}
