//! A thread that prints lines. The threads that make the lines do not wait for the reader of the output.

use std::sync::Arc;
use std::time::Duration;

use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::{ThreadConfig, spawn};

use crate::output::{line, warn};

/// A bounded queue of lines, and the thread that prints them.
///
/// A line that finds the queue full is dropped and counted.
pub(crate) struct BackgroundPrinter {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<LineQueue>,
    changed: Condvar,
}

/// The lines that are not printed yet, and what became of the others.
struct LineQueue {
    lines: BoundedQueue<String>,
    /// True while the thread prints a line.
    is_printing: bool,
    dropped: u64,
    /// The lines that the thread is through with, printed or not.
    done: u64,
    is_ended: bool,
}

impl LineQueue {
    /// Returns the number of lines that are not printed yet.
    fn left(&self) -> usize {
        self.lines.len() + usize::from(self.is_printing)
    }
}

/// Prints a line.
type Print = Box<dyn FnMut(&str) -> anyhow::Result<()> + Send>;

impl BackgroundPrinter {
    /// Starts a thread that prints on standard output.
    pub(crate) fn on_stdout() -> anyhow::Result<Self> {
        Self::start(Box::new(|text| line(text)))
    }

    /// Starts a thread that prints warnings on standard error.
    pub(crate) fn on_stderr() -> anyhow::Result<Self> {
        Self::start(Box::new(|text| {
            warn(text);
            Ok(())
        }))
    }

    fn start(print: Print) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(LineQueue {
                lines: BoundedQueue::new(LINES_MAX, BYTES_MAX),
                is_printing: false,
                dropped: 0,
                done: 0,
                is_ended: false,
            }),
            changed: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        spawn("rtorb-print", &ThreadConfig::default(), move || {
            own.print_all(print);
        })?;
        Ok(Self { shared })
    }

    /// Queues a line, or drops it if the queue is full. Returns true for the first one that is dropped.
    pub(crate) fn queue(&self, text: String) -> bool {
        let mut queue = self.shared.queue.lock();
        // A line that is longer than the bound passes alone.
        let bytes = text.len().min(BYTES_MAX);
        if queue.lines.push(text, bytes).is_err() {
            queue.dropped += 1;
            return queue.dropped == 1;
        }
        drop(queue);
        self.shared.changed.notify_all(&self.shared.queue);
        false
    }

    /// Ends the thread when it has printed what is queued, or when the reader has taken no line for `patience`. Returns the number of
    /// lines that were not printed.
    pub(crate) fn end(&self, patience: Duration) -> u64 {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let mut queue = self.shared.queue.lock();
        queue.is_ended = true;
        self.shared.changed.notify_all(&self.shared.queue);
        let (mut done, mut late_ns) = (queue.done, monotonic_ns().saturating_add(patience_ns));
        while queue.left() > 0 && monotonic_ns() < late_ns {
            self.shared.changed.wait_until(&mut queue, late_ns);
            if queue.done != done {
                (done, late_ns) = (queue.done, monotonic_ns().saturating_add(patience_ns));
            }
        }
        queue.dropped + queue.left() as u64
    }
}

impl Shared {
    /// The work of the thread.
    fn print_all(&self, mut print: Print) {
        let mut has_failed = false;
        while let Some(text) = self.next() {
            let printed = print(&text);
            let mut queue = self.queue.lock();
            queue.is_printing = false;
            queue.done += 1;
            queue.dropped += u64::from(printed.is_err());
            drop(queue);
            self.changed.notify_all(&self.queue);
            if let Err(error) = printed
                && !std::mem::replace(&mut has_failed, true)
            {
                warn(format!("cannot print: {error}"));
            }
        }
    }

    /// Waits for the next line, which is being printed from now on; `None` at the end.
    fn next(&self) -> Option<String> {
        let mut queue = self.queue.lock();
        while queue.lines.is_empty() && !queue.is_ended {
            self.changed.wait(&mut queue);
        }
        let line = queue.lines.pop();
        queue.is_printing = line.is_some();
        line
    }
}

/// The most lines that wait.
const LINES_MAX: usize = 10_000;
/// The most bytes of lines that wait.
const BYTES_MAX: usize = 8 << 20;

/// How long a command waits at its end for a reader that takes nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    /// A printer whose reader is the other end of a pipe.
    fn piped() -> (BackgroundPrinter, std::io::PipeReader) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let print = move |text: &str| Ok(writeln!(writer, "{text}")?);
        (BackgroundPrinter::start(Box::new(print)).unwrap(), reader)
    }

    #[test]
    fn nobody_waits_for_a_pipe_that_nobody_reads() {
        let (printer, mut reader) = piped();
        let long = "x".repeat(1 << 10);
        // More than the pipe and the queue hold.
        let first = (0..3 * LINES_MAX).filter(|_| printer.queue(long.clone()));
        assert_eq!(first.count(), 1, "the first one that is dropped");
        let lost = printer.end(Duration::ZERO);
        assert!(lost > LINES_MAX as u64, "{lost}");
        // The thread ends when the pipe does.
        let mut one = [0; 1];
        reader.read_exact(&mut one).unwrap();
        assert_eq!(one, *b"x");
    }

    #[test]
    fn what_is_queued_at_the_end_is_printed() {
        let (printer, mut reader) = piped();
        let numbers: Vec<String> = (0..LINES_MAX / 2).map(|it| it.to_string()).collect();
        for number in &numbers {
            assert!(!printer.queue(number.clone()), "there is room");
        }
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        assert_eq!(printer.end(Duration::from_secs(60)), 0);
        let text = reading.join().unwrap().unwrap();
        assert!(text.lines().eq(&numbers), "in order");
    }

    #[test]
    fn a_line_that_cannot_be_printed_counts_and_others_go_on() {
        let fails = |text: &str| match text {
            "good" => Ok(()),
            _ => anyhow::bail!("no space left"),
        };
        let printer = BackgroundPrinter::start(Box::new(fails)).unwrap();
        for text in ["good", "bad", "bad", "good"] {
            printer.queue(text.to_owned());
        }
        assert_eq!(printer.end(Duration::from_secs(60)), 2);
    }
}
