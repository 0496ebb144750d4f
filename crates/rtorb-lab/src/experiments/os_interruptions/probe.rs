//! The thread that reads the clock without pause, and those whose sleep ends meanwhile; in a probe, a round at a time.

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::SchedPolicy;
use serde::{Deserialize, Serialize};

use crate::experiment::split_mix::SplitMix64;
use crate::processes::begin_together::Threads;
use crate::processes::gaps::{Gap, Gaps};
use crate::processes::probe::{self, Answer};

/// One round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The priority under SCHED_FIFO of the thread that looks; those that sleep have one less. `None` leaves all what the probe has.
    pub fifo: Option<u8>,
    /// For how long it looks, in nanoseconds; no longer than `ROUND_NS_MAX`.
    pub length_ns: u64,
    /// From one reading of the clock to the next, what is no gap yet, in nanoseconds.
    pub step_ns_max: u64,
    /// How many threads sleep until a moment of the round; no more than `RELEASES_MAX`.
    pub releases: u32,
    /// What those moments are drawn from.
    pub seed: u64,
}

/// What was seen in a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// The gaps, in their order.
    pub(super) gaps: Vec<Gap>,
    /// The moments at which sleeps ended while the thread looked, in their order, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) releases_ns: Vec<u64>,
    /// For how long it looked, in nanoseconds.
    pub(super) looked_ns: u64,
    /// Gaps that had no room.
    pub(super) beyond_room: u64,
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-interruptions";

    fn answer(&self) -> Result<Answer, String> {
        if self.length_ns > ROUND_NS_MAX || self.releases > RELEASES_MAX {
            return Err(format!(
                "at most {ROUND_NS_MAX} ns and {RELEASES_MAX} releases a round: {self:?}"
            ));
        }
        let begin_ns = monotonic_ns() + LEAD_NS;
        let releases_ns = moments(self, begin_ns);
        let policy = |less: u8| {
            let fifo = self.fifo;
            fifo.map(|priority| SchedPolicy::Fifo(priority.saturating_sub(less).max(1)))
        };
        let mut threads = Threads::new();
        for moment_ns in releases_ns.clone() {
            threads.add("sleeps", policy(1), move || {
                sleep_until(moment_ns);
                None
            })?;
        }
        let mut gaps = Gaps::with_room(self.step_ns_max, ROOM);
        let length_ns = self.length_ns;
        threads.add("looks", policy(0), move || {
            sleep_until(begin_ns);
            let begin_ns = gaps.begin();
            gaps.spin_until(begin_ns + length_ns);
            Some((begin_ns, gaps))
        })?;
        let (scheduling, answers) = threads.run("the threads")?;
        let looked = answers.into_iter().flatten().next();
        let (begin_ns, gaps) = looked.ok_or("no thread looked")?;
        // Those whose moment came before it began, on a host that was late, interrupted nobody.
        let meanwhile = begin_ns..begin_ns + length_ns;
        let seen = Seen {
            gaps: gaps.kept().to_vec(),
            releases_ns: releases_ns
                .into_iter()
                .filter(|moment_ns| meanwhile.contains(moment_ns))
                .collect(),
            looked_ns: length_ns,
            beyond_room: gaps.beyond_room(),
        };
        Ok(Answer {
            scheduling,
            ..seen.to_answer()
        })
    }
}

/// One somewhere in each of as many parts of the round, the first in its second part.
fn moments(question: &Question, begin_ns: u64) -> Vec<u64> {
    let part_ns = question.length_ns / (u64::from(question.releases) + 1);
    let mut drawn = SplitMix64::seeded(question.seed);
    let moment = |part: u64| begin_ns + part * part_ns + drawn.draw_below(part_ns.max(1));
    (1..=u64::from(question.releases)).map(moment).collect()
}

