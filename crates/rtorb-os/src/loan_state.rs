//! What a group of threads needs of other groups, and what it lends them.
//!
//! The threads of a group serve its requests. A group whose threads are all busy *asks* for help. If it can have no more threads
//! of its own, it *wants* one of another group, the lender, and *calls* an idle thread there. The state is one word, so that each
//! transition is a single step for all threads. It knows neither threads nor requests: its methods say what happens to them.
//!
//! # A group that needs help
//!
//! ```text
//!              ask                                    want
//!          ------------>                          ------------>
//!  Content               Asking           Content               Wanting
//!          <------------                          <------------
//!             answer                              claim: a lender's thread comes
//!                                                 give_up: an own thread is idle
//! ```
//!
//! Both may happen at once: a group that wants a thread asks again for a further request.
//!
//! # A group that lends
//!
//! ```text
//!              begin_idle                 call: a thread is idle
//!           --------------->            ------------------------->
//!   Serving                  Idle                                  Called
//!           <---------------            <-------------------------
//!               end_idle                         respond
//!
//!               lend
//!           ------------->
//!   Serving               Lent
//!           <-------------
//!              take_back
//! ```

use crate::atomics::{AtomicU64, Ordering, fence};

/// The state of a group of threads that may need help or lend threads.
#[derive(Debug)]
pub struct LoanState {
    /// The numbers of idle and of lent threads, and the flags.
    word: AtomicU64,
}

/// The bits that count the threads that wait.
const IDLE: u64 = (1 << 28) - 1;
const LENT_SHIFT: u32 = 28;
/// The bits that count the threads that serve other groups.
const LENT: u64 = IDLE << LENT_SHIFT;
/// Set while the group asks for help.
const ASKING: u64 = 1 << 56;
/// Set while the group wants a thread of a lender.
const WANTING: u64 = 1 << 57;
/// Set from the call of a thread until one responds.
const CALLED: u64 = 1 << 58;

impl LoanState {
    /// The state of a group whose threads all serve it, and that needs no help.
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    /// Counts a thread that begins to wait; returns true if it is the first. It looks for groups that want it after this.
    #[inline]
    pub fn begin_idle(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
        self.add(1) & IDLE == 0
    }

    /// Counts off a thread that waits no longer; returns true if it was the last.
    #[inline]
    pub fn end_idle(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
        self.subtract(1) & IDLE == 1
    }

    /// True while a thread waits.
    pub fn has_idle(&self) -> bool {
        self.load() & IDLE > 0
    }

    /// Has `report` know whether a thread waits. The first thread that waits calls this, and the last one that does no longer.
    ///
    /// Two threads may report in the wrong order, so each repeats its report until it is true.
    pub fn report_idle(&self, report: impl Fn(bool)) {
        loop {
            let has_idle = self.has_idle();
            report(has_idle);
            self.give_up();
            if self.has_idle() == has_idle {
                return;
            }
        }
    }

    /// Asks for help; returns false if the group asks already. The caller then wakes who answers.
    pub fn ask(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
        self.set(ASKING)
    }

    /// Takes up the group's question; returns false if it has none. A request that came before the question is seen after this.
    pub fn answer(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
        self.clear(ASKING)
    }

    /// Wants a thread of a lender: of those that begin to wait from now on, or of those that [`call`](Self::call) finds.
    pub fn want(&self) {
        #[cfg(simulation)]
        if crate::simulation::is_planted("help-unwanted") {
            return;
        }
        #[cfg(simulation)]
        crate::simulation::point();
        self.set(WANTING);
    }

    /// True while the group wants a thread of a lender.
    #[inline]
    pub fn wants(&self) -> bool {
        self.load() & WANTING != 0
    }

    /// Claims the help that the group wants; returns true to one thread only.
    pub fn claim(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
        self.wants() && self.clear(WANTING)
    }

    /// Calls a thread for another group, which wants one already; returns false if none waits.
    pub fn call(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
        #[cfg(loom)]
        if is_removed("call") {
            return self.has_idle();
        }
        let called = |word| if word & IDLE > 0 { word | CALLED } else { word };
        // The word is written even if no thread waits: then the next that does sees what the other group wants.
        let change = |word| Some(called(word));
        let before = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        before.is_ok_and(|word| word & IDLE > 0)
    }

    /// Notes that a called thread has come, whichever it is.
    pub fn respond(&self) {
        self.clear(CALLED);
    }

    /// True from a call until a thread responds.
    pub fn is_called(&self) -> bool {
        self.load() & CALLED != 0
    }

    /// Counts a thread that goes to serve another group.
    pub fn lend(&self) {
        self.add(1 << LENT_SHIFT);
    }

    /// Counts off a thread that has returned from another group.
    pub fn take_back(&self) {
        self.subtract(1 << LENT_SHIFT);
    }

    /// The number of threads that serve other groups.
    ///
    /// One thread counts a request and then reads this; another lends itself and then counts the requests behind this. At least
    /// one of them sees both.
    pub fn lent(&self) -> u32 {
        fence(Ordering::SeqCst);
        ((self.load() & LENT) >> LENT_SHIFT) as u32
    }

    /// Wants no thread of a lender any more, if an own one waits.
    fn give_up(&self) {
        #[cfg(loom)]
        if is_removed("give up") {
            return;
        }
        let change = |word| (word & IDLE > 0 && word & WANTING != 0).then_some(word & !WANTING);
        let _ = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }

    /// Adds to one of the counts. Returns the word before.
    #[inline]
    fn add(&self, one: u64) -> u64 {
        #[cfg(loom)]
        if is_removed(&format!("add at bit {}", one.trailing_zeros())) {
            return self.load();
        }
        self.word.fetch_add(one, Ordering::AcqRel)
    }

    /// Subtracts from one of the counts. Returns the word before.
    #[inline]
    fn subtract(&self, one: u64) -> u64 {
        #[cfg(loom)]
        if is_removed(&format!("subtract at bit {}", one.trailing_zeros())) {
            return self.load();
        }
        self.word.fetch_sub(one, Ordering::AcqRel)
    }

    /// Sets a flag. Returns true if it was clear.
    fn set(&self, flag: u64) -> bool {
        #[cfg(loom)]
        if is_removed(&format!("set bit {}", flag.trailing_zeros())) {
            return true;
        }
        self.word.fetch_or(flag, Ordering::AcqRel) & flag == 0
    }

    /// Clears a flag. Returns true if it was set.
    fn clear(&self, flag: u64) -> bool {
        #[cfg(loom)]
        if is_removed(&format!("clear bit {}", flag.trailing_zeros())) {
            return self.load() & flag != 0;
        }
        self.word.fetch_and(!flag, Ordering::AcqRel) & flag != 0
    }

    /// The word. It shows what other threads did before they changed it.
    #[inline]
    fn load(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }
}

/// True for the transition that a model goes without. Models show in this way that they need each of them.
#[cfg(loom)]
fn is_removed(transition: &str) -> bool {
    std::env::var("RTORB_LOOM_WITHOUT").is_ok_and(|removed| removed == transition)
}

impl Default for LoanState {
    fn default() -> Self {
        Self::new()
    }
}
