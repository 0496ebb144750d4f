//! The enforcing thread of an ORB, and the budgets of the threads that it watches.

use super::budget::Budget;
use super::enforcement::Overrun;
use crate::exception::{SystemException, local};
use crate::poller::{ONCE, Polled, Poller, Token};
use crate::realtime::{ClientThread, RtCore, caller_policy, refusal, set_demotion};
use core::cell::RefCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::sched::allowed;
use rtorb_os::set_once::SetOnce;
use rtorb_os::slab::{Key, Slab};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::JoinHandle;
use std::sync::{Arc, Weak};

/// Starts and stops the enforcing thread of an ORB. It starts when a servant with a worst case is activated whose overruns are not only
/// counted, and ends with the ORB.
#[derive(Debug)]
pub(crate) struct Enforcer {
    config: ClientThread,
    threads: Arc<WatchedThreads>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

/// The state that the enforcing thread and the serving threads share.
#[derive(Debug)]
struct WatchedThreads {
    rt: Arc<RtCore>,
    /// The poller in which the enforcing thread sleeps. It exists once the thread has started.
    poller: SetOnce<Poller>,
    /// The budgets of live threads that have served a call with one.
    budgets: Slab<Arc<Budget>>,
    stop: AtomicBool,
}

/// The most threads whose calls are watched at a time.
const THREADS_MAX: usize = 1 << 16;

/// The most expired timers that one system call reports.
const EVENTS_MAX: usize = 16;

thread_local! {
    /// The budgets of this thread: one for each ORB.
    static OWN: RefCell<Vec<OwnBudget>> = const { RefCell::new(Vec::new()) };
    /// The budget of the call that this thread serves.
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
}

/// The budget of a thread with one ORB. Dropping it ends the watch.
struct OwnBudget {
    threads: Weak<WatchedThreads>,
    key: Key,
    budget: Weak<Budget>,
}

impl Enforcer {
    /// Makes an enforcer, with the scheduling of its thread.
    pub(crate) fn new(config: ClientThread, rt: Arc<RtCore>) -> Self {
        Self {
            config,
            threads: Arc::new(WatchedThreads {
                rt,
                poller: SetOnce::new(),
                budgets: Slab::new(THREADS_MAX),
                stop: AtomicBool::new(false),
            }),
            thread: Mutex::default(),
        }
    }

    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// NO_PERMISSION if the host refuses the thread its priority, or would refuse a demoted thread the priority that it had;
    /// NO_RESOURCES if it refuses the thread or a descriptor.
    pub(crate) fn start(&self, overrun: Overrun) -> Result<(), SystemException> {
        let threads = &self.threads;
        if let Overrun::Demote(_) = overrun {
            let returns_to = threads.rt.most_urgent_policy();
            let refused = allowed(returns_to).or_else(|no| threads.rt.best_effort.pass(no));
            refused.map_err(refusal)?;
        }
        let mut thread = self.thread.lock();
        if thread.is_some() {
            return Ok(());
        }
        if threads.poller.get().is_none() {
            let made = Poller::new().map_err(|_| local::DESCRIPTOR_REFUSED)?;
            threads.poller.get_or_make(|| made);
        }
        let of_thread = Arc::clone(threads);
        let spawned = self.config.spawn("rtorb-enforcer", move || of_thread.run());
        *thread = Some(spawned.map_err(refusal)?);
        Ok(())
    }

    /// Returns the budget for a call that this thread serves; `None` within another call with a budget, which includes this one.
    ///
    /// # Errors
    /// NO_PERMISSION if the host does not let the enforcing thread be more urgent than this one; NO_RESOURCES if it refuses a timer.
    pub(super) fn budget_here(&self) -> Result<Option<Arc<Budget>>, SystemException> {
        let is_within = CURRENT.try_with(|current| current.borrow().is_some());
        // A thread that calls from a destructor while it ends has no budgets any more.
        if is_within.unwrap_or(true) {
            return Ok(None);
        }
        let rt = &self.threads.rt;
        rt.keep_above(caller_policy(rt).priority())
            .map_err(refusal)?;
        let known = OWN.try_with(|own| {
            let of_orb = |one: &&OwnBudget| one.threads.as_ptr() == Arc::as_ptr(&self.threads);
            let own = own.borrow();
            own.iter().find(of_orb).and_then(|one| one.budget.upgrade())
        });
        match known {
            Ok(Some(budget)) => Ok(Some(budget)),
            Ok(None) => self.watch_this_thread().map(Some),
            Err(_has_ended) => Ok(None),
        }
    }

    #[cold]
    fn watch_this_thread(&self) -> Result<Arc<Budget>, SystemException> {
        let refused = |_| local::DESCRIPTOR_REFUSED;
        let budget = Arc::new(Budget::of_this_thread().map_err(refused)?);
        let threads = &self.threads;
        let key = threads.budgets.insert(Arc::clone(&budget));
        let own = OwnBudget {
            threads: Arc::downgrade(threads),
            key: key.ok_or(local::DESCRIPTOR_REFUSED)?,
            budget: Arc::downgrade(&budget),
        };
        let poller = threads.poller.get().ok_or(local::CONTRADICTION)?;
        let watched = poller.add(&budget.timer, Token::of(own.key), ONCE);
        watched.map_err(refused)?;
        OWN.with_borrow_mut(|all| {
            // Those of ORBs that have ended.
            all.retain(|one| one.threads.strong_count() > 0);
            all.push(own);
        });
        Ok(budget)
    }
}

impl Drop for Enforcer {
    fn drop(&mut self) {
        self.threads.stop.store(true, Ordering::Release);
        if let Some(poller) = self.threads.poller.get() {
            poller.ring();
        }
        if let Some(thread) = self.thread.get_mut().take() {
            // The thread does not panic, and returns nothing.
            let _ = thread.join();
        }
    }
}

impl WatchedThreads {
    fn run(&self) {
        let Some(poller) = self.poller.get() else {
            return;
        };
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        while !self.stop.load(Ordering::Acquire) {
            for event in poller.wait(&mut room, None) {
                if let Polled::Entry(token, _) = Polled::of(event)
                    && let Some(budget) = self.budgets.get(token.key())
                {
                    budget.look(&self.rt);
                }
            }
        }
    }
}

impl Drop for OwnBudget {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.upgrade() {
            threads.budgets.remove(self.key);
        }
    }
}

