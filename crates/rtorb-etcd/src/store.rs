//! The store of a naming service in etcd.

use crate::location::{Keys, Location, LocationError};
use crate::snapshot;
use crate::watch::{SNAPSHOT, Watch};
use core::error::Error as _;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use etcd_client::{Client, Compare, CompareOp, ConnectOptions, Error, Txn, TxnOp, TxnOpResponse};
use rtorb::CompletionStatus;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn, thread_id};
use rtorb_services::naming::StoreFailure;
use rtorb_services::naming::shared_store::{
    CommitOutcome, Follower, SharedCommit, SharedSnapshot, SharedStore, SharedStoreError,
};
use std::io;
use std::sync::{Arc, Weak};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A store in etcd for one naming service. Each of the services that share the keys has its own.
///
/// Dropping it ends its thread.
#[derive(Debug)]
pub struct EtcdStore {
    url: String,
    keys: Keys,
    /// One for each member of etcd.
    clients: Clients,
    /// The member that answered last.
    member: AtomicUsize,
    runtime: Handle,
    /// Dropped, it ends the thread.
    running: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Option<()>>>,
    thread_id: Arc<AtomicUsize>,
}

struct Clients(Arc<[Client]>);

impl core::fmt::Debug for Clients {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} members", self.0.len())
    }
}

/// Why there is no store.
#[derive(Debug)]
#[non_exhaustive]
pub enum EtcdError {
    /// The URL is wrong.
    Location(LocationError),
    /// The host refuses the thread or its descriptors.
    Thread(io::Error),
    /// The client of etcd refuses a member.
    Client(String),
}

impl core::fmt::Display for EtcdError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Location(error) => error.fmt(f),
            Self::Thread(error) => write!(
                f,
                "the thread for etcd cannot be started: {error}; raise the limits of threads and descriptors"
            ),
            Self::Client(why) => write!(f, "etcd cannot be reached so: {why}; correct the URL"),
        }
    }
}

impl core::error::Error for EtcdError {}

impl EtcdStore {
    /// Starts the thread for a store at `etcd://HOST:PORT,HOST:PORT/PREFIX`. It connects when the store is used.
    ///
    /// # Errors
    /// A wrong URL, or a host that refuses the thread.
    pub fn open(url: &str) -> Result<Self, EtcdError> {
        let location: Location = url.parse().map_err(EtcdError::Location)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(EtcdError::Thread)?;
        let options = ConnectOptions::new()
            .with_connect_timeout(CONNECT)
            .with_keep_alive(KEEP_ALIVE, KEEP_ALIVE_ANSWER)
            .with_require_leader(true);
        let mut clients = Vec::new();
        for member in &location.members {
            let connected = runtime.block_on(Client::connect([member], Some(options.clone())));
            clients.push(connected.map_err(|error| EtcdError::Client(error.to_string()))?);
        }
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        let thread_id_there = Arc::new(AtomicUsize::new(0));
        let thread_id_here = Arc::clone(&thread_id_there);
        let run = move || {
            thread_id_here.store(thread_id() as usize, Ordering::Relaxed);
            // The sender is dropped, and sends nothing.
            let _ = runtime.block_on(ended);
            // A call to a name server of the host may hang.
            runtime.shutdown_background();
        };
        let scheduling = ThreadConfig {
            policy: Some(SchedPolicy::Other),
            ..ThreadConfig::default()
        };
        let thread = spawn("rtorb-etcd", &scheduling, run);
        Ok(Self {
            url: url.to_owned(),
            keys: location.keys,
            clients: Clients(clients.into()),
            member: AtomicUsize::new(0),
            runtime: handle,
            running: Some(running),
            thread: Some(thread.map_err(|refused| EtcdError::Thread(io::Error::other(refused)))?),
            thread_id: thread_id_there,
        })
    }

