//! How much is measured.

use rtorb_results::EMULATED;

/// How much to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// One of everything, in seconds: whether it runs. The numbers mean nothing.
    Glance,
    /// A look, within three minutes for all experiments.
    #[default]
    Quick,
    /// The published sample counts and more, within about ten hours for all experiments.
    Full,
    /// What an emulated machine is given (`rtorb-kernels`): one round a seed. Every sample costs the emulator its time, and none
    /// is disturbed by anything outside.
    Emulated {
        /// How many seeds, 1 and up: each begins its round at another moment.
        seeds: u16,
        /// The published sample counts, over all seeds together, and the published levels; otherwise a look.
        full: bool,
    },
}

impl Effort {
    /// Its name as the results say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Emulated { .. } => EMULATED,
            Self::Glance => "glance",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// True if every level is measured that was published.
    #[must_use]
    pub fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::Emulated { full: true, .. })
    }

    /// How many seeds an emulated machine has, each of which is a round; `None` everywhere else.
    #[must_use]
    pub fn seeds(self) -> Option<usize> {
        match self {
            Self::Emulated { seeds, .. } => Some(usize::from(seeds)),
            Self::Glance | Self::Quick | Self::Full => None,
        }
    }
}
