//! What the threads of a member share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::sync::Mutex;
use zenoh::Session;

use crate::accounts::Accounts;
use crate::config::{FederationConfig, FederationError, FederationNews};
use crate::keys::FederationKeys;
use crate::numbers::LaneNumbers;
use crate::session;
use crate::statistics::FederationCounts;
use crate::work_queue::WorkQueue;

/// What the threads of a member share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: FederationConfig,
    pub(crate) keys: FederationKeys,
    /// The mark of events that this federation brought.
    pub(crate) mark: i32,
    pub(crate) session: Session,
    /// The session's identity in the keys of members.
    pub(crate) session_name: String,
    pub(crate) work: WorkQueue,
    pub(crate) accounts: Mutex<Accounts>,
    pub(crate) counts: FederationCounts,
    /// The numbers of each lane.
    pub(crate) lanes: Vec<Mutex<LaneNumbers>>,
    /// The sessions of the other members.
    pub(crate) members: Mutex<BTreeSet<String>>,
    /// The keys with wrong samples that were reported.
    pub(crate) complaints: Mutex<BTreeSet<String>>,
    has_reported_priority: AtomicBool,
}

impl Shared {
    /// Opens a session, and has nothing of the channel yet.
    ///
    /// # Errors
    /// As [`session::open`].
    pub(crate) fn new(config: FederationConfig) -> Result<Self, FederationError> {
        let session = session::open(&config)?;
        let keys = FederationKeys {
            prefix: config.prefix.clone(),
            name: config.name.clone(),
        };
        let id = session.zid().to_le_bytes();
        // A random number of 128 bits, of which each lane changes a part.
        let run = |place: usize| {
            let (first, second) = id.split_at(8);
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
            };
            number(first) ^ number(second).rotate_left(32) ^ place as u64
        };
        let lanes = (0..config.lanes.len()).map(|place| Mutex::new(LaneNumbers::new(run(place))));
        Ok(Self {
            mark: keys.mark(),
            keys,
            session_name: session.zid().to_string(),
            session,
            work: WorkQueue::new(config.queue_events, config.queue_bytes),
            accounts: Mutex::default(),
            counts: FederationCounts::default(),
            lanes: lanes.collect(),
            members: Mutex::default(),
            complaints: Mutex::default(),
            has_reported_priority: AtomicBool::new(false),
            config,
        })
    }

    /// Reports a refused priority, the first time.
    pub(crate) fn report_once(&self, news: FederationNews) {
        if !self.has_reported_priority.swap(true, Ordering::Relaxed) {
            self.work.report(news);
        }
    }
}
