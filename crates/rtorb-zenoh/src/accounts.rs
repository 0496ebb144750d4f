//! What a member knows of the numbers of the others: which events came, came again, or were lost.

use std::collections::BTreeMap;

use rtorb_services::events::numbering::{Findings, NumberRun};

use crate::keys::{EventKey, KEYS_MAX, KeyPattern};
use crate::numbers::NumberReport;

/// The numbers of all runs that were heard of.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    runs: BTreeMap<u64, RunAccount>,
    /// The number of keys of all runs.
    keys: usize,
    /// What the consumers here want, sorted.
    wanted: Vec<KeyPattern>,
    findings: Findings,
    unsubscribed: u64,
}

#[derive(Debug, Default)]
struct RunAccount {
    heard_ns: u64,
    keys: BTreeMap<EventKey, KeyAccount>,
}

#[derive(Debug)]
struct KeyAccount {
    numbers: NumberRun,
    /// False while no consumer here wants its events: what is published then is not lost.
    is_wanted: bool,
}

/// The fate of a received event, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberVerdict {
    /// It is the first with its number.
    New,
    Repeated,
    /// No consumer here wants it any more.
    Unwanted,
    /// Its run has too many types and sources.
    TooManyKeys,
}

/// Counts of events that did not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absences {
    pub(crate) lost: u64,
    pub(crate) unsubscribed: u64,
}

impl Accounts {
    /// Sets what the consumers here want.
    pub(crate) fn want(&mut self, wanted: Vec<KeyPattern>) {
        self.wanted = wanted;
        let wanted = &self.wanted;
        for account in self.runs.values_mut() {
            for (&key, account) in &mut account.keys {
                account.is_wanted &= first_match(wanted, key).is_some();
            }
        }
    }

    /// True if the subscription to `pattern` is the one that takes the event: others may match it too.
    pub(crate) fn is_taken_by(&self, pattern: KeyPattern, key: EventKey) -> bool {
        first_match(&self.wanted, key).is_none_or(|first| first == pattern)
    }

    /// Notes an event.
    pub(crate) fn note(
        &mut self,
        run: u64,
        key: EventKey,
        index: u64,
        now_ns: u64,
    ) -> NumberVerdict {
        let is_wanted = first_match(&self.wanted, key).is_some();
        let Some((numbers, findings)) = self.open(run, key, is_wanted, index, now_ns) else {
            return NumberVerdict::TooManyKeys;
        };
        match (numbers.note(index, findings), is_wanted) {
            (true, true) => NumberVerdict::New,
            (true, false) => NumberVerdict::Unwanted,
            (false, _) => NumberVerdict::Repeated,
        }
    }

    /// Notes a report. Returns false if the run has too many types and sources.
    pub(crate) fn note_report(&mut self, report: &NumberReport, now_ns: u64) -> bool {
        for &(key, next) in &report.next {
            if first_match(&self.wanted, key).is_none() {
                continue;
            }
            let Some((numbers, findings)) = self.open(report.run, key, true, next, now_ns) else {
                return false;
            };
            numbers.lose_below(next, findings);
        }
        true
    }

    /// The events that did not come.
    pub(crate) fn absences(&self) -> Absences {
        Absences {
            lost: self.findings.lost,
            unsubscribed: self.unsubscribed,
        }
    }

    /// Returns the account of a key. If no consumer wanted its events until now, the numbers below `next` count as unsubscribed, and not as lost.
    /// `None` if there are too many keys.
    fn open(
        &mut self,
        run: u64,
        key: EventKey,
        is_wanted: bool,
        next: u64,
        now_ns: u64,
    ) -> Option<(&mut NumberRun, &mut Findings)> {
        let of_run = self.runs.get(&run);
        let is_known = of_run.is_some_and(|account| account.keys.contains_key(&key));
        if !is_known {
            if of_run.is_some_and(|account| account.keys.len() == KEYS_MAX) {
                return None;
            }
            self.make_room(run);
            self.keys += 1;
        }
        let of_run = self.runs.entry(run).or_default();
        of_run.heard_ns = now_ns;
        let account = of_run.keys.entry(key).or_insert_with(|| KeyAccount {
            numbers: NumberRun::default(),
            is_wanted: false,
        });
        let was_wanted = core::mem::replace(&mut account.is_wanted, is_wanted);
        if !was_wanted || !is_wanted {
            let skipped = account.numbers.skip_below(next);
            self.unsubscribed = self.unsubscribed.saturating_add(skipped);
        }
        Some((&mut account.numbers, &mut self.findings))
    }

    /// Forgets the runs that were silent for the longest time until there is room for one more key of `run`.
    fn make_room(&mut self, run: u64) {
        while self.keys >= ACCOUNTS_MAX || self.runs.len() >= RUNS_MAX {
            let others = self.runs.iter().filter(|&(&other, _)| other != run);
            let silent = others.min_by_key(|(_, account)| account.heard_ns);
            let Some(silent) = silent.map(|(&silent, _)| silent) else {
                return;
            };
            let forgotten = self.runs.remove(&silent);
            self.keys -= forgotten.map_or(0, |account| account.keys.len());
        }
    }
}

