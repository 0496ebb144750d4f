//! A program that speaks Zenoh without this crate.

use rtorb_os::sync::Mutex;
use std::sync::Arc;
use zenoh::pubsub::Subscriber;
use zenoh::qos::Priority;
use zenoh::sample::Sample;
use zenoh::{Config, Session, Wait};

use crate::setup::PREFIX;

/// A session of its own, connected to a member.
pub(crate) struct Stranger {
    pub(crate) session: Session,
}

impl Stranger {
    pub(crate) fn connect(endpoint: &str) -> Self {
        let mut config = Config::default();
        for (key, value) in [
            ("mode", "\"client\"".to_owned()),
            ("connect/endpoints", format!("[\"{endpoint}\"]")),
            ("scouting/multicast/enabled", "false".to_owned()),
        ] {
            config.insert_json5(key, &value).expect("it is accepted");
        }
        let session = zenoh::open(config).wait().expect("it connects");
        Self { session }
    }

    /// Publishes a sample at `PREFIX/KEY`.
    pub(crate) fn put(&self, key: &str, payload: &[u8], attachment: Option<&[u8]>) {
        let put = self.session.put(format!("{PREFIX}/{key}"), payload);
        let put = match attachment {
            Some(attachment) => put.attachment(attachment),
            None => put,
        };
        put.priority(Priority::Data).wait().expect("it is sent");
    }

    /// Keeps the samples of a key expression below the prefix.
    pub(crate) fn listen(&self, key: &str) -> Overheard {
        let samples: Arc<Mutex<Vec<Sample>>> = Arc::default();
        let kept = Arc::clone(&samples);
        let subscriber = self.session.declare_subscriber(format!("{PREFIX}/{key}"));
        let subscriber = subscriber.callback(move |sample| kept.lock().push(sample));
        Overheard {
            samples,
            _subscriber: subscriber.wait().expect("it subscribes"),
        }
    }
}

/// Samples that came.
pub(crate) struct Overheard {
    samples: Arc<Mutex<Vec<Sample>>>,
    _subscriber: Subscriber<()>,
}

impl Overheard {
    /// The first sample for which `is_it` is true.
    pub(crate) fn find(&self, is_it: impl Fn(&Sample) -> bool) -> Option<Sample> {
        self.samples
            .lock()
            .iter()
            .find(|sample| is_it(sample))
            .cloned()
    }
}

/// The header of an event, as the page docs/how-to/federation.md describes it.
#[derive(Clone, Copy)]
pub(crate) struct WrittenHeader {
    pub(crate) version: u8,
    pub(crate) priority: i16,
    pub(crate) run: u64,
    pub(crate) index: u64,
    pub(crate) sent_ticks: u64,
    pub(crate) deadline_ns: u64,
}

impl WrittenHeader {
    pub(crate) fn of(run: u64, index: u64) -> Self {
        Self {
            version: 1,
            priority: -1,
            run,
            index,
            sent_ticks: 0,
            deadline_ns: 0,
        }
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![self.version, 0];
        bytes.extend(self.priority.to_be_bytes());
        for number in [self.run, self.index, self.sent_ticks, self.deadline_ns] {
            bytes.extend(number.to_be_bytes());
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), 36);
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Self {
            version: bytes[0],
            priority: i16::from_be_bytes([bytes[2], bytes[3]]),
            run: number(4),
            index: number(12),
            sent_ticks: number(20),
            deadline_ns: number(28),
        }
    }
}
