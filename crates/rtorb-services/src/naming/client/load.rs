//! Many names bound over several connections: the server can then put many bindings into one commit of its store.

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

/// How names are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Threads that bind, each with a connection of its own: 1 to [`Load::CONNECTIONS_MAX`].
    pub connections: usize,
    /// What happens to names that are bound already.
    pub existing: Existing,
    /// True to make the contexts that names lead through, where they are missing.
    pub makes_parents: bool,
    /// How often the progress is told.
    pub report_every: Duration,
}

/// How far a load is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Names that are bound now.
    pub bound: u64,
    /// Names that could not be bound.
    pub failed: u64,
}

/// How a load ended.
#[derive(Debug, Default)]
pub struct Loaded {
    /// How far it came.
    pub progress: Progress,
    /// The first of those that failed, at most [`Load::NOT_BOUND_MAX`], in the order of their lines.
    pub not_bound: Vec<NotBound>,
    /// FailureReason it ended before the last line; none if it did not.
    pub stopped: Option<NotBound>,
}

/// A line that was not carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct NotBound {
    /// Which line, from 1; 0 when it is about none.
    pub line: u64,
    /// FailureReason.
    pub reason: String,
}

impl Load {
    /// More do not make a load faster, and are as many threads of a server that has one for each connection.
    pub const CONNECTIONS_MAX: usize = 256;
    /// More failures are counted, not kept.
    pub const NOT_BOUND_MAX: usize = 20;
    /// Octets of a line.
    pub const LINE_MAX: usize = 1 << 20;

    /// Binds in `context` what the lines of `input` say (see [`Line`]); `reference` answers the object that a text means.
    ///
    /// A line that is about a context is carried out before the lines behind it are read; the others in no order. A line
    /// that fails does not stop the others; trouble with the server does.
    ///
    /// # Errors
    /// When the host refuses the threads.
    pub fn run(
        self,
        context: &Context,
        input: impl BufRead + Send + 'static,
        reference: impl Fn(&str) -> Result<ObjectRef, String> + Send + Sync + 'static,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Loaded, Refused> {
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
            // A panic was told where it happened, and counted.
            let _ = thread.join();
        }
        let mut loaded = core::mem::take(&mut work.tally.lock().loaded);
        loaded.not_bound.sort_by_key(|not_bound| not_bound.line);
        Ok(loaded)
    }
}

/// What the threads of a load share.
struct Work {
    how: Load,
    context: Context,
    reference: Box<Meaning>,
    /// Held by the thread that reads a line, and until it is carried out if it is about a context.
    source: Mutex<Source>,
    tally: Mutex<Tally>,
    /// Who watches is told when the last thread ends.
    changed: Condvar,
}

/// The object that a text means, or why there is none.
type Meaning = dyn Fn(&str) -> Result<ObjectRef, String> + Send + Sync;

struct Source {
    input: Box<dyn BufRead + Send>,
    /// The line that was read last.
    line: u64,
}

#[derive(Default)]
struct Tally {
    loaded: Loaded,
    /// Threads that bind.
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

/// Counts a thread until it ends, however it does.
struct Running(Arc<Work>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.tally.lock().running -= 1;
        self.0.changed.notify_all(&self.0.tally);
    }
}

impl Work {
    /// Tells the progress until all threads have ended.
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

    /// Reads lines and carries them out until there are none, or somebody stops.
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

    fn bind(&self, line: &Line) -> Result<(), Trouble> {
        let bound = self.bind_once(line);
        match bound {
            Err(Trouble::Naming(Failure {
                reason: FailureReason::MissingNode(rest),
                ..
            })) if self.how.makes_parents && rest.len() > 1 => {
                self.context.make_parents(&line.name)?;
                self.bind_once(line)
            }
            bound => bound,
        }
    }

    fn bind_once(&self, line: &Line) -> Result<(), Trouble> {
        let (name, existing) = (&line.name, self.how.existing);
        let meant = |text: &str| (self.reference)(text).map_err(Trouble::Reference);
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

    fn count(&self, line: u64, bound: Result<(), Trouble>) {
        match bound {
            Ok(()) => self.tally.lock().loaded.progress.bound += 1,
            Err(Trouble::Naming(failure)) if failure.is_of_server() => {
                self.stop(line, failure.to_string());
            }
            Err(Trouble::Naming(failure)) => self.refuse(line, failure.to_string()),
            Err(Trouble::Reference(reason)) => self.refuse(line, reason),
        }
    }

    fn refuse(&self, line: u64, reason: String) {
        let loaded = &mut self.tally.lock().loaded;
        loaded.progress.failed += 1;
        if loaded.not_bound.len() < Load::NOT_BOUND_MAX {
            loaded.not_bound.push(NotBound { line, reason });
        }
    }

    fn stop(&self, line: u64, reason: String) {
        let stopped = &mut self.tally.lock().loaded.stopped;
        stopped.get_or_insert(NotBound { line, reason });
    }
}

/// FailureReason a line was not carried out.
enum Trouble {
    Naming(Failure),
    Reference(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Naming(failure)
    }
}

impl Source {
    /// The next line; none at the end.
    fn next_line(&mut self) -> Result<Option<String>, String> {
        let mut octets = Vec::new();
        let most = Load::LINE_MAX as u64 + 1;
        let read = self
            .input
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut octets);
        if read.map_err(|error| format!("cannot be read: {error}"))? == 0 {
            return Ok(None);
        }
        self.line += 1;
        if octets.len() > Load::LINE_MAX {
            return Err(format!("it is longer than {} octets", Load::LINE_MAX));
        }
        let text = String::from_utf8(octets);
        text.map(Some).map_err(|_| "it is not UTF-8".to_owned())
    }
}
