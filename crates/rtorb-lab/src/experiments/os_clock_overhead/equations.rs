//! Equations 1 to 6 of P3: from the measured time of a program to what one tick of the clock costs.
//!
//! `e` is the time of the program P without ticks, `e_m` its measured time with a tick every `r`, `o` what a tick costs.
//! All are in nanoseconds.
//!
//! **Eq. (3) and (5).** With n the number of ticks in e, which is I_0 of Eq. (2), Eq. (3) is
//!
//! ```text
//! e_m = e + n o + (n / r) o^2
//! ```
//!
//! and its root that is not negative is
//!
//! ```text
//! o = (sqrt(n^2 r^2 + 4 n r (e_m - e)) - n r) / (2 n)
//! ```
//!
//! That is what is computed here. Eq. (5) as our copy of P3 has it differs in one place: under the root it has r^2 n, not
//! r^2 n^2. That cannot be meant: for a tick that costs nothing, e_m = e, it gives r (sqrt(n) - n) / (2 n), which is negative
//! for every n above 1; the root of Eq. (3) gives 0. The dimensions (time squared under the root) agree with both.
//!
//! It leaves out the ticks that come while those ticks are served that came while ticks were served: e_m / e is
//! 1 + x + x^2 with x = o / r, where without end it would be 1 / (1 - x). Where x is a third, o is found a tenth too large.
//!
//! **Eq. (4).** e_m = e + n o leaves out the ticks that come while ticks are served. P3 uses it where r is not below 0.5 ms.
//!
//! **Where r is longer than e**, no tick falls into e when ticks are counted from its beginning: n = 0, and Eq. (5) divides
//! by 0. P3 shows overheads up to r = 100 ms for a program of 10 ms and does not say how. Here n is a parameter: who measures
//! places the first tick so that one falls into P ([`ticks_in`]).

/// How many ticks fall into a program that takes `program_ns`: ⌊e / r⌋ when the first is one resolution after its beginning,
/// as in Eq. (2).
pub(super) fn ticks_in(program_ns: f64, first_ns: u64, resolution_ns: u64) -> u64 {
    let after_first_ns = program_ns - first_ns as f64;
    if after_first_ns < 0.0 {
        0
    } else {
        (after_first_ns / resolution_ns as f64) as u64 + 1
    }
}

/// What a tick costs, by Eq. (5), of a program that took `measured_ns` with ticks and `program_ns` without; negative when it
/// took less with them. `None` when no tick falls into it.
pub(super) fn overhead_ns(
    measured_ns: f64,
    program_ns: f64,
    ticks: u64,
    resolution_ns: u64,
) -> Option<f64> {
    if ticks == 0 {
        return None;
    }
    let (more_ns, n) = (measured_ns - program_ns, ticks as f64);
    if resolution_ns < FINE_BELOW_NS && more_ns >= 0.0 {
        Some(root_of_eq_3(more_ns, n, resolution_ns as f64))
    } else {
        Some(more_ns / n)
    }
}

/// Written so that nothing cancels: a - b = (a^2 - b^2) / (a + b).
fn root_of_eq_3(more_ns: f64, n: f64, r: f64) -> f64 {
    let nr = n * r;
    2.0 * r * more_ns / ((nr * nr + 4.0 * nr * more_ns).sqrt() + nr)
}

