//! Numbers in payloads, from which a consumer finds what was lost, repeated or came out of order.

use std::collections::BTreeMap;
use std::ops::Range;

/// The number of an event among those of one run of one supplier; it stands at the beginning of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Tells one run of a supplier from every other.
    pub run: u64,
    /// From 0, one more with each event.
    pub index: u64,
}

impl Number {
    /// Octets of a number: a mark, the run and the index, most significant octet first.
    pub const OCTETS: usize = 24;

    /// Writes it at the beginning of a payload.
    ///
    /// # Panics
    /// The payload has less than [`OCTETS`](Self::OCTETS).
    pub fn write(self, payload: &mut [u8]) {
        payload[..8].copy_from_slice(&MARK);
        payload[8..16].copy_from_slice(&self.run.to_be_bytes());
        payload[16..Self::OCTETS].copy_from_slice(&self.index.to_be_bytes());
    }

    /// The number of a payload that begins with one.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let rest = payload.strip_prefix(&MARK)?;
        let (run, rest) = rest.split_first_chunk()?;
        let (index, _) = rest.split_first_chunk()?;
        Some(Self {
            run: u64::from_be_bytes(*run),
            index: u64::from_be_bytes(*index),
        })
    }
}

/// What the numbers say of the events that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Events with a number.
    pub numbered: u64,
    /// Events without one: nothing is known of their order.
    pub unnumbered: u64,
    /// Numbers between others that have not come.
    pub lost: u64,
    /// Events that had come before.
    pub repeated: u64,
    /// Events that came after a later one of their supplier.
    pub out_of_order: u64,
    /// Events of more runs, or with more gaps before them, than are kept in mind: of these it is not known whether one was
    /// repeated or came late.
    pub untraced: u64,
}

impl Findings {
    /// Whether every number came, once and in order.
    #[must_use]
    pub fn all_is_well(&self) -> bool {
        self.lost == 0 && self.repeated == 0 && self.out_of_order == 0 && self.untraced == 0
    }
}

/// Follows the numbers of all suppliers. It begins with the first number that it sees of each run.
#[derive(Debug, Default)]
pub struct Order {
    runs: BTreeMap<(i32, u64), Run>,
    findings: Findings,
}

#[derive(Debug)]
struct Run {
    next: u64,
    /// What was passed over, in order.
    gaps: Vec<Range<u64>>,
}

impl Order {
    /// Takes note of an event of that source.
    pub fn note(&mut self, source: i32, payload: &[u8]) {
        let Some(number) = Number::read(payload) else {
            self.findings.unnumbered += 1;
            return;
        };
        self.findings.numbered += 1;
        let key = (source, number.run);
        let has_room = self.runs.len() < RUNS_MAX;
        match self.runs.get_mut(&key) {
            Some(run) => run.note(number.index, &mut self.findings),
            None if has_room => {
                let run = Run {
                    next: number.index.saturating_add(1),
                    gaps: Vec::new(),
                };
                self.runs.insert(key, run);
            }
            None => self.findings.untraced += 1,
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn findings(&self) -> Findings {
        self.findings
    }
}

impl Run {
    fn note(&mut self, index: u64, findings: &mut Findings) {
        if index >= self.next {
            if index > self.next {
                findings.lost += index - self.next;
                // The oldest gap goes: what comes so late is rarest.
                if self.gaps.len() == GAPS_MAX {
                    self.gaps.remove(0);
                }
                self.gaps.push(self.next..index);
            }
            self.next = index.saturating_add(1);
            return;
        }
        match self.gaps.iter().position(|gap| gap.contains(&index)) {
            Some(place) => {
                findings.lost -= 1;
                findings.out_of_order += 1;
                self.fill(place, index);
            }
            None if self.gaps.len() == GAPS_MAX && index < self.gaps[0].start => {
                findings.untraced += 1;
            }
            None => findings.repeated += 1,
        }
    }

    fn fill(&mut self, place: usize, index: u64) {
        let gap = self.gaps[place].clone();
        let parts = [gap.start..index, index + 1..gap.end];
        let left = parts.into_iter().filter(|part| !part.is_empty());
        self.gaps.splice(place..=place, left);
    }
}

const MARK: [u8; 8] = *b"rtorb#\0\x01";
/// Suppliers come and go; who watches for days must not grow.
const RUNS_MAX: usize = 4096;
const GAPS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(run: u64, index: u64) -> [u8; Number::OCTETS] {
        let mut payload = [0; Number::OCTETS];
        Number { run, index }.write(&mut payload);
        payload
    }

    fn findings(indices: &[u64]) -> Findings {
        let mut order = Order::default();
        for &index in indices {
            order.note(1, &payload(7, index));
        }
        order.findings()
    }

    #[test]
    fn a_number_is_read_as_it_was_written_and_nothing_else_is_one() {
        let number = Number {
            run: u64::MAX - 3,
            index: 1 << 40,
        };
        let mut octets = [9; 30];
        number.write(&mut octets);
        assert_eq!(Number::read(&octets), Some(number));
        assert_eq!(Number::read(&octets[..Number::OCTETS - 1]), None);
        assert_eq!(
            Number::read(b"some text that is longer than a number"),
            None
        );
        assert_eq!(Number::read(b""), None);
    }

    #[test]
    fn numbers_in_order_are_well_wherever_they_begin() {
        let found = findings(&[40, 41, 42]);
        assert!(found.all_is_well());
        assert_eq!(found.numbered, 3);
    }

    #[test]
    fn what_is_missing_is_lost_and_what_comes_again_is_repeated() {
        let found = findings(&[0, 1, 5, 5, 6, 0]);
        assert_eq!((found.lost, found.repeated, found.out_of_order), (3, 2, 0));
        assert!(!found.all_is_well());
    }

    #[test]
    fn what_comes_late_is_not_lost_and_is_out_of_order_once() {
        let found = findings(&[0, 4, 2, 2, 1, 3, 5]);
        assert_eq!((found.lost, found.repeated, found.out_of_order), (0, 1, 3));
    }

    #[test]
    fn sources_and_runs_are_followed_apart() {
        let mut order = Order::default();
        for (source, run) in [(1, 7), (2, 7), (1, 8)] {
            order.note(source, &payload(run, 0));
            order.note(source, &payload(run, 1));
        }
        order.note(1, b"no number");
        let found = order.findings();
        assert!(found.all_is_well());
        assert_eq!((found.numbered, found.unnumbered), (6, 1));
    }

    #[test]
    fn more_gaps_and_runs_than_are_kept_are_told_and_kept_no_more() {
        let mut order = Order::default();
        for index in 0..GAPS_MAX as u64 + 10 {
            order.note(1, &payload(7, index * 2));
        }
        order.note(1, &payload(7, 1));
        assert_eq!(order.findings().untraced, 1, "its gap is forgotten");
        for run in 0..RUNS_MAX as u64 {
            order.note(2, &payload(run, 0));
        }
        assert_eq!(order.findings().untraced, 2);
        assert_eq!(order.runs.len(), RUNS_MAX);
        assert!(order.runs.values().all(|run| run.gaps.len() <= GAPS_MAX));
    }
}
