//! A thread that wakes a more urgent one, which has the CPU at once: by a futex and by an eventfd.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::{Pauses, Question, Samples, Urgency, deadline_ns, run};
use crate::contestants::ping_pong::futex::sleep_while;
use crate::processes::probe::Answer;

/// Something to wake a thread by.
trait Bell: Send + Sync + 'static {
    /// Wakes who listens.
    fn ring(&self) -> Result<(), Errno>;
    /// Sleeps until it is rung; not if it was rung since the last time.
    fn listen(&self) -> Result<(), Errno>;
}

/// How often it was rung and not yet heard.
impl Bell for AtomicU32 {
    fn ring(&self) -> Result<(), Errno> {
        self.store(RUNG, Release);
        futex::wake(self, 1);
        Ok(())
    }

    fn listen(&self) -> Result<(), Errno> {
        sleep_while(self, SILENT, None);
        self.store(SILENT, Release);
        Ok(())
    }
}

impl Bell for OwnedFd {
    fn ring(&self) -> Result<(), Errno> {
        rustix::io::write(self, &1u64.to_ne_bytes()).map(drop)
    }

    fn listen(&self) -> Result<(), Errno> {
        rustix::io::read(self, &mut [0; size_of::<u64>()]).map(drop)
    }
}

pub(super) fn by_futex(question: &Question) -> Result<Answer, String> {
    time(question, AtomicU32::new(SILENT))
}

pub(super) fn by_eventfd(question: &Question) -> Result<Answer, String> {
    time(question, eventfd(0, EventfdFlags::CLOEXEC).map_err(said)?)
}

fn time(question: &Question, bell: impl Bell) -> Result<Answer, String> {
    let waker = Arc::new(Shared {
        bell,
        rung_ns: AtomicU64::new(0),
        heard: AtomicU32::new(0),
        over: AtomicBool::new(false),
    });
    let woken = Arc::clone(&waker);
    let (samples, pauses) = (Samples::of(question), Pauses::of(question));
    run(
        question,
        Box::new(move || waker.wake(pauses).map(|()| None).map_err(said)),
        Some((
            Urgency::Second,
            Box::new(move || woken.wake_up(samples).map(Some).map_err(said)),
        )),
    )
}

struct Shared<B> {
    bell: B,
    rung_ns: AtomicU64,
    /// How often the woken thread ran.
    heard: AtomicU32,
    /// Written by the woken thread when it has its samples, by the other when it waited in vain.
    over: AtomicBool,
}

impl<B: Bell> Shared<B> {
    fn wake(&self, mut pauses: Pauses) -> Result<(), Errno> {
        let deadline_ns = deadline_ns();
        let mut heard = 0;
        while !self.over.load(Acquire) {
            pauses.pause();
            self.rung_ns.store(monotonic_ns(), Release);
            self.bell.ring()?;
            // Under SCHED_FIFO it has run already.
            match sleep_while(&self.heard, heard, Some(deadline_ns)) {
                Some(now) => heard = now,
                None => break,
            }
        }
        self.over.store(true, Release);
        self.bell.ring()
    }

    fn wake_up(&self, mut samples: Samples) -> Result<Samples, Errno> {
        let mut heard = 0;
        loop {
            self.bell.listen()?;
            if self.over.load(Acquire) {
                return Ok(samples);
            }
            if !samples.end(self.rung_ns.load(Acquire)) {
                self.over.store(true, Release);
            }
            heard += 1;
            self.heard.store(heard, Release);
            futex::wake(&self.heard, 1);
            if self.over.load(Acquire) {
                return Ok(samples);
            }
        }
    }
}

fn said(errno: Errno) -> String {
    format!("a wake-up: {errno}")
}

const SILENT: u32 = 0;
const RUNG: u32 = 1;