/// Replaces the budget of the call that this thread serves; `None` when that call ends. Returns the budget before.
pub(super) fn replace_current(budget: Option<Arc<Budget>>) -> Option<Arc<Budget>> {
    set_demotion(budget.as_ref().map(|budget| Arc::clone(&budget.demotion)));
    let before = CURRENT.try_with(|current| current.replace(budget));
    before.ok().flatten()
}

/// Returns true if the servant that this thread executes is asked to stop, because it has exceeded its budget.
pub(crate) fn is_asked_to_stop() -> bool {
    let asked = CURRENT.try_with(|current| {
        let current = current.borrow();
        current.as_ref().is_some_and(|budget| budget.asks_to_stop())
    });
    asked.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::super::budget::{Allowance, BudgetOutcome};
    use super::*;
    use crate::Orb;
    use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    /// Longer than any of this takes, in nanoseconds.
    const LONG_NS: u64 = 20_000_000_000;

    /// Serves a call with a budget until it has had so much CPU time, or is asked to stop; returns what was done about it and its execution.
    fn serve(enforcer: &Enforcer, worst_ns: u64, execute_ns: u64) -> (BudgetOutcome, u64) {
        let budget = enforcer.budget_here().expect("the host allows it");
        let budget = budget.expect("no call is in progress");
        let (began_ns, cpu_began_ns) = (monotonic_ns(), thread_cpu_ns());
        budget.begin(&Allowance {
            worst_ns,
            began_ns,
            cpu_began_ns: Some(cpu_began_ns),
            overrun: Overrun::Stop,
        });
        while thread_cpu_ns() - cpu_began_ns < execute_ns && !budget.asks_to_stop() {
            assert!(monotonic_ns() - began_ns < LONG_NS, "it is asked to stop");
        }
        (budget.end(), thread_cpu_ns() - cpu_began_ns)
    }

    #[test]
    fn short_and_long_calls_in_any_order_are_judged_by_their_own_budgets() {
        let orb = Orb::builder().build().expect("an ORB");
        let enforcer = &orb.core.client.timing.enforcer;
        enforcer.start(Overrun::Stop).expect("a thread");
        thread::scope(|scope| {
            for seed in 1..4_u64 {
                scope.spawn(move || {
                    for call in 0..400_u64 {
                        let drawn = (seed * 1000 + call).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                        let worst_ns = 20_000 + drawn % 400_000;
                        let execute_ns = match drawn % 3 {
                            0 => LONG_NS,
                            _ => worst_ns / 50,
                        };
                        let (outcome, executed_ns) = serve(enforcer, worst_ns, execute_ns);
                        if execute_ns == LONG_NS {
                            assert_eq!(outcome, BudgetOutcome::Stopped);
                        }
                        if outcome != BudgetOutcome::Kept {
                            assert!(executed_ns >= worst_ns, "{executed_ns} of {worst_ns}");
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_thread_that_ends_is_watched_no_longer_and_so_is_one_of_an_orb_that_has_ended() {
        let serve_with = |orb: &Orb| {
            let enforcer = &orb.core.client.timing.enforcer;
            enforcer.start(Overrun::Stop).expect("a thread");
            serve(enforcer, LONG_NS, 0)
        };
        let orb = Orb::builder().build().expect("an ORB");
        let key = thread::scope(|scope| {
            let served = scope.spawn(|| {
                serve_with(&orb);
                OWN.with_borrow(|own| own[0].key)
            });
            served.join().expect("no panic")
        });
        let threads = &orb.core.client.timing.enforcer.threads;
        assert!(threads.budgets.get(key).is_none());
        thread::spawn(move || {
            for _ in 0..3 {
                serve_with(&Orb::builder().build().expect("an ORB"));
            }
            assert_eq!(OWN.with_borrow(Vec::len), 1, "the last ORB's");
        })
        .join()
        .expect("no panic");
    }

    /// The budgets of a thread may end before what else it has, in the order in which it has first used them.
    #[test]
    fn a_thread_that_ends_serves_calls_without_a_budget_from_its_destructors() {
        struct Calls(Option<(Orb, Sender<bool>)>);
        impl Drop for Calls {
            fn drop(&mut self) {
                if let Some((orb, budgets)) = self.0.take() {
                    let budget = orb.core.client.timing.enforcer.budget_here();
                    let _ = budgets.send(matches!(budget, Ok(None)));
                }
            }
        }
        thread_local! {
            static LAST: RefCell<Calls> = const { RefCell::new(Calls(None)) };
        }
        let orb = Orb::builder().build().expect("an ORB");
        let enforcer = &orb.core.client.timing.enforcer;
        enforcer.start(Overrun::Stop).expect("a thread");
        let (budgets, got) = channel();
        let of_thread = orb.clone();
        let ended = thread::spawn(move || {
            // What is used first ends last.
            assert!(!is_asked_to_stop());
            LAST.set(Calls(Some((of_thread.clone(), budgets))));
            serve(&of_thread.core.client.timing.enforcer, LONG_NS, 0);
        });
        ended.join().expect("no panic");
        assert_eq!(got.recv(), Ok(true));
    }
}
