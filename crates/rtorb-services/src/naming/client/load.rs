//! Binding many names over several connections, so that the server can put many bindings into one commit.

use super::context::{Context, Existing};
use super::failure::{Failure, FailureReason};
use super::line::{Line, Target};
use rtorb::ObjectRef;
use rtorb_os::Refused;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::io::{BufRead, Read as _};
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Threads that bind, each with its own connection: 1 to [`Load::CONNECTIONS_MAX`].
    pub connections: usize,
    /// What to do with names that are bound already.
    pub existing: Existing,
    /// True to make missing parent contexts.
    pub makes_parents: bool,
    /// The time between two progress reports.
    pub report_every: Duration,
}

/// The progress of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Names that are bound now.
    pub bound: u64,
    /// Names that could not be bound.
    pub failed: u64,
}

/// The result of a load.
#[derive(Debug, Default)]
pub struct LoadReport {
    /// The final progress.
    pub progress: Progress,
    /// The first failed lines, at most [`Load::NOT_BOUND_MAX`], in order.
    pub not_bound: Vec<FailedLine>,
    /// Why it ended before the last line, if it did.
    pub stopped: Option<FailedLine>,
}

/// A line that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedLine {
    /// The line number, from 1; 0 if it concerns no line.
    pub line: u64,
    /// The reason.
    pub reason: String,
}

impl Load {
    /// The greatest number of connections of a load: more do not make it faster, and may cost a server thread each.
    pub const CONNECTIONS_MAX: usize = 256;
    /// Further failures are only counted.
    pub const NOT_BOUND_MAX: usize = 20;
    /// The greatest length of a line in bytes.
    pub const LINE_MAX: usize = 1 << 20;

    /// Binds the lines of `input` in `context` (see [`Line`]). `reference` parses the text of a reference.
    ///
    /// A line about a context is done before the next lines are read; other lines have no order. A line that fails does not stop
    /// the others; a failure of the server does.
    ///
    /// # Errors
    /// If the host refuses the threads.
    pub fn run(
        self,
        context: &Context,
        input: impl BufRead + Send + 'static,
        reference: impl Fn(&str) -> Result<ObjectRef, String> + Send + Sync + 'static,
        report: &mut dyn FnMut(Progress),
    ) -> Result<LoadReport, Refused> {
        let work = Arc::new(Work {
            how: self,
            context: context.clone(),
            reference: Box::new(reference),
            source: Mutex::new(Source {
                input: Box::new(input),
                line: 0,
            }),
            tally: Mutex::new(Tally::default()),
            changed: Condvar::new(),
        });
        let begun = begin(&work);
        if begun.is_ok() {
            work.watch(report);
        }
        for thread in begun? {
            // A panic is reported where it happens.
            let _ = thread.join();
        }
        let mut loaded = core::mem::take(&mut work.tally.lock().loaded);
        loaded.not_bound.sort_by_key(|not_bound| not_bound.line);
        Ok(loaded)
    }
}

/// The shared state of the threads of a load.
struct Work {
    how: Load,
    context: Context,
    reference: Box<ReferenceParser>,
    /// A thread holds it to read a line, and to do it if the line is about a context.
    source: Mutex<Source>,
    tally: Mutex<Tally>,
    /// Signaled when the last thread ends.
    changed: Condvar,
}

/// Parses the text of a reference.
type ReferenceParser = dyn Fn(&str) -> Result<ObjectRef, String> + Send + Sync;

struct Source {
    input: Box<dyn BufRead + Send>,
    /// The number of the last line read.
    line: u64,
}

#[derive(Default)]
struct Tally {
    loaded: LoadReport,
    /// Running threads.
    running: usize,
}

fn begin(work: &Arc<Work>) -> Result<Vec<JoinHandle<Option<()>>>, Refused> {
    let mut threads = Vec::new();
    for _ in 0..work.how.connections.clamp(1, Load::CONNECTIONS_MAX) {
        work.tally.lock().running += 1;
        let own = Running(Arc::clone(work));
        let thread = spawn("naming-load", &ThreadConfig::default(), move || {
            own.0.carry_out();
        });
        threads.push(thread.inspect_err(|refused| work.stop(0, refused.to_string()))?);
    }
    Ok(threads)
}

/// Counts a running thread, also if it panics.
struct Running(Arc<Work>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.tally.lock().running -= 1;
        self.0.changed.notify_all(&self.0.tally);
    }
}