    /// Asks the members of etcd, one after another, until one can be reached.
    ///
    /// A question that `is_read` may be asked twice: then a member that does not answer leaves the others their share of the time.
    fn ask<T: Send + 'static, W>(
        &self,
        deadline_ns: u64,
        is_read: bool,
        question: impl Fn(Client) -> W,
    ) -> Result<T, SharedStoreError>
    where
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let clients = &self.clients.0;
        let mut attempts = clients.len();
        loop {
            let member = self.member.load(Ordering::Relaxed) % clients.len();
            let now_ns = monotonic_ns();
            let until_ns = if is_read {
                now_ns + deadline_ns.saturating_sub(now_ns) / attempts as u64
            } else {
                deadline_ns
            };
            let error = match self.ask_one(until_ns, question(clients[member].clone())) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if error.failure == StoreFailure::Unavailable {
                self.member.store(member + 1, Ordering::Relaxed);
            }
            attempts -= 1;
            let is_elsewhere = error.failure == StoreFailure::Unavailable
                && (is_read || error.completed == CompletionStatus::No);
            if attempts == 0 || !is_elsewhere {
                return Err(error);
            }
        }
    }

    fn ask_one<T: Send + 'static>(
        &self,
        deadline_ns: u64,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, SharedStoreError> {
        let answer = Arc::new(Answer {
            given: Mutex::new(None),
            there: Condvar::new(),
        });
        let asked = Arc::clone(&answer);
        let task = self.runtime.spawn(async move {
            let given = question.await;
            *asked.given.lock() = Some(given);
            asked.there.notify_all(&asked.given);
        });
        let mut given = answer.given.lock();
        loop {
            if let Some(answer) = given.take() {
                return answer.map_err(|error| failure_of(&error));
            }
            if !answer.there.wait_until(&mut given, deadline_ns) && given.is_none() {
                drop(given);
                task.abort();
                return Err(SharedStoreError {
                    failure: StoreFailure::Unavailable,
                    completed: CompletionStatus::Maybe,
                    why: "etcd does not answer in time".to_owned(),
                });
            }
        }
    }
}

/// The place where the thread puts an answer.
struct Answer<T> {
    given: Mutex<Option<Result<T, Error>>>,
    there: Condvar,
}

impl SharedStore for EtcdStore {
    fn place(&self) -> &str {
        &self.url
    }

    fn load(&self) -> Result<SharedSnapshot, SharedStoreError> {
        let deadline_ns = monotonic_ns() + SNAPSHOT.as_nanos() as u64;
        self.ask(deadline_ns, true, |client| {
            snapshot::read(client, self.keys.clone())
        })
    }

    fn commit(
        &self,
        commit: &SharedCommit,
        deadline_ns: u64,
    ) -> Result<CommitOutcome, SharedStoreError> {
        let transaction = transaction(&self.keys, commit);
        let base = commit.base;
        let writes_nothing = commit.writes.writes.is_empty();
        self.ask(deadline_ns, false, |client| {
            let transaction = transaction.clone();
            async move {
                let made = client.kv_client().txn(transaction).await?;
                if made.succeeded() {
                    let revision = made.header().map_or(0, |header| header.revision());
                    return Ok(CommitOutcome::Made(if writes_nothing {
                        base
                    } else {
                        revision.unsigned_abs()
                    }));
                }
                let responses = made.op_responses();
                let version = responses.first().and_then(|response| match response {
                    TxnOpResponse::Get(read) => read.kvs().first(),
                    _ => None,
                });
                let revision = version.map_or(0, |version| version.mod_revision());
                Ok(CommitOutcome::Behind(revision.unsigned_abs()))
            }
        })
    }

    fn follow(&self, revision: u64, follower: Weak<dyn Follower>) {
        let watch = Watch {
            clients: Arc::clone(&self.clients.0),
            keys: self.keys.clone(),
            follower,
            revision,
            mark: None,
        };
        self.runtime.spawn(watch.run());
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.running = None;
        let is_in_thread = self.thread_id.load(Ordering::Relaxed) == thread_id() as usize;
        if let Some(thread) = self.thread.take().filter(|_| !is_in_thread) {
            // A task that panics does not end the thread.
            let _ = thread.join();
        }
    }
}

