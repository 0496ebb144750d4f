//! Numbers in payloads. They show which events were lost, repeated or reordered.

use std::collections::BTreeMap;
use std::ops::Range;

/// The number of an event in one run of one supplier. It is at the begin of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// A different number for each run of a supplier.
    pub run: u64,
    /// Counts the events of the run from 0.
    pub index: u64,
}

impl Number {
    /// The size of a number in bytes: a mark, the run and the index, the most significant byte first.
    pub const BYTES: usize = 24;

    /// Writes it to the begin of a payload.
    ///
    /// # Panics
    /// If the payload is shorter than [`BYTES`](Self::BYTES).
    pub fn write(self, payload: &mut [u8]) {
        payload[..8].copy_from_slice(&MARK);
        payload[8..16].copy_from_slice(&self.run.to_be_bytes());
        payload[16..Self::BYTES].copy_from_slice(&self.index.to_be_bytes());
    }

    /// Reads the number at the begin of a payload, if there is one.
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

/// What the numbers of received events show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Events with a number.
    pub numbered: u64,
    /// Events without a number. Their order is unknown.
    pub unnumbered: u64,
    /// Numbers that are missing between others.
    pub lost: u64,
    /// Events received again.
    pub repeated: u64,
    /// Events that came after a later event of their supplier.
    pub out_of_order: u64,
    /// Events of runs or gaps beyond those that are remembered. Whether they were repeated or late is unknown.
    pub untraced: u64,
}

impl Findings {
    /// True if every number came once and in order.
    #[must_use]
    pub fn all_is_well(&self) -> bool {
        self.lost == 0 && self.repeated == 0 && self.out_of_order == 0 && self.untraced == 0
    }

    /// A supplier may write any numbers.
    fn lose(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
    }
}

/// Checks the numbers of all suppliers. It does not miss what a run had before the lowest number that it sees.
#[derive(Debug, Default)]
pub struct Order {
    runs: BTreeMap<(i32, u64), NumberRun>,
    findings: Findings,
}

/// The numbers of one run that came, and those that are missing.
///
/// [`Order`] follows all runs of all suppliers by it. A program that has numbers outside of payloads uses it alone.
/// The default is a run that begins at 0, of which no number came yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberRun {
    /// The lowest number so far.
    lowest: u64,
    next: u64,
    /// The missing ranges, in order: `GAPS_MAX` at most.
    gaps: Vec<Range<u64>>,
    /// The end of the last forgotten gap. A lower number outside of all gaps is repeated or late.
    traced_from: u64,
}

impl Order {
    /// Notes an event of a source.
    pub fn note(&mut self, source: i32, payload: &[u8]) {
        let Some(number) = Number::read(payload) else {
            self.findings.unnumbered += 1;
            return;
        };
        self.findings.numbered += 1;
        let key = (source, number.run);
        let has_room = self.runs.len() < RUNS_MAX;
        match self.runs.get_mut(&key) {
            Some(run) => {
                run.note(number.index, &mut self.findings);
            }
            None if has_room => {
                let run = NumberRun {
                    lowest: number.index,
                    next: number.index.saturating_add(1),
                    gaps: Vec::new(),
                    traced_from: 0,
                };
                self.runs.insert(key, run);
            }
            None => self.findings.untraced += 1,
        }
    }

    /// The findings so far.
    #[must_use]
    pub fn findings(&self) -> Findings {
        self.findings
    }
}

impl NumberRun {
    /// Notes a number. Returns true if it came for the first time, as far as the gaps that are remembered show.
    pub fn note(&mut self, index: u64, findings: &mut Findings) -> bool {
        if index >= self.next {
            self.lose_below(index, findings);
            self.next = index.saturating_add(1);
            return true;
        }
        if index < self.lowest {
            findings.out_of_order += 1;
            self.lower(index, findings);
            return true;
        }
        match self.gaps.iter().position(|gap| gap.contains(&index)) {
            Some(place) => {
                findings.lost -= 1;
                findings.out_of_order += 1;
                self.fill(place, index);
                return true;
            }
            None if index < self.traced_from => findings.untraced += 1,
            None => findings.repeated += 1,
        }
        false
    }

    /// Notes that the run has had all numbers below `next`: those that did not come are lost.
    pub fn lose_below(&mut self, next: u64, findings: &mut Findings) {
        if next > self.next {
            findings.lose(next - self.next);
            self.gaps.push(self.next..next);
            self.forget_surplus_gap();
            self.next = next;
        }
    }

    /// Leaves out the numbers below `next` that did not come yet, and returns how many these are: they are not lost.
    pub fn skip_below(&mut self, next: u64) -> u64 {
        let skipped = next.saturating_sub(self.next);
        self.next += skipped;
        skipped
    }