/// The first pattern of sorted ones that matches.
fn first_match(wanted: &[KeyPattern], key: EventKey) -> Option<KeyPattern> {
    let mut all = key.patterns().into_iter();
    all.find(|pattern| wanted.binary_search(pattern).is_ok())
}

/// Bounds of what is remembered: many more runs than a federation has members, and their types and sources.
const RUNS_MAX: usize = 1024;
const ACCOUNTS_MAX: usize = 65_536;
const _: () = assert!(ACCOUNTS_MAX > KEYS_MAX, "one run always has room");

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: EventKey = EventKey {
        event_type: 20,
        source: 1,
    };

    fn accounts() -> Accounts {
        let mut accounts = Accounts::default();
        accounts.want(vec![KeyPattern::ANY]);
        accounts
    }

    fn report(run: u64, next: u64) -> NumberReport {
        NumberReport {
            run,
            next: vec![(KEY, next)],
        }
    }

    fn absences(accounts: &Accounts) -> (u64, u64) {
        let Absences { lost, unsubscribed } = accounts.absences();
        (lost, unsubscribed)
    }

    #[test]
    fn every_number_of_a_run_came_or_is_counted() {
        let mut accounts = accounts();
        let mut came = 0;
        for index in [3, 4, 7, 7, 5] {
            came += u64::from(accounts.note(1, KEY, index, 0) == NumberVerdict::New);
        }
        assert_eq!(came, 4);
        assert_eq!(
            absences(&accounts),
            (1, 3),
            "6 is missing, 0 to 2 were before"
        );
        assert!(accounts.note_report(&report(1, 12), 0));
        assert_eq!(absences(&accounts), (5, 3));
        assert!(accounts.note_report(&report(1, 12), 0), "the same again");
        let (lost, unsubscribed) = absences(&accounts);
        assert_eq!(came + lost + unsubscribed, 12);
        assert_eq!(accounts.note(1, KEY, 12, 0), NumberVerdict::New);
    }

    #[test]
    fn a_report_opens_an_account_before_the_first_event() {
        let mut accounts = accounts();
        assert!(accounts.note_report(&report(1, 10), 0));
        assert_eq!(accounts.note(1, KEY, 12, 0), NumberVerdict::New);
        assert_eq!(absences(&accounts), (2, 10));
    }

    #[test]
    fn what_nobody_wanted_meanwhile_is_not_lost() {
        let mut accounts = accounts();
        assert_eq!(accounts.note(1, KEY, 0, 0), NumberVerdict::New);
        accounts.want(Vec::new());
        assert_eq!(accounts.note(1, KEY, 1, 0), NumberVerdict::Unwanted);
        assert!(accounts.note_report(&report(1, 50), 0));
        accounts.want(vec![KeyPattern::ANY]);
        assert!(accounts.note_report(&report(1, 60), 0));
        assert_eq!(accounts.note(1, KEY, 61, 0), NumberVerdict::New);
        // 1 came too late, which its verdict says; of the others, 60 is missing.
        assert_eq!(absences(&accounts), (1, 58));
    }

    #[test]
    fn what_came_before_anybody_wanted_it_is_counted_once() {
        let mut accounts = Accounts::default();
        for index in 0..3 {
            assert_eq!(accounts.note(1, KEY, index, 0), NumberVerdict::Unwanted);
        }
        assert_eq!(accounts.note(1, KEY, 1, 0), NumberVerdict::Repeated);
        accounts.want(vec![KeyPattern::ANY]);
        assert_eq!(accounts.note(1, KEY, 5, 0), NumberVerdict::New);
        assert_eq!(absences(&accounts), (0, 2));
    }

    #[test]
    fn one_of_two_subscriptions_takes_an_event() {
        let mut accounts = Accounts::default();
        let of_type = KeyPattern {
            event_type: Some(20),
            source: None,
        };
        let of_source = KeyPattern {
            event_type: None,
            source: Some(1),
        };
        accounts.want(vec![of_source, of_type]);
        assert!(accounts.is_taken_by(of_source, KEY));
        assert!(!accounts.is_taken_by(of_type, KEY));
    }

    #[test]
    fn runs_are_followed_apart_and_the_silent_one_is_forgotten() {
        let mut accounts = accounts();
        for run in 0..RUNS_MAX as u64 {
            assert_eq!(accounts.note(run, KEY, 0, run), NumberVerdict::New);
        }
        assert_eq!(accounts.note(0, KEY, 0, 5_000), NumberVerdict::Repeated);
        assert_eq!(accounts.note(9_999, KEY, 0, 6_000), NumberVerdict::New);
        assert_eq!(accounts.runs.len(), RUNS_MAX);
        assert!(accounts.runs.contains_key(&0), "it was heard of again");
        assert!(!accounts.runs.contains_key(&1));
        assert_eq!(accounts.keys, RUNS_MAX);
    }

    #[test]
    fn the_keys_of_a_run_are_bounded() {
        let mut accounts = accounts();
        let key = |source| EventKey { source, ..KEY };
        for source in 0..KEYS_MAX as i32 {
            assert_eq!(accounts.note(1, key(source), 0, 0), NumberVerdict::New);
        }
        let more = accounts.note(1, key(-1), 0, 0);
        assert_eq!(more, NumberVerdict::TooManyKeys);
    }
}