/// The transaction of a commit. The version is the last key of all that it writes: a watch tells it last.
fn transaction(keys: &Keys, commit: &SharedCommit) -> Txn {
    let version = keys.version();
    let is_base = Compare::mod_revision(version.as_str(), CompareOp::Equal, commit.base as i64);
    // etcd asks its leader only if there is something to read.
    let read = TxnOp::get(version.as_str(), None);
    let SharedCommit { writes, .. } = commit;
    let mut operations: Vec<_> = writes
        .writes
        .iter()
        .map(|(key, value)| match value {
            Some(value) => TxnOp::put(keys.full(key), value.as_slice(), None),
            None => TxnOp::delete(keys.full(key), None),
        })
        .collect();
    operations.push(if operations.is_empty() {
        read.clone()
    } else {
        TxnOp::put(version, writes.mark.as_slice(), None)
    });
    Txn::new()
        .when([is_base])
        .and_then(operations)
        .or_else([read])
}

/// What an error of the client means for a commit.
fn failure_of(error: &Error) -> SharedStoreError {
    let (failure, completed) = if is_unsent(error) {
        (StoreFailure::Unavailable, CompletionStatus::No)
    } else {
        match error {
            // What is not of etcd itself has a source.
            Error::GRpcStatus(status)
                if status.source().is_none()
                    && let Some(failure) = refusal(status.code() as i32, status.message()) =>
            {
                (failure, CompletionStatus::No)
            }
            _ => (StoreFailure::Unavailable, CompletionStatus::Maybe),
        }
    };
    let mut why = match error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        error => error.to_string(),
    };
    if let Some(cause) = io_error(error) {
        why = format!("{why}: {cause}");
    }
    SharedStoreError {
        failure,
        completed,
        why,
    }
}

/// True if no connection to etcd could be opened.
fn is_unsent(error: &Error) -> bool {
    let Some(error) = io_error(error) else {
        return false;
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => true,
        // Of `CONNECT`; of an open connection, it is the kernel's.
        io::ErrorKind::TimedOut => error.raw_os_error().is_none(),
        _ => false,
    }
}

/// The error of the operating system behind an error.
fn io_error(error: &Error) -> Option<&io::Error> {
    let mut next: Option<&(dyn core::error::Error + 'static)> = match error {
        Error::GRpcStatus(status) => Some(status),
        Error::TransportError(error) => Some(error),
        Error::IoError(error) => return Some(error),
        _ => None,
    };
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// What an answer means that etcd gives before it does anything; `None` for others.
fn refusal(code: i32, message: &str) -> Option<StoreFailure> {
    match code {
        // RESOURCE_EXHAUSTED of a member that is behind, and not of the quota.
        8 if message.contains("too many requests") => Some(StoreFailure::Unavailable),
        // INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED and UNAUTHENTICATED.
        3 | 7 | 8 | 16 => Some(StoreFailure::Refused),
        _ => None,
    }
}

/// The time for a connection to a member.
const CONNECT: Duration = Duration::from_millis(500);

/// How often a connection with a watch asks whether the member is there. etcd ends connections that ask more often than in 5 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The time for the answer to a question whether the member is there.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::{StoreFailure, refusal};

    #[test]
    fn a_full_store_refuses_and_a_busy_one_is_unavailable_for_a_while() {
        let full = refusal(8, "etcdserver: mvcc: database space exceeded");
        assert!(matches!(full, Some(StoreFailure::Refused)));
        let busy = refusal(8, "etcdserver: too many requests");
        assert!(matches!(busy, Some(StoreFailure::Unavailable)));
        // DEADLINE_EXCEEDED: it may be done.
        assert!(refusal(4, "etcdserver: request timed out").is_none());
    }
}