impl Work {
    /// Reports the progress until all threads have ended.
    fn watch(&self, report: &mut dyn FnMut(Progress)) {
        let every_ns = u64::try_from(self.how.report_every.as_nanos()).unwrap_or(u64::MAX);
        let mut next_ns = monotonic_ns().saturating_add(every_ns);
        let mut tally = self.tally.lock();
        while tally.running > 0 {
            if !self.changed.wait_until(&mut tally, next_ns) {
                next_ns = monotonic_ns().saturating_add(every_ns);
                let progress = tally.loaded.progress;
                drop(tally);
                report(progress);
                tally = self.tally.lock();
            }
        }
    }

    /// Reads and does lines until there are no more or the load stops.
    fn carry_out(&self) {
        while self.tally.lock().loaded.stopped.is_none() {
            let mut source = self.source.lock();
            let text = match source.next_line() {
                Ok(Some(text)) => text,
                Ok(None) => return,
                Err(reason) => return self.stop(source.line, reason),
            };
            let number = source.line;
            match Line::parse(&text) {
                Ok(None) => {}
                Ok(Some(line)) => {
                    let alone: Option<MutexGuard<'_, Source>> = match line.target {
                        Target::Object(_) => {
                            drop(source);
                            None
                        }
                        _ => Some(source),
                    };
                    self.count(number, self.bind(&line));
                    drop(alone);
                }
                Err(error) => self.refuse(number, error.to_string()),
            }
        }
    }

    fn bind(&self, line: &Line) -> Result<(), LineFailure> {
        let bound = self.bind_once(line);
        match bound {
            Err(LineFailure::Naming(Failure {
                reason: FailureReason::MissingNode(rest),
                ..
            })) if self.how.makes_parents && rest.len() > 1 => {
                self.context.make_parents(&line.name)?;
                self.bind_once(line)
            }
            bound => bound,
        }
    }

    fn bind_once(&self, line: &Line) -> Result<(), LineFailure> {
        let (name, existing) = (&line.name, self.how.existing);
        let meant = |text: &str| (self.reference)(text).map_err(LineFailure::Reference);
        match &line.target {
            Target::Object(text) => self.context.bind(name, &meant(text)?, existing)?,
            Target::Context(text) => {
                let bound = Context::narrow(&meant(text)?)?;
                self.context.bind_context(name, &bound, existing)?;
            }
            Target::SameAs(other) => {
                let bound = self.context.context(other)?;
                self.context.bind_context(name, &bound, existing)?;
            }
            Target::NewContext => match self.context.bind_new_context(name) {
                Err(failure) if failure.reason == FailureReason::AlreadyBound => {
                    self.context.context(name)?;
                }
                made => {
                    made?;
                }
            },
        }
        Ok(())
    }

    fn count(&self, line: u64, bound: Result<(), LineFailure>) {
        match bound {
            Ok(()) => self.tally.lock().loaded.progress.bound += 1,
            Err(LineFailure::Naming(failure)) if failure.is_of_server() => {
                self.stop(line, failure.to_string());
            }
            Err(LineFailure::Naming(failure)) => self.refuse(line, failure.to_string()),
            Err(LineFailure::Reference(reason)) => self.refuse(line, reason),
        }
    }

    fn refuse(&self, line: u64, reason: String) {
        let loaded = &mut self.tally.lock().loaded;
        loaded.progress.failed += 1;
        if loaded.not_bound.len() < Load::NOT_BOUND_MAX {
            loaded.not_bound.push(FailedLine { line, reason });
        }
    }

    fn stop(&self, line: u64, reason: String) {
        let stopped = &mut self.tally.lock().loaded.stopped;
        stopped.get_or_insert(FailedLine { line, reason });
    }
}

/// Why a line failed.
enum LineFailure {
    Naming(Failure),
    Reference(String),
}

impl From<Failure> for LineFailure {
    fn from(failure: Failure) -> Self {
        Self::Naming(failure)
    }
}

impl Source {
    /// Reads the next line; `None` at the end.
    fn next_line(&mut self) -> Result<Option<String>, String> {
        let mut bytes = Vec::new();
        let most = Load::LINE_MAX as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut bytes);
        if read.map_err(|error| format!("cannot be read: {error}"))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if bytes.len() > Load::LINE_MAX {
            return Err(format!("it is longer than {} bytes", Load::LINE_MAX));
        }
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| "it is not UTF-8".to_owned())
    }
}
