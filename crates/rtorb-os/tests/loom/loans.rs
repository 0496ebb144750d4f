//! The state of groups of threads that borrow of each other. Each model takes the steps of a pool's threads, without its I/O.

use super::model;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use rtorb_os::loan_state::LoanState;
use std::process::Command;

/// An event that one thread reports to another: it stays until it is taken.
#[derive(Default)]
struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.rung.notify_one();
    }

    /// Waits until the bell was rung. If it never is, loom reports that all threads wait.
    fn wait(&self) {
        let mut is_rung = self.is_rung.lock().unwrap();
        while !*is_rung {
            is_rung = self.rung.wait(is_rung).unwrap();
        }
        *is_rung = false;
    }
}

/// A group that borrows and one that lends to it.
#[derive(Default)]
struct Groups {
    borrower: LoanState,
    lender: LoanState,
    call: Bell,
    /// The threads that claimed what the borrower wants.
    helping: AtomicU32,
}

impl Groups {
    /// Borrows a thread: what a helper thread does for a group whose threads are all busy.
    fn borrow(&self) {
        self.borrower.want();
        if self.lender.call() {
            self.call.ring();
        }
    }

    /// A thread of the lender becomes idle, and helps before it waits; returns false if it is not wanted.
    fn become_idle(&self) -> bool {
        self.lender.begin_idle();
        let is_wanted = self.borrower.wants();
        if is_wanted {
            self.lender.end_idle();
            self.help();
        }
        is_wanted
    }

    fn help(&self) {
        self.lender.respond();
        if self.borrower.claim() {
            self.lender.lend();
            self.helping.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Starts a thread that works for what it shares with others.
fn spawn<S: Send + Sync + 'static>(
    shared: &Arc<S>,
    run: impl Fn(&S) + 'static,
) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || run(&shared))
}

#[test]
fn loom_loans_a_request_does_not_wait_while_a_lender_is_idle() {
    model(3, || {
        let groups = Arc::new(Groups::default());
        let lender = spawn(&groups, |groups| {
            if !groups.become_idle() {
                groups.call.wait();
                groups.lender.end_idle();
                groups.help();
            }
        });
        groups.borrow();
        lender.join().unwrap();
        assert_eq!(groups.helping.load(Ordering::Relaxed), 1);
        assert_eq!(groups.lender.lent(), 1);
        assert!(!groups.borrower.wants() && !groups.lender.is_called());
        groups.lender.take_back();
        assert_eq!(groups.lender.lent(), 0);
        assert!(!groups.lender.has_idle() && !groups.lender.call());
    });
}

#[test]
fn loom_loans_of_two_lent_threads_one_claims_what_is_wanted() {
    model(3, || {
        let groups = Arc::new(Groups::default());
        let lenders = [0, 1].map(|_| {
            spawn(&groups, |groups| {
                groups.become_idle();
            })
        });
        groups.borrow();
        for lender in lenders {
            lender.join().unwrap();
        }
        let helping = groups.helping.load(Ordering::Relaxed);
        assert_eq!(groups.lender.lent(), helping);
        if helping == 0 {
            groups.call.wait();
            groups.help();
        }
        assert_eq!(groups.helping.load(Ordering::Relaxed), 1);
    });
}

/// A group with a queue, whose helper thread starts a thread of its own for each request that has none.
#[derive(Default)]
struct Queue {
    loans: LoanState,
    requests: AtomicU32,
    threads: AtomicU32,
    bell: Bell,
}

impl Queue {
    fn add_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.loans.ask() {
            self.bell.ring();
        }
    }

    fn lacks_thread(&self) -> bool {
        let threads = self.threads.load(Ordering::Relaxed);
        threads.saturating_sub(self.loans.lent()) < self.requests.load(Ordering::Relaxed)
    }
}

