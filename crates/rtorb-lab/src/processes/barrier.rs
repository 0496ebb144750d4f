//! Threads that prepare themselves, wait at a barrier, and begin together: nothing but the run itself is measured.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};

/// Threads that wait at a barrier. When it opens, each gets an `S`, such as the start time, and works; its result is a `T`. If this is
/// dropped before, the threads end without work.
#[derive(Debug)]
pub(crate) struct Barrier<S, T> {
    waiting: Vec<(Sender<S>, JoinHandle<Ended<T>>)>,
    tell_ready: Sender<Result<(), String>>,
    ready: Receiver<Result<(), String>>,
}

/// What `spawn` makes of a thread's result. The outer `None`: it did not get its scheduling. The inner `None`: it could not prepare
/// itself, or the barrier never opened.
type Ended<T> = Option<Option<T>>;

impl<S, T> Default for Barrier<S, T> {
    fn default() -> Self {
        let (tell_ready, ready) = channel();
        Self {
            waiting: Vec::new(),
            tell_ready,
            ready,
        }
    }
}

impl<S: Send + Clone + 'static, T: Send + 'static> Barrier<S, T> {
    /// Starts a thread. It runs `prepare`, waits at the barrier, and then runs what `prepare` returned.
    ///
    /// # Errors
    /// What the host refused.
    pub(crate) fn add<W: FnOnce(S) -> T>(
        &mut self,
        name: &str,
        config: &ThreadConfig,
        prepare: impl FnOnce() -> Result<W, String> + Send + 'static,
    ) -> Result<(), String> {
        let (open, opened) = channel();
        let tell_ready = self.tell_ready.clone();
        let run = move || {
            let (work, ready) = match prepare() {
                Ok(work) => (Some(work), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // The starter may have given up; then the barrier never opens.
            let _ = tell_ready.send(ready);
            drop(tell_ready);
            Some(work?(opened.recv().ok()?))
        };
        let thread = spawn(name, config, run).map_err(|refused| refused.to_string())?;
        self.waiting.push((open, thread));
        Ok(())
    }

    /// How many threads there are.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Waits until one more thread is ready.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn await_one(&self) -> Result<(), String> {
        let ready = self.ready.recv_timeout(READY_TIMEOUT);
        ready.map_err(|_| "a thread was not ready in time".to_owned())?
    }

    /// Waits until all threads are ready.
    ///
    /// # Errors
    /// Why one is not.
    pub(crate) fn await_all(&self) -> Result<(), String> {
        self.waiting.iter().try_for_each(|_| self.await_one())
    }

    /// Lets all begin.
    ///
    /// # Errors
    /// That one has ended already.
    pub(crate) fn open(&self, start: &S) -> Result<(), String> {
        let mut all = self.waiting.iter();
        all.try_for_each(|(open, _)| open.send(start.clone()))
            .map_err(|_| "a thread has ended before the start".to_owned())
    }

    /// Waits until all threads have ended, and returns their results in the order in which they were added. `None`: the thread panicked,
    /// could not prepare itself, or never began. Threads that still wait at the barrier end now.
    pub(crate) fn join(self) -> Vec<Option<T>> {
        let ended = self.waiting.into_iter().map(|(open, thread)| {
            drop(open);
            thread.join().ok().flatten().flatten()
        });
        ended.collect()
    }
}

impl<S: Send + Clone + 'static, T: Send + 'static> Barrier<S, Result<T, String>> {
    /// Lets all begin, and waits for their ends.
    ///
    /// # Errors
    /// The first error of one, or that it panicked.
    pub(crate) fn run(self, start: &S) -> Result<Vec<T>, String> {
        self.open(start)?;
        let ended = self.join().into_iter();
        ended
            .map(|result| result.ok_or("a thread panicked")?)
            .collect()
    }
}

/// Far more than a few calls take.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_cannot_prepare_itself_says_why() {
        let mut barrier: Barrier<u64, u64> = Barrier::default();
        let config = ThreadConfig::default();
        barrier
            .add("able", &config, || Ok(|start| start + 1))
            .unwrap();
        barrier.await_all().unwrap();
        let unable = || Err::<fn(u64) -> u64, _>("no lines".to_owned());
        barrier.add("unable", &config, unable).unwrap();
        assert_eq!(barrier.await_one(), Err("no lines".to_owned()));
        assert_eq!(barrier.join(), [None, None]);
    }

    #[test]
    fn all_begin_with_the_same_and_end_in_order() {
        let mut barrier: Barrier<u64, Result<u64, String>> = Barrier::default();
        let config = ThreadConfig::default();
        for number in 0..3 {
            let prepare = move || Ok(move |start| Ok(start + number));
            barrier.add("together", &config, prepare).unwrap();
        }
        barrier.await_all().unwrap();
        assert_eq!(barrier.len(), 3);
        assert_eq!(barrier.run(&7), Ok(vec![7, 8, 9]));
    }
}