    /// Notes a number below all others: what is between them is missing now.
    fn lower(&mut self, index: u64, findings: &mut Findings) {
        let gap = index + 1..self.lowest;
        self.lowest = index;
        findings.lose(gap.end - gap.start);
        if !gap.is_empty() {
            self.gaps.insert(0, gap);
            self.forget_surplus_gap();
        }
    }

    fn fill(&mut self, place: usize, index: u64) {
        let gap = self.gaps[place].clone();
        let parts = [gap.start..index, index + 1..gap.end];
        let left = parts.into_iter().filter(|part| !part.is_empty());
        self.gaps.splice(place..=place, left);
        self.forget_surplus_gap();
    }

    /// Forgets the lowest gap if there are too many: its events are least likely to come.
    fn forget_surplus_gap(&mut self) {
        if self.gaps.len() > GAPS_MAX {
            let forgotten = self.gaps.remove(0);
            self.traced_from = self.traced_from.max(forgotten.end);
        }
    }
}

const MARK: [u8; 8] = *b"rtorb#\0\x01";
/// A bound for programs that watch many suppliers for days.
const RUNS_MAX: usize = 4096;
const GAPS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(run: u64, index: u64) -> [u8; Number::BYTES] {
        let mut payload = [0; Number::BYTES];
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
        let mut bytes = [9; 30];
        number.write(&mut bytes);
        assert_eq!(Number::read(&bytes), Some(number));
        assert_eq!(Number::read(&bytes[..Number::BYTES - 1]), None);
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
    fn what_is_below_the_first_number_is_late_and_not_repeated() {
        let found = findings(&[10, 9, 11]);
        assert_eq!((found.lost, found.repeated, found.out_of_order), (0, 0, 1));
        let found = findings(&[10, 7, 11]);
        assert_eq!((found.lost, found.repeated, found.out_of_order), (2, 0, 1));
        let found = findings(&[10, 7, 8, 9, 8, 7, 10, 11]);
        assert_eq!((found.lost, found.repeated, found.out_of_order), (0, 3, 3));
        let mut order = Order::default();
        for index in 1..GAPS_MAX as u64 + 2 {
            order.note(1, &payload(7, index * 10));
        }
        order.note(1, &payload(7, 3));
        let found = order.findings();
        assert_eq!(
            (found.out_of_order, found.repeated, found.untraced),
            (1, 0, 0)
        );
        assert_eq!(found.lost, 9 * GAPS_MAX as u64 + 6);
        order.note(1, &payload(7, 4));
        assert_eq!(order.findings().untraced, 1, "its gap has no room");
    }

    #[test]
    fn numbers_however_far_apart_are_counted() {
        let mut order = Order::default();
        for run in [7, 8] {
            order.note(1, &payload(run, u64::MAX));
            order.note(1, &payload(run, 0));
        }
        assert_eq!(order.findings().lost, u64::MAX);
    }

    #[test]
    fn numbers_that_did_not_come_are_lost_unless_they_are_left_out() {
        let mut found = Findings::default();
        let mut run = NumberRun::default();
        assert_eq!(run.skip_below(10), 10);
        assert!(run.note(10, &mut found));
        run.lose_below(15, &mut found);
        assert_eq!(found.lost, 4);
        assert!(run.note(12, &mut found), "late, and no longer lost");
        assert_eq!((found.lost, found.out_of_order), (3, 1));
        assert_eq!(run.skip_below(100), 85);
        assert_eq!(run.skip_below(50), 0);
        assert!(run.note(100, &mut found));
        assert!(!run.note(100, &mut found));
        assert!(!run.note(99, &mut found), "it was left out");
        assert!(!run.note(3, &mut found), "before the beginning");
        assert_eq!((found.lost, found.repeated), (3, 3));
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
    fn a_number_that_splits_a_gap_makes_no_more_gaps_than_are_kept() {
        let mut order = Order::default();
        for index in 0..=GAPS_MAX as u64 {
            order.note(1, &payload(7, index * 10));
        }
        for index in 0..GAPS_MAX as u64 {
            order.note(1, &payload(7, index * 10 + 5));
        }
        let gaps = |order: &Order| order.runs[&(1, 7)].gaps.len();
        assert_eq!(gaps(&order), GAPS_MAX);
        let last = (GAPS_MAX as u64 - 1) * 10;
        for index in last + 6..last + 10 {
            order.note(1, &payload(7, index));
        }
        assert_eq!(gaps(&order), GAPS_MAX - 1);
        order.note(1, &payload(7, 1));
        let found = order.findings();
        assert_eq!(
            (found.repeated, found.untraced),
            (0, 1),
            "its gap is forgotten"
        );
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