#[test]
fn loom_loans_no_request_for_help_is_lost() {
    model(3, || {
        let queue = Arc::new(Queue::default());
        let helper = spawn(&queue, |queue| {
            while queue.threads.load(Ordering::Relaxed) < 2 {
                queue.bell.wait();
                if queue.loans.answer() {
                    while queue.lacks_thread() {
                        queue.threads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        let other = spawn(&queue, Queue::add_request);
        queue.add_request();
        other.join().unwrap();
        helper.join().unwrap();
    });
}

#[test]
fn loom_loans_a_request_beside_a_loan_is_seen_by_one_of_both() {
    model(3, || {
        let queue = Arc::new(Queue::default());
        queue.threads.store(1, Ordering::Relaxed);
        let found = Arc::new(AtomicU32::new(0));
        let lent = {
            let (queue, found) = (queue.clone(), found.clone());
            thread::spawn(move || {
                queue.loans.lend();
                found.fetch_add(u32::from(queue.lacks_thread()), Ordering::Relaxed);
            })
        };
        queue.requests.fetch_add(1, Ordering::Relaxed);
        let is_found = queue.lacks_thread();
        lent.join().unwrap();
        assert!(is_found || found.load(Ordering::Relaxed) == 1);
        queue.loans.take_back();
        assert!(!queue.lacks_thread());
    });
}

/// A group without a queue: the kernel watches for its requests while all its threads are busy.
#[derive(Default)]
struct Watched {
    loans: LoanState,
    is_watched: Mutex<bool>,
}

impl Watched {
    fn report_idle(&self) {
        self.loans.report_idle(|has_idle| {
            *self.is_watched.lock().unwrap() = !has_idle;
        });
    }

    fn begin_idle(&self) {
        if self.loans.begin_idle() {
            self.report_idle();
        }
    }

    fn end_idle(&self) {
        if self.loans.end_idle() {
            self.report_idle();
        }
    }
}

#[test]
fn loom_loans_a_group_is_watched_while_its_threads_are_busy_and_only_then() {
    model(3, || {
        let group = Arc::new(Watched::default());
        group.begin_idle();
        let other = spawn(&group, |group| {
            group.begin_idle();
            group.end_idle();
        });
        group.end_idle();
        other.join().unwrap();
        assert!(*group.is_watched.lock().unwrap());
        let other = spawn(&group, Watched::begin_idle);
        group.begin_idle();
        group.end_idle();
        other.join().unwrap();
        assert!(!*group.is_watched.lock().unwrap());
    });
}

#[test]
fn loom_loans_a_busy_group_is_watched_or_wants_a_thread_and_an_idle_one_wants_none() {
    model(3, || {
        let group = Arc::new(Watched::default());
        group.report_idle();
        let helper = spawn(&group, |group| {
            // The report of a request, which waits all the time.
            if core::mem::take(&mut *group.is_watched.lock().unwrap()) {
                group.loans.want();
            }
        });
        group.begin_idle();
        group.end_idle();
        helper.join().unwrap();
        assert!(group.loans.wants() || *group.is_watched.lock().unwrap());
        group.begin_idle();
        assert!(!group.loans.wants());
    });
}

/// An idle thread of a lender, which is raised before it is called.
#[derive(Default)]
struct Raised {
    loans: LoanState,
    is_raised: Mutex<bool>,
}

impl Raised {
    fn call(&self) {
        assert!(self.loans.call(), "a thread is idle");
        *self.is_raised.lock().unwrap() = true;
    }

    /// Lowers the thread again, after another thread has responded.
    fn lower(&self) {
        let mut is_raised = self.is_raised.lock().unwrap();
        *is_raised &= self.loans.is_called();
    }
}

#[test]
fn loom_loans_a_thread_that_is_called_again_stays_raised() {
    model(3, || {
        let thread = Arc::new(Raised::default());
        thread.loans.begin_idle();
        thread.call();
        thread.loans.respond();
        let other = spawn(&thread, Raised::lower);
        thread.call();
        other.join().unwrap();
        assert!(*thread.is_raised.lock().unwrap());
        thread.loans.respond();
        thread.lower();
        assert!(!*thread.is_raised.lock().unwrap());
    });
}

/// Each transition, and a model that fails without it. A bit is the lowest one of a count, or a flag.
const NEEDED: [(&str, &str); 11] = [
    (
        "add at bit 0",
        "a_busy_group_is_watched_or_wants_a_thread_and_an_idle_one_wants_none",
    ),
    (
        "subtract at bit 0",
        "a_group_is_watched_while_its_threads_are_busy_and_only_then",
    ),
    (
        "add at bit 28",
        "a_request_does_not_wait_while_a_lender_is_idle",
    ),
    (
        "subtract at bit 28",
        "a_request_does_not_wait_while_a_lender_is_idle",
    ),
    ("set bit 56", "no_request_for_help_is_lost"),
    ("clear bit 56", "no_request_for_help_is_lost"),
    (
        "set bit 57",
        "a_busy_group_is_watched_or_wants_a_thread_and_an_idle_one_wants_none",
    ),
    (
        "clear bit 57",
        "of_two_lent_threads_one_claims_what_is_wanted",
    ),
    ("clear bit 58", "a_thread_that_is_called_again_stays_raised"),
    ("call", "a_thread_that_is_called_again_stays_raised"),
    (
        "give up",
        "a_busy_group_is_watched_or_wants_a_thread_and_an_idle_one_wants_none",
    ),
];

#[test]
fn loom_loans_each_transition_is_needed_by_a_model() {
    let program = std::env::current_exe().unwrap();
    for (transition, model) in NEEDED {
        let run = Command::new(&program)
            .args(["--exact", &format!("loans::loom_loans_{model}")])
            .env("RTORB_LOOM_WITHOUT", transition)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(said.contains("running 1 test"), "{model}: {said}");
        assert!(!run.status.success(), "{model} holds without {transition}");
    }
}
