//! The threads of a load, and whether each of them has done something.
//!
//! Each begins with the priority of any program and takes the lowest one then: beside other loads that run already, with the
//! lowest it would take long to begin.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rtorb_os::thread::{ThreadConfig, spawn};

/// The threads of one kind of load.
pub(super) struct Workers {
    count: usize,
    tell: Sender<()>,
    told: Receiver<()>,
}

impl Workers {
    pub(super) fn new() -> Self {
        let (tell, told) = channel();
        Self {
            count: 0,
            tell,
            told,
        }
    }

    /// Work that never ends by itself, on a thread of its own; the process ends when it fails, and with the main thread.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        work: impl FnOnce(Begun) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let begun = Begun {
            tell: Some(self.tell.clone()),
        };
        let until_it_fails = move || {
            let what = work(begun)
                .err()
                .map_or_else(|| "ended".to_owned(), |error| error.to_string());
            // The laboratory may be gone, and then nobody wants to hear it.
            let _ = writeln!(io::stdout(), "error {name}: {what}");
            std::process::exit(1);
        };
        spawn(name, &ThreadConfig::default(), until_it_fails).map_err(io::Error::other)?;
        self.count += 1;
        Ok(())
    }

    /// Waits until each of them has done something and has the lowest priority.
    ///
    /// # Errors
    /// That one has not within `at_most`.
    pub(super) fn await_begin(self, at_most: Duration) -> io::Result<()> {
        let told = (0..self.count).try_for_each(|_| self.told.recv_timeout(at_most));
        told.map_err(|error: RecvTimeoutError| io::Error::other(error))
    }
}

/// By which a worker tells that it has done something.
pub(super) struct Begun {
    tell: Option<Sender<()>>,
}

impl Begun {
    /// Called after each piece of work; the first time counts.
    ///
    /// # Errors
    /// That the thread cannot have the lowest priority.
    pub(super) fn done_something(&mut self) -> io::Result<()> {
        if let Some(tell) = self.tell.take() {
            lower_priority()?;
            // Nobody hears it when the time is over.
            let _ = tell.send(());
        }
        Ok(())
    }
}

/// Of the calling thread.
pub(super) fn lower_priority() -> io::Result<()> {
    rustix::process::nice(NICE)?;
    Ok(())
}

/// From the highest priority to the lowest: it is added, and stops at the lowest wherever it begins.
const NICE: i32 = 39;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_waited_for() {
        let mut workers = Workers::new();
        let (go, gone) = channel::<()>();
        let lazy = move |mut begun: Begun| -> io::Result<()> {
            while gone.recv().is_ok() {
                begun.done_something()?;
            }
            loop {
                std::thread::park();
            }
        };
        let busy = |mut begun: Begun| -> io::Result<()> {
            begun.done_something()?;
            begun.done_something()?;
            loop {
                std::thread::park();
            }
        };
        workers.start("lazy", lazy).unwrap();
        workers.start("busy", busy).unwrap();
        workers.told.recv_timeout(LONG).unwrap();
        assert!(workers.told.try_recv().is_err(), "one told twice");
        go.send(()).unwrap();
        workers.count = 1;
        workers.await_begin(LONG).unwrap();
    }

    const LONG: Duration = Duration::from_secs(20);
}
