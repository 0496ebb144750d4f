//! Numbers that look random and are the same for the same seed: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).

use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct SplitMix64(rand_xoshiro::SplitMix64);

impl SplitMix64 {
    /// The sequence of this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(rand_xoshiro::SplitMix64::seed_from_u64(seed))
    }

    /// The next number, any of 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number, reduced to less than `bound`; 0 where that is 0. Smaller ones are more likely, by one part in
    /// 2^64 / `bound`.
    pub fn draw_below(&mut self, bound: u64) -> u64 {
        self.draw().checked_rem(bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // As the authors' own program (splitmix64.c by Sebastiano Vigna) prints it for the seed 1234567.
        let mut sequence = SplitMix64::seeded(1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(sequence.draw(), expected);
        }
    }

    #[test]
    fn numbers_stay_below_the_bound_and_reach_all_of_it() {
        let mut sequence = SplitMix64::seeded(1);
        let mut seen = [0; 10];
        for _ in 0..1_000 {
            seen[sequence.draw_below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
        assert_eq!(sequence.draw_below(0), 0);
    }
}
