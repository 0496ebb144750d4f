//! What the threads of a member share.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::sync::Mutex;
use zenoh::{Session, Wait};

use crate::accounts::Accounts;
use crate::config::{FederationConfig, FederationError, FederationNews};
use crate::keys::FederationKeys;
use crate::numbers::LaneNumbers;
use crate::session::{self, Reach};
use crate::statistics::FederationCounts;
use crate::work_queue::WorkQueue;

/// What the threads of a member share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: FederationConfig,
    pub(crate) keys: FederationKeys,
    /// The mark of events that this federation brought.
    pub(crate) mark: i32,
    session: Mutex<Session>,
    /// Its last sessions, as the keys of members have them. Others may hear of an old one for a while.
    own_sessions: Mutex<VecDeque<String>>,
    pub(crate) work: WorkQueue,
    pub(crate) accounts: Mutex<Accounts>,
    pub(crate) counts: FederationCounts,
    /// The numbers of each lane.
    pub(crate) lanes: Vec<Mutex<LaneNumbers>>,
    /// The sessions of the other members.
    pub(crate) members: Mutex<BTreeSet<String>>,
    /// These, and those of members that were there before.
    pub(crate) known_members: Mutex<BTreeSet<String>>,
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
            own_sessions: Mutex::new([session.zid().to_string()].into()),
            session: Mutex::new(session),
            work: WorkQueue::new(config.queue_events, config.queue_bytes),
            accounts: Mutex::default(),
            counts: FederationCounts::default(),
            lanes: lanes.collect(),
            members: Mutex::default(),
            known_members: Mutex::default(),
            complaints: Mutex::default(),
            has_reported_priority: AtomicBool::new(false),
            config,
        })
    }

    /// The session.
    pub(crate) fn session(&self) -> Session {
        self.session.lock().clone()
    }

    /// Opens the session again. What was declared in the old one is to be declared anew.
    ///
    /// # Errors
    /// As [`session::open`]. Then there is none, and what is published is refused.
    pub(crate) fn open_again(&self) -> Result<(), FederationError> {
        // First, because both listen at the same endpoints. Its links are gone afterwards, whatever it says.
        let _ = self.session().close().wait();
        // Members that are there come anew in the new session. It has no fault from before, so those that have ended are not missed.
        self.members.lock().clear();
        self.known_members.lock().clear();
        let session = session::open(&self.config)?;
        let mut own = self.own_sessions.lock();
        own.truncate(OWN_SESSIONS_MAX - 1);
        own.push_front(session.zid().to_string());
        drop(own);
        // The lanes wait for nothing: what they send in the old session is refused.
        for lane in &self.lanes {
            lane.lock().declare_again(&session);
        }
        *self.session.lock() = session;
        Ok(())
    }

    /// True if a session is this member's, or was.
    pub(crate) fn is_own(&self, session: &str) -> bool {
        self.own_sessions.lock().iter().any(|own| own == session)
    }

    /// What its session reaches. To reach nobody is right for a member to which others connect.
    pub(crate) fn reach(&self) -> Reach {
        let shall_connect = !self.config.network.connect.is_empty();
        let mut linked = session::linked_sessions(&self.session()).peekable();
        let has_link = linked.peek().is_some();
        let (members, known) = (self.members.lock(), self.known_members.lock());
        let is_silent = |session| !members.contains(&session) && known.contains(&session);
        match () {
            () if linked.any(is_silent) => Reach::Silent,
            () if !shall_connect => Reach::Joined,
            () if has_link && (!members.is_empty() || known.is_empty()) => Reach::Joined,
            () => Reach::Nobody,
        }
    }

    /// Reports a refused priority, the first time.
    pub(crate) fn report_once(&self, news: FederationNews) {
        if !self.has_reported_priority.swap(true, Ordering::Relaxed) {
            self.work.report(news);
        }
    }
}

/// More than others may still hear of.
const OWN_SESSIONS_MAX: usize = 8;
