//! The numbers of published events, and the reports in which a member says how many there are.

use std::collections::BTreeMap;

use zenoh::key_expr::KeyExpr;
use zenoh::{Session, Wait};

use crate::keys::{EventKey, KEYS_MAX};
use crate::message::{MalformedSample, VERSION};

/// The numbers of one lane, which a lane keeps from one connection to its channel to the next.
#[derive(Debug)]
pub(crate) struct LaneNumbers {
    /// Another number for each start of a lane of a member.
    run: u64,
    keys: BTreeMap<EventKey, PublishedKey>,
}

/// What was published with one type and source.
#[derive(Debug)]
pub(crate) struct PublishedKey {
    /// Where it is published, as the session has declared it.
    pub(crate) key_expr: KeyExpr<'static>,
    /// The next number.
    next: u64,
}

impl LaneNumbers {
    pub(crate) fn new(run: u64) -> Self {
        Self {
            run,
            keys: BTreeMap::new(),
        }
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// The key of a type and source; a new one is declared by `declare`. `None` if there are too many, or it cannot be declared.
    pub(crate) fn key(
        &mut self,
        key: EventKey,
        declare: impl FnOnce() -> Option<KeyExpr<'static>>,
    ) -> Option<&mut PublishedKey> {
        if !self.keys.contains_key(&key) {
            if self.keys.len() == KEYS_MAX {
                return None;
            }
            let key_expr = declare()?;
            self.keys.insert(key, PublishedKey { key_expr, next: 0 });
        }
        self.keys.get_mut(&key)
    }

    /// Declares all keys in a new session. One that it refuses goes in full with each event.
    pub(crate) fn declare_again(&mut self, session: &Session) {
        for published in self.keys.values_mut() {
            if let Ok(declared) = session.declare_keyexpr(published.key_expr.clone()).wait() {
                published.key_expr = declared;
            }
        }
    }

    /// The numbers so far, as a report has them.
    pub(crate) fn report(&self) -> NumberReport {
        let next = |(&key, published): (&EventKey, &PublishedKey)| (key, published.next);
        NumberReport {
            run: self.run,
            next: self.keys.iter().map(next).collect(),
        }
    }
}

impl PublishedKey {
    /// Takes the next number.
    pub(crate) fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Gives back the number that was taken last, because its event was not published.
    pub(crate) fn give_number_back(&mut self) {
        self.next -= 1;
    }
}

/// A report: the next number of each type and source of a lane. All numbers below it were published.
///
/// Its bytes are the version, 0, the count of entries in 4 bytes, the run in 8, and for each entry the type and the source in 4 bytes
/// each and the next number in 8, the most significant byte first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberReport {
    pub(crate) run: u64,
    pub(crate) next: Vec<(EventKey, u64)>,
}

impl NumberReport {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, 0];
        let count = u32::try_from(self.next.len()).expect("KEYS_MAX bounds them");
        bytes.extend(count.to_be_bytes());
        bytes.extend(self.run.to_be_bytes());
        for (key, next) in &self.next {
            bytes.extend(key.event_type.to_be_bytes());
            bytes.extend(key.source.to_be_bytes());
            bytes.extend(next.to_be_bytes());
        }
        bytes
    }

    /// Reads a report.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, MalformedSample> {
        let wrong = MalformedSample::Report;
        match bytes.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(MalformedSample::OtherVersion(other)),
            None => return Err(wrong),
        }
        let (_, rest) = bytes.split_first_chunk::<2>().ok_or(wrong)?;
        let (count, rest) = rest.split_first_chunk().ok_or(wrong)?;
        let (run, entries) = rest.split_first_chunk().ok_or(wrong)?;
        let (entries, left) = entries.as_chunks::<ENTRY_BYTES>();
        let is_whole = left.is_empty() && entries.len() == u32::from_be_bytes(*count) as usize;
        if !is_whole || entries.len() > KEYS_MAX {
            return Err(wrong);
        }
        let entry = |entry: &[u8; ENTRY_BYTES]| {
            let number = |at: usize| {
                let (number, _) = entry[at..]
                    .split_first_chunk()
                    .expect("the places are constant");
                i32::from_be_bytes(*number)
            };
            let (_, next) = entry.split_last_chunk().expect("an entry is longer");
            let key = EventKey {
                event_type: number(0),
                source: number(4),
            };
            (key, u64::from_be_bytes(*next))
        };
        Ok(Self {
            run: u64::from_be_bytes(*run),
            next: entries.iter().map(entry).collect(),
        })
    }
}

const ENTRY_BYTES: usize = 16;

/// The greatest size of a report.
pub(crate) const REPORT_BYTES_MAX: usize = 14 + KEYS_MAX * ENTRY_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: i32) -> EventKey {
        EventKey {
            event_type: 20,
            source,
        }
    }

    fn key_expr() -> Option<KeyExpr<'static>> {
        KeyExpr::try_from("a/b").ok()
    }

    #[test]
    fn each_type_and_source_has_numbers_of_its_own() {
        let mut numbers = LaneNumbers::new(7);
        for (source, expected) in [(1, 0), (2, 0), (1, 1)] {
            let published = numbers.key(key(source), key_expr).expect("there is room");
            assert_eq!(published.take_number(), expected);
        }
        let report = numbers.report();
        assert_eq!(report.next, [(key(1), 2), (key(2), 1)]);
        assert_eq!(NumberReport::read(&report.to_bytes()), Ok(report));
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let mut numbers = LaneNumbers::new(7);
        for source in 0..KEYS_MAX as i32 {
            assert!(numbers.key(key(source), key_expr).is_some());
        }
        assert!(numbers.key(key(-1), key_expr).is_none());
        assert!(numbers.key(key(0), || None).is_some(), "a known one");
        let bytes = numbers.report().to_bytes();
        assert_eq!(bytes.len(), REPORT_BYTES_MAX);
        assert!(NumberReport::read(&bytes).is_ok());
    }

    #[test]
    fn bytes_that_are_no_report_are_refused() {
        let report = NumberReport {
            run: 1,
            next: vec![(key(1), 9)],
        };
        let bytes = report.to_bytes();
        for length in 0..bytes.len() {
            assert!(NumberReport::read(&bytes[..length]).is_err(), "{length}");
        }
        let mut more = bytes.clone();
        more[5] = 2;
        assert_eq!(NumberReport::read(&more), Err(MalformedSample::Report));
        more[0] = 3;
        let other = Err(MalformedSample::OtherVersion(3));
        assert_eq!(NumberReport::read(&more), other);
    }
}
