//! The assignment of CORBA priorities to ranks, between the given ones.
//!
//! The strategy ranks all behaviours, including those with given priorities. Each of the others gets the place among the given
//! ones with the fewest of them on the wrong side: less urgent by rank but above it, or more urgent but below. Of equal places it
//! takes the most urgent. A behaviour with the rank of a given one shares its priority if that is such a place. This keeps the
//! order of the assigned ones: a place that is better for a less urgent rank is never above one that is better for a more urgent
//! rank.

use super::goals::Owner;
use super::{ModelError, TooFewPriorities};
use crate::mapping::PriorityRange;

/// Returns the priority of each owner: given, assigned by its rank (0 the most urgent), or none if it has no segment under fixed
/// priorities.
pub(super) fn assign(
    owners: &[Owner],
    ranks: &[u32],
    range: PriorityRange,
) -> Result<Vec<Option<i16>>, ModelError> {
    let available = corba_range(range)?;
    let mut priorities: Vec<Option<i16>> = owners.iter().map(|owner| owner.given).collect();
    let given = owners.iter().zip(ranks).filter(|(owner, _)| owner.fixed);
    let mut given: Vec<(i16, u32)> = given
        .filter_map(|(owner, &rank)| Some((owner.given?, rank)))
        .collect();
    given.sort_unstable_by_key(|&(priority, rank)| (core::cmp::Reverse(priority), rank));
    let mut values: Vec<i16> = given.iter().map(|&(priority, _)| priority).collect();
    values.dedup();
    let chosen = |&index: &usize| owners[index].fixed && owners[index].given.is_none();
    let mut chosen: Vec<usize> = (0..owners.len()).filter(chosen).collect();
    chosen.sort_by_key(|&index| ranks[index]);
    let place = |index: usize| place(&given, &values, ranks[index]);
    // Places 0, 2, 4, ... are before, between and after the values; 1, 3, 5, ... are the values themselves.
    for group in chosen.chunk_by(|&a, &b| place(a) == place(b)) {
        let place = place(group[0]);
        if place % 2 == 1 {
            group
                .iter()
                .for_each(|&index| priorities[index] = Some(values[place / 2]));
            continue;
        }
        let levels: Vec<&[usize]> = group.chunk_by(|&a, &b| ranks[a] == ranks[b]).collect();
        let above = (place > 0).then(|| values[place / 2 - 1]);
        let below = values.get(place / 2).copied();
        let gap = FreePriorities {
            above,
            below,
            available,
        };
        for (level, priority) in levels.iter().zip(gap.assign(levels.len())?) {
            level
                .iter()
                .for_each(|&index| priorities[index] = Some(priority));
        }
    }
    Ok(priorities)
}

/// Returns the lowest and the highest priority that may be assigned.
fn corba_range(range: PriorityRange) -> Result<(i16, i16), ModelError> {
    let wrong = ModelError::Range {
        least_urgent: range.least_urgent,
        most_urgent: range.most_urgent,
    };
    let corba = |number: i32| i16::try_from(number).ok().filter(|&number| number >= 0);
    match (corba(range.least_urgent), corba(range.most_urgent)) {
        (Some(least), Some(most)) if least <= most => Ok((least, most)),
        _ => Err(wrong),
    }
}

/// Returns the place with the fewest given priorities on the wrong side.
fn place(given: &[(i16, u32)], values: &[i16], rank: u32) -> usize {
    // The cost changes twice at each value: onto it, and below it. The search begins above all values.
    let mut cost: i64 = 0;
    let (mut best, mut least) = (0, 0);
    let mut past = 0;
    for (index, &value) in values.iter().enumerate() {
        let here = given[past..]
            .iter()
            .take_while(|(priority, _)| *priority == value);
        let (mut onto, mut below, mut count) = (0, 0, 0);
        for &(_, other) in here {
            count += 1;
            onto += if rank < other { 1 } else { -1 };
            below += if rank > other { -1 } else { 1 };
        }
        past += count;
        for (place, change) in [(2 * index + 1, onto), (2 * index + 2, below)] {
            cost += change;
            if cost < least {
                (best, least) = (place, cost);
            }
        }
    }
    best
}

/// The free priorities between two given ones.
struct FreePriorities {
    above: Option<i16>,
    below: Option<i16>,
    available: (i16, i16),
}

