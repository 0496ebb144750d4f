//! What goes wrong in a run.

use crate::random::Random;

/// Every fault is a field; the seed draws them. With all at 0, everything arrives at once and whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Bytes travel at most so long.
    pub(crate) delay_ns_max: u64,
    /// A wake-up by the clock comes at most so late.
    pub(crate) late_ns_max: u64,
    /// One in so many calls that send takes only a part, and what is sent arrives in two parts.
    pub(crate) split_one_in: u64,
    /// One in so many connections is reset, at some byte.
    pub(crate) reset_one_in: u64,
    /// One in so many connections loses everything in one direction from some byte on, for ever.
    pub(crate) silence_one_in: u64,
    /// One in so many attempts to connect is refused.
    pub(crate) refusal_one_in: u64,
    /// Bytes on their way on a connection, in one direction.
    pub(crate) pipe_bytes: usize,
    /// Making what was written to the disk stable takes at most so long.
    pub(crate) sync_ns_max: u64,
    /// One in so many calls for the disk fails.
    pub(crate) disk_error_one_in: u64,
    /// The space of the disk.
    pub(crate) disk_bytes: u64,
    /// Descriptors that all processes may have.
    pub(crate) descriptors_max: usize,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        delay_ns_max: 0,
        late_ns_max: 0,
        split_one_in: 0,
        reset_one_in: 0,
        silence_one_in: 0,
        refusal_one_in: 0,
        pipe_bytes: 200_000,
        sync_ns_max: 0,
        disk_error_one_in: 0,
        disk_bytes: u64::MAX,
        descriptors_max: 1_000,
    };

    /// True if connections break.
    pub(crate) fn breaks(&self) -> bool {
        self.reset_one_in + self.silence_one_in + self.refusal_one_in > 0
    }

    /// True if the disk refuses calls.
    pub(crate) fn refuses(&self) -> bool {
        self.disk_error_one_in > 0 || self.disk_bytes < u64::MAX
    }

    /// True if nothing delays bytes.
    pub(crate) fn is_none(&self) -> bool {
        self.delay_ns_max == 0 && self.late_ns_max == 0 && self.reset_one_in == 0
    }

    /// Any of them; `breaks` says whether connections may break.
    pub(crate) fn draw(random: &mut Random, breaks: bool) -> Self {
        let mut rare = |is_possible: bool, choices: &[u64]| {
            let drawn = random.choose(choices);
            if is_possible { drawn } else { 0 }
        };
        Self {
            delay_ns_max: rare(true, &[0, 10_000, 1_000_000]),
            late_ns_max: rare(true, &[0, 0, 50_000]),
            split_one_in: rare(true, &[0, 0, 2, 10]),
            reset_one_in: rare(breaks, &[0, 0, 3, 10]),
            silence_one_in: rare(breaks, &[0, 0, 0, 5]),
            refusal_one_in: rare(breaks, &[0, 0, 0, 5]),
            pipe_bytes: rare(true, &[1_000, 3_000, 100_000, 200_000]) as usize,
            ..Self::NONE
        }
    }

    /// None in one of four runs, and those that may break connections in another one.
    pub(crate) fn draw_some(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::NONE,
            1 => Self::draw(random, true),
            _ => Self::draw(random, false),
        }
    }
}
