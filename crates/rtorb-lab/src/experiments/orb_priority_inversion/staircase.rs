//! The times by contestant, servant's work and client.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::statistics::Recorder;
use rtorb_results::{LostRound, Series, labels};

use crate::contestants::rates::Times;
use crate::contestants::{OMNIORB, Orb};

/// One client of the staircase; in order, the least urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stair {
    pub(super) priority: u8,
    pub(super) rate_hz: u64,
}

/// Whose staircase: the place in the line-up, the preset, and the servants' work in microseconds.
pub(super) type Whose<'a> = (usize, &'a str, u64);

/// From which moment a time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    /// Sending.
    Sending,
    /// When it should have been sent.
    Release,
}

/// Which percentile of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    P50,
    P99,
}

impl Of {
    pub(super) const ALL: [Self; 2] = [Self::P50, Self::P99];
}

impl From {
    pub(super) const ALL: [Self; 2] = [Self::Sending, Self::Release];

    /// The value of the label `part`.
    pub(super) fn part(self) -> &'static str {
        match self {
            Self::Sending => "call",
            Self::Release => "from_release",
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    staircases: BTreeMap<(usize, String, u64), BTreeMap<Stair, [Part; 2]>>,
    pub(super) lost: Vec<LostRound>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Part {
    recorder: Recorder,
    p50: ByRound,
    p99: ByRound,
    wrong: u64,
}

impl Measured {
    pub(super) fn add(
        &mut self,
        round: usize,
        (place, preset, work_us): Whose<'_>,
        stair: Stair,
        times: &Times,
    ) {
        let whose = (place, preset.to_owned(), work_us);
        let parts = self
            .staircases
            .entry(whose)
            .or_default()
            .entry(stair)
            .or_default();
        for (part, times_ns) in parts.iter_mut().zip([&times.sent_ns, &times.release_ns]) {
            part.recorder.record_all(times_ns);
            part.recorder.end_round();
            part.wrong += times.wrong;
            let mut recorder = Recorder::new();
            recorder.record_all(times_ns);
            if recorder.count() > 0 {
                let found = recorder.statistics();
                part.p50.set(round, found.p50);
                part.p99.set(round, found.p99);
            }
        }
    }

    /// Remembers something once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Every staircase that was measured.
    pub(super) fn all(&self) -> impl Iterator<Item = Whose<'_>> {
        self.staircases
            .keys()
            .map(|(place, preset, work_us)| (*place, preset.as_str(), *work_us))
    }

    /// The medians over rounds of the clients, the most urgent first.
    pub(super) fn medians_ns(&self, whose: Whose<'_>, from: From) -> Vec<(Stair, f64)> {
        self.parts(whose, from)
            .filter_map(|(stair, part)| Some((stair, part.p50.median()?)))
            .collect()
    }

    /// A percentile of each round of the clients, the most urgent first.
    pub(super) fn rounds_ns(
        &self,
        whose: Whose<'_>,
        (from, of): (From, Of),
    ) -> Vec<(Stair, &ByRound)> {
        let parts = self.parts(whose, from);
        let each = parts.map(|(stair, part)| match of {
            Of::P50 => (stair, &part.p50),
            Of::P99 => (stair, &part.p99),
        });
        each.collect()
    }

    /// The standard deviation as a share of the mean, of each client, the most urgent first.
    pub(super) fn jitters(&self, whose: Whose<'_>) -> Vec<(Stair, f64)> {
        self.parts(whose, From::Sending)
            .map(|(stair, part)| {
                let found = part.recorder.statistics();
                (stair, found.stddev / found.mean.max(1.0))
            })
            .collect()
    }

    pub(super) fn series(&self, real_time: bool) -> Vec<Series> {
        let mut all = Vec::new();
        for whose in self.all() {
            for from in From::ALL {
                all.extend(self.parts(whose, from).map(|(stair, part)| {
                    let (_, preset, work_us) = whose;
                    let orb = if preset == OMNIORB {
                        Orb::OmniOrb
                    } else {
                        Orb::Rtorb
                    };
                    let most_urgent = self.parts(whose, from).next();
                    let is_high = most_urgent.is_some_and(|(first, _)| first == stair);
                    let labels = labels([
                        ("orb", orb.label().into()),
                        ("preset", preset.into()),
                        ("transport", "tcp".into()),
                        ("operation", "octet".into()),
                        ("role", if is_high { "high" } else { "low" }.into()),
                        ("rate_hz", stair.rate_hz.into()),
                        ("priority", u32::from(stair.priority).into()),
                        ("servant_work_us", work_us.into()),
                        ("part", from.part().into()),
                        ("real_time", real_time.into()),
                    ]);
                    Series {
                        rounds_p50: part.p50.values(),
                        rounds_p99: part.p99.values(),
                        wrong: part.wrong,
                        ..Series::from_recorder(labels, &part.recorder)
                    }
                }));
            }
        }
        all
    }

    fn parts(
        &self,
        (place, preset, work_us): Whose<'_>,
        from: From,
    ) -> impl Iterator<Item = (Stair, &Part)> {
        let staircase = self.staircases.get(&(place, preset.to_owned(), work_us));
        let stairs = staircase.into_iter().flat_map(|stairs| stairs.iter().rev());
        stairs.map(move |(stair, parts)| (*stair, &parts[from as usize]))
    }

    /// With the times of each client, one a round.
    #[cfg(test)]
    pub(super) fn with(whose: Whose<'_>, clients: &[(Stair, &[u64])]) -> Self {
        let mut measured = Self::default();
        for (stair, rounds_ns) in clients {
            for (round, round_ns) in rounds_ns.iter().enumerate() {
                let times = Times {
                    sent_ns: vec![*round_ns],
                    release_ns: vec![*round_ns],
                    ..Times::default()
                };
                measured.add(round, whose, *stair, &times);
            }
        }
        measured
    }
}