impl FreePriorities {
    /// Returns priorities for the levels, the most urgent first, from the top without gaps.
    fn assign(&self, levels: usize) -> Result<Vec<i16>, ModelError> {
        let (least, most) = self.available;
        let highest = self
            .above
            .map_or(most, |above| most.min(above.saturating_sub(1)));
        let lowest = self
            .below
            .map_or(least, |below| least.max(below.saturating_add(1)));
        let range = PriorityRange {
            least_urgent: lowest.into(),
            most_urgent: highest.into(),
        };
        let free = if lowest <= highest { range.count() } else { 0 };
        let needed = u32::try_from(levels).unwrap_or(u32::MAX);
        if needed > free {
            return Err(TooFewPriorities {
                needed,
                free,
                above: self.above,
                below: self.below,
                least_urgent: least,
                most_urgent: most,
            }
            .into());
        }
        Ok((0..levels)
            .zip((lowest..=highest).rev())
            .map(|(_, priority)| priority)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Criticality;

    fn assigned(all: &[(Option<i16>, u32)], range: (i32, i32)) -> Result<Vec<i16>, ModelError> {
        let owner = |&(given, _): &(Option<i16>, u32)| Owner {
            behaviour: 0,
            segments: vec![],
            period_ns: 1,
            deadline_ns: 1,
            criticality: Criticality::Medium,
            given,
            fixed: true,
        };
        let owners: Vec<Owner> = all.iter().map(owner).collect();
        let ranks: Vec<u32> = all.iter().map(|&(_, rank)| rank).collect();
        let range = PriorityRange {
            least_urgent: range.0,
            most_urgent: range.1,
        };
        let found = assign(&owners, &ranks, range)?;
        Ok(found
            .into_iter()
            .map(|each| each.expect("all are fixed"))
            .collect())
    }

    #[test]
    fn without_given_ones_they_go_from_the_top() {
        let found = assigned(&[(None, 1), (None, 0), (None, 1), (None, 2)], (10, 50));
        assert_eq!(found.unwrap(), [49, 50, 49, 48]);
    }

    #[test]
    fn chosen_ones_go_between_the_given_as_they_are_ranked() {
        let found = assigned(
            &[
                (Some(40), 1),
                (None, 0),
                (None, 2),
                (Some(20), 3),
                (None, 4),
                (None, 3),
            ],
            (1, 50),
        );
        assert_eq!(found.unwrap(), [40, 50, 39, 20, 19, 20]);
    }

    #[test]
    fn given_ones_that_contradict_the_ranks_are_kept_and_the_majority_decides() {
        // By rank it belongs below the first three and above the last; the file has one of the three at the bottom.
        let found = assigned(
            &[
                (Some(40), 0),
                (Some(30), 1),
                (Some(5), 2),
                (Some(20), 9),
                (None, 5),
            ],
            (1, 50),
        );
        assert_eq!(found.unwrap()[4], 29);
        // Turned round: above and below both are wrong about one of them, and the more urgent place is taken.
        let found = assigned(&[(Some(10), 0), (Some(20), 2), (None, 1)], (1, 50));
        assert_eq!(found.unwrap()[2], 50);
    }

    #[test]
    fn the_order_of_the_chosen_survives_any_given_ones() {
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut all = vec![];
            for _ in 0..draw(8) + 1 {
                let given = (draw(2) == 0).then(|| i16::try_from(100 * (draw(9) + 1)).unwrap());
                all.push((given, u32::try_from(draw(6)).unwrap()));
            }
            let found = assigned(&all, (0, 2_000)).expect("the gaps are wide");
            for (a, &(given_a, rank_a)) in all.iter().enumerate() {
                for (b, &(given_b, rank_b)) in all.iter().enumerate() {
                    if given_a.is_none() && given_b.is_none() {
                        assert_eq!(rank_a.cmp(&rank_b), found[b].cmp(&found[a]), "{all:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn too_few_priorities_are_an_error_with_advice() {
        let said = assigned(
            &[(Some(40), 0), (None, 1), (None, 2), (Some(38), 3)],
            (1, 99),
        );
        let said = said.unwrap_err().to_string();
        assert!(
            said.contains("2 priorities are needed between the given 40 and 38")
                && said.contains("1 is free"),
            "{said}"
        );
        let said = assigned(&[(None, 1), (None, 2)], (7, 7))
            .unwrap_err()
            .to_string();
        assert!(said.contains("`priorities`"), "{said}");
        assert!(assigned(&[(None, 1)], (9, 7)).is_err());
    }
}
