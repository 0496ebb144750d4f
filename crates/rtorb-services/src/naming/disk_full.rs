//! A naming service whose disk is full: the exception of its clients, and its log.

use super::NamingService;
use super::client::{Context, Existing, Failure, FailureReason, parse_name};
use super::config::NamingConfig;
use super::failure::StoreFailure;
use super::store::{self, Store};
use super::store_log::StoreLog;
use core::sync::atomic::{AtomicBool, Ordering};
use redb::backends::InMemoryBackend;
use redb::{Database, StorageBackend};
use rtorb::{CompletionStatus, ExceptionKind, Orb};
use rtorb_os::sync::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A disk on which space runs out when the test says so.
#[derive(Debug, Default)]
struct SmallDisk {
    memory: InMemoryBackend,
    is_full: Arc<AtomicBool>,
}

impl SmallDisk {
    fn check_space(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for SmallDisk {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_space()?;
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_space()?;
        self.memory.write(offset, data)
    }
}

#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<StoreFailure>>);

impl StoreLog for Recorded {
    fn failed(&self, file: &Path, failure: StoreFailure, detail: &str) {
        assert_eq!((file, detail.is_empty()), (Path::new("names"), false));
        self.0.lock().push(failure);
    }
}

#[test]
fn a_full_disk_reaches_the_log_once_and_every_client_whose_change_is_lost() {
    let disk = SmallDisk::default();
    let is_full = Arc::clone(&disk.is_full);
    let database = Database::builder()
        .create_with_backend(disk)
        .expect("a database");
    store::initialize(&database).expect("a store");
    let config = NamingConfig::default();
    let (store, tree) = Store::of(database, Path::new("names"), &config).expect("a store");
    let log = Arc::new(Recorded::default());
    let store = store.logging_to(Arc::clone(&log) as _);

    let orb = Orb::builder()
        .listen("iiop://127.0.0.1:0")
        .build()
        .expect("an ORB");
    let service = NamingService::start(&orb, config, Some((store, tree))).expect("a service");
    orb.root_poa().expect("a root adapter").manager().activate();
    let running = orb.clone();
    let thread = std::thread::spawn(move || running.run());

    let client = Orb::builder().build().expect("a client");
    let reference = service.reference().as_object().to_string();
    let object = client.string_to_object(&reference).expect("a reference");
    let root = Context::narrow(&object).expect("a context");
    let bind = |name: &str| {
        let name = parse_name(name).expect("a name");
        root.bind(&name, &object, Existing::Keep)
    };
    bind("before").expect("there is room");
    is_full.store(true, Ordering::SeqCst);
    for name in ["first", "second"] {
        let failure = bind(name).expect_err("the disk is full");
        assert_says_disk_full(&failure);
        let before = parse_name("before").expect("a name");
        root.resolve(&before).expect("names are still resolved");
    }
    assert_eq!(*log.0.lock(), [StoreFailure::DiskFull]);

    service.end();
    orb.shutdown();
    thread.join().expect("no panic").expect("an ORB that ran");
}

fn assert_says_disk_full(failure: &Failure) {
    let FailureReason::System(exception) = &failure.reason else {
        panic!("{failure}");
    };
    assert_eq!(exception.kind, ExceptionKind::PersistStore);
    assert_ne!(exception.completed, CompletionStatus::Yes);
    assert_eq!(
        StoreFailure::of_exception(exception),
        Some(StoreFailure::DiskFull)
    );
    let text = failure.to_string();
    for part in [
        "PERSIST_STORE",
        "the disk of its store is full",
        "free space on that disk",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
