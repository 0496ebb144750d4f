//! Several guests side by side: as many threads, each of which boots one case after another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_os::thread::{ThreadConfig, spawn};

/// What became of a case.
pub(super) type WorkResult<T> = Result<T, LabError>;

/// What a worker tells: which case, by its place in the list.
pub(super) enum WorkerEvent<T> {
    Begins(usize),
    Ends(usize, WorkResult<T>),
}

/// What the listener answers to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    /// No more cases are begun.
    Stop,
}

/// Runs the cases `0..count` in this order on so many threads, and tells `listen` what happens, on the calling thread; also every
/// quarter of a second that nothing does (`None`). Returns when all are over.
///
/// # Errors
/// That a thread was refused.
pub(super) fn run<T: Send + 'static>(
    count: usize,
    guests: usize,
    work: impl Fn(usize) -> WorkResult<T> + Send + Sync + 'static,
    listen: &mut dyn FnMut(Option<WorkerEvent<T>>) -> Then,
) -> Result<(), LabError> {
    let work = Arc::new(work);
    let next = Arc::new(AtomicUsize::new(0));
    let (say, hear) = channel();
    let begin = || {
        let (work, next, say) = (Arc::clone(&work), Arc::clone(&next), Sender::clone(&say));
        let turns = move || take_turns(count, &next, &*work, &say);
        spawn("guest", &ThreadConfig::default(), turns)
    };
    let mut threads = Vec::new();
    let mut refused = None;
    for _ in 0..guests.clamp(1, count.max(1)) {
        match begin() {
            Ok(thread) => threads.push(thread),
            // Those before it may have begun a case.
            Err(error) => {
                next.store(count, Ordering::SeqCst);
                refused = Some(LabError::process("a guest", error.to_string()));
                break;
            }
        }
    }
    drop(say);
    loop {
        let then = match hear.recv_timeout(TICK) {
            Ok(event) => listen(Some(event)),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => listen(None),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        };
        if then == Then::Stop {
            next.store(count, Ordering::SeqCst);
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
    refused.map_or(Ok(()), Err)
}

fn take_turns<T>(
    count: usize,
    next: &AtomicUsize,
    work: &dyn Fn(usize) -> WorkResult<T>,
    say: &Sender<WorkerEvent<T>>,
) {
    loop {
        let at = next.fetch_add(1, Ordering::SeqCst);
        // Who hears it is there until this thread has ended.
        if at >= count || say.send(WorkerEvent::Begins(at)).is_err() {
            return;
        }
        // What else was measured is not lost with it.
        let ended = catch_unwind(AssertUnwindSafe(|| work(at))).unwrap_or_else(|_| {
            let what = "the thread that watched over it panicked";
            Err(LabError::process("a guest", what))
        });
        let is_interrupted = matches!(ended, Err(LabError::Interrupted));
        if say.send(WorkerEvent::Ends(at, ended)).is_err() || is_interrupted {
            return;
        }
    }
}

/// How often the listener is asked when nothing happens.
const TICK: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn cases_run(count: usize, guests: usize, stop_at: usize) -> (usize, Vec<usize>) {
        let mut begun = 0;
        let mut results = vec![None; count];
        let work = |at| {
            // As a boot does, it takes longer than hearing of it.
            std::thread::sleep(Duration::from_millis(1));
            Ok(at * at)
        };
        run(count, guests, work, &mut |event| match event {
            Some(WorkerEvent::Begins(at)) => {
                begun += 1;
                if at == stop_at {
                    Then::Stop
                } else {
                    Then::GoOn
                }
            }
            Some(WorkerEvent::Ends(at, ended)) => {
                results[at] = ended.ok();
                Then::GoOn
            }
            None => Then::GoOn,
        })
        .unwrap();
        (begun, results.into_iter().flatten().collect())
    }

    #[test]
    fn every_case_is_run_once_by_any_number_of_workers() {
        for guests in [0, 1, 3, 20] {
            let (begun, results) = cases_run(7, guests, usize::MAX);
            assert_eq!(
                (begun, results),
                (7, vec![0, 1, 4, 9, 16, 25, 36]),
                "{guests}"
            );
        }
        assert_eq!(cases_run(0, 2, usize::MAX), (0, vec![]));
    }

    #[test]
    fn what_was_begun_ends_when_no_more_is_wanted() {
        // More cases than the workers do before the thread that stops them has a CPU, on a busy host too.
        let (begun, results) = cases_run(1_000_000, 2, 3);
        assert!(begun < 1_000_000);
        assert_eq!(begun, results.len());
    }

    #[test]
    fn a_case_that_panics_is_the_only_one_that_fails() {
        let mut failed = Vec::new();
        let mut done = 0;
        let work = |at| {
            assert_ne!(at, 2, "this one panics");
            Ok(())
        };
        let ended = run(5, 2, work, &mut |event| {
            match event {
                Some(WorkerEvent::Ends(_, Ok(()))) => done += 1,
                Some(WorkerEvent::Ends(at, Err(error))) => failed.push((at, error.to_string())),
                Some(WorkerEvent::Begins(_)) | None => {}
            }
            Then::GoOn
        });
        ended.unwrap();
        assert_eq!((done, failed.len()), (4, 1));
        assert!(
            failed[0].0 == 2 && failed[0].1.contains("panicked"),
            "{failed:?}"
        );
    }

    #[test]
    fn an_interrupt_ends_every_worker() {
        let mut begun = 0;
        let mut listen = |event: Option<WorkerEvent<()>>| {
            begun += usize::from(matches!(event, Some(WorkerEvent::Begins(_))));
            Then::GoOn
        };
        run(100, 4, |_| Err(LabError::Interrupted), &mut listen).unwrap();
        assert!(begun <= 4, "{begun}");
    }
}