/// "Normally less than 0.5 ms" (P3 section 4.2).
pub(super) const FINE_BELOW_NS: u64 = 500_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Eq. (1) and (2) as they are printed, floors and all: what P takes when every tick costs `overhead_ns`.
    fn measured_ns(program_ns: f64, overhead_ns: f64, resolution_ns: u64) -> f64 {
        let r = resolution_ns as f64;
        let mut sum = program_ns;
        let mut ticks = (program_ns / r).floor();
        for _ in 0..1_000 {
            sum += ticks * overhead_ns;
            ticks = (ticks * overhead_ns / r).floor();
            if ticks < 1.0 {
                break;
            }
        }
        sum
    }

    #[test]
    fn a_tick_is_counted_when_it_comes_before_the_end() {
        assert_eq!(ticks_in(10.5e6, 1_000_000, 1_000_000), 10);
        assert_eq!(ticks_in(10.5e6, 10_000_000, 10_000_000), 1);
        assert_eq!(ticks_in(10.5e6, 100_000_000, 100_000_000), 0);
        assert_eq!(ticks_in(10.5e6, 5_000_000, 100_000_000), 1);
        assert_eq!(ticks_in(0.0, 0, 100), 1);
    }

    #[test]
    fn eq_5_is_the_root_of_eq_3() {
        let (e, r, n, o) = (10e6, 100_000.0, 100.0, 5_000.0);
        let e_m = e + n * o + n / r * o * o;
        let found = overhead_ns(e_m, e, 100, 100_000).unwrap();
        assert!((found - o).abs() < 1e-6, "{found}");
    }

    #[test]
    fn a_tick_of_a_third_of_its_resolution_is_found_a_tenth_too_large() {
        let (e, r) = (10e6, 100_000.0);
        let o = r / 3.0;
        let found = overhead_ns(e / (1.0 - o / r), e, 100, 100_000).unwrap();
        assert!((1.08..1.12).contains(&(found / o)), "{}", found / o);
    }

    #[test]
    fn a_coarse_tick_costs_what_the_program_took_more() {
        assert_eq!(
            overhead_ns(10_070_000.0, 10e6, 10, 1_000_000),
            Some(7_000.0)
        );
        assert_eq!(overhead_ns(10_070_000.0, 10e6, 0, 100_000_000), None);
    }

    #[test]
    fn a_program_that_was_faster_with_ticks_is_noise_and_stays_negative() {
        for resolution_ns in [100_000, 1_000_000] {
            let found = overhead_ns(9_990_000.0, 10e6, 10, resolution_ns);
            assert_eq!(found, Some(-1_000.0));
        }
    }

    #[test]
    fn a_tick_that_costs_nothing_is_found_to() {
        assert_eq!(overhead_ns(10e6, 10e6, 100, 100_000), Some(0.0));
        let as_printed = |n: f64, r: f64| ((r * r * n).sqrt() - r * n) / (2.0 * n);
        assert!(as_printed(100.0, 100_000.0) < 0.0);
    }

    proptest! {
        /// The error is what the floors of Eq. (2) and the terms that Eq. (3) or (4) leaves out can make, and no more.
        #[test]
        fn eq_5_finds_the_overhead_of_eq_1_and_2(
            program_ns in 5e6..50e6,
            share in 0.0..0.5f64,
            resolution_us in 100u64..5_000,
        ) {
            let resolution_ns = resolution_us * 1_000;
            let overhead = share * resolution_ns as f64;
            let n = ticks_in(program_ns, resolution_ns, resolution_ns);
            let e_m = measured_ns(program_ns, overhead, resolution_ns);
            let found = overhead_ns(e_m, program_ns, n, resolution_ns).unwrap();
            let bound = if resolution_ns < FINE_BELOW_NS { overhead * (3.0 / n as f64).max(share * share / (1.0 - share) + 1.0 / n as f64) } else { overhead * share / (1.0 - share) };
            prop_assert!((found - overhead).abs() <= bound + 1e-6, "{found} for {overhead}, at most {bound} apart");
        }

        #[test]
        fn more_time_is_never_less_overhead(
            more_ns in 0.0..5e6, step_ns in 0.0..1e5, n in 1u64..500, resolution_ns in 50_000u64..2_000_000,
        ) {
            let less = overhead_ns(10e6 + more_ns, 10e6, n, resolution_ns).unwrap();
            let more = overhead_ns(10e6 + more_ns + step_ns, 10e6, n, resolution_ns).unwrap();
            prop_assert!(more >= less && less >= 0.0);
        }
    }
}