impl Seen {
    pub(super) fn to_answer(&self) -> Answer {
        let of = |value: fn(&Gap) -> u64| self.gaps.iter().map(value).collect();
        Answer {
            samples: vec![
                of(|gap| gap.begin_ns),
                of(|gap| gap.length_ns),
                of(|gap| u64::from(gap.switched)),
                self.releases_ns.clone(),
            ],
            numbers: [
                (LOOKED.to_owned(), self.looked_ns as f64),
                (BEYOND_ROOM.to_owned(), self.beyond_room as f64),
            ]
            .into(),
            ..Answer::default()
        }
    }

    /// What an answer says; nothing where it is none to such a question.
    pub(super) fn of(answer: &Answer) -> Option<Self> {
        let [begins_ns, lengths_ns, switched, releases_ns] = &answer.samples[..] else {
            return None;
        };
        let number = |name: &str| answer.numbers.get(name).map(|number| *number as u64);
        let all = begins_ns.iter().zip(lengths_ns).zip(switched);
        let gaps = all.map(|((begin_ns, length_ns), switched)| Gap {
            begin_ns: *begin_ns,
            length_ns: *length_ns,
            switched: *switched != 0,
        });
        Some(Self {
            gaps: gaps.collect(),
            releases_ns: releases_ns.clone(),
            looked_ns: number(LOOKED)?,
            beyond_room: number(BEYOND_ROOM)?,
        })
    }
}

const LOOKED: &str = "looked_ns";
const BEYOND_ROOM: &str = "beyond_room";
/// For the threads to be asleep when the one that looks begins.
const LEAD_NS: u64 = 20_000_000;
/// Far below what the kernel lets real-time threads have of a second, and of what a watchdog would call a hang.
pub(super) const ROUND_NS_MAX: u64 = 200_000_000;
/// Each is a thread.
pub(super) const RELEASES_MAX: u32 = 64;
/// Half a mebibyte: a gap each ten microseconds of the longest round.
const ROOM: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Question as _;

    fn question() -> Question {
        Question {
            fifo: None,
            length_ns: 20_000_000,
            step_ns_max: 1_000,
            releases: 5,
            seed: 7,
        }
    }

    /// Under any scheduling, on a machine that does anything else beside.
    #[test]
    fn a_round_has_its_gaps_in_order_and_the_releases_that_came_meanwhile() {
        let answer = question().answer().unwrap();
        let seen = Seen::of(&answer).unwrap();
        assert_eq!(seen.looked_ns, 20_000_000);
        assert!(seen.releases_ns.len() <= 5);
        assert!(seen.gaps.iter().all(|gap| gap.length_ns > 1_000));
        assert!(
            seen.gaps
                .windows(2)
                .all(|pair| pair[0].end_ns() <= pair[1].begin_ns)
        );
        assert!(!answer.scheduling.is_empty());
    }

    #[test]
    fn what_was_seen_is_read_back() {
        let seen = Seen {
            gaps: vec![
                Gap {
                    begin_ns: 5,
                    length_ns: 2_000,
                    switched: false,
                },
                Gap {
                    begin_ns: 9_000,
                    length_ns: 1,
                    switched: true,
                },
            ],
            releases_ns: vec![77],
            looked_ns: 100,
            beyond_room: 3,
        };
        assert_eq!(Seen::of(&seen.to_answer()), Some(seen));
        assert_eq!(Seen::of(&Answer::default()), None);
    }

    #[test]
    fn every_release_has_a_part_of_the_round_and_none_is_in_the_first() {
        let moments_ns = moments(&question(), 1_000);
        let part_ns = 20_000_000 / 6;
        for (part, moment_ns) in (1..).zip(moments_ns) {
            let from_ns = 1_000 + part * part_ns;
            assert!((from_ns..from_ns + part_ns).contains(&moment_ns));
        }
    }

    #[test]
    fn a_round_that_would_take_too_long_is_refused() {
        let long = Question {
            length_ns: ROUND_NS_MAX + 1,
            ..question()
        };
        let crowded = Question {
            releases: RELEASES_MAX + 1,
            ..question()
        };
        for question in [long, crowded] {
            assert!(question.answer().unwrap_err().contains("at most"));
        }
    }
}
