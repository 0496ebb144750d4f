//! What was observed of a bound, in words.

use rtorb_results::judgement::{Observed, ObservedStanding, Outlier};
use rtorb_sched::model::rounded;

/// A sentence or two about a behaviour or a chain.
pub(super) fn of(observed: &Observed) -> String {
    let what = match observed.chain.as_str() {
        "" if observed.behaviour == observed.root => observed.behaviour.clone(),
        "" => format!("{} from {}", observed.behaviour, observed.root),
        chain => format!("chain {chain}"),
    };
    let seen = seen(observed);
    let missed = match (observed.misses, observed.skipped) {
        (0, _) => String::new(),
        (misses, 0) => format!(" {misses} of {} jobs missed the deadline.", observed.count),
        (misses, skipped) => format!(
            " {misses} of {} jobs missed the deadline, {skipped} of them since they were never done.",
            observed.count + skipped
        ),
    };
    format!("{what}: {seen}.{missed}")
}

fn seen(observed: &Observed) -> String {
    let Some(worst_ns) = observed.worst_ns else {
        return "no job was done".to_owned();
    };
    let worst = time(worst_ns);
    let Some(bound_ns) = observed.bound_ns else {
        return format!("{worst} at worst, and there is no bound");
    };
    let bound = time(bound_ns);
    match observed.standing {
        ObservedStanding::Within => match observed.quiet_worst_ns {
            Some(quiet_ns) => format!(
                "{worst} at worst ({} where the host was quiet), within the bound of {bound}",
                time(quiet_ns)
            ),
            None => {
                format!("{worst} at worst, within the bound of {bound}; the host was never quiet")
            }
        },
        _ => {
            let count = observed.count;
            let above = observed.above;
            let why = observed.outliers.iter().find(|one| one.excess_ns > 0);
            let why = why.map_or_else(String::new, why_above);
            match observed.unexplained {
                0 => format!(
                    "{worst} at worst, above the bound of {bound} in {above} of {count} jobs, all of which the host explains{why}"
                ),
                unexplained => format!(
                    "{worst} at worst, above the bound of {bound} in {above} of {count} jobs, {unexplained} of which \
                     interruptions do not explain{why}"
                ),
            }
        }
    }
}

/// Of the longest, what took the CPU.
fn why_above(outlier: &Outlier) -> String {
    let excess = time(outlier.excess_ns);
    let longest = outlier.interruptions.first();
    let longest = longest.map_or_else(String::new, |one| {
        let idle = if one.while_idle {
            " while it was idle"
        } else {
            ""
        };
        format!(
            ", the longest of CPU {} for {}{idle}",
            one.host_cpu,
            time(one.length_ns)
        )
    });
    format!(
        ": the longest by {excess}, with interruptions of {} on its way{longest}",
        time(outlier.interrupted_ns)
    )
}

/// Formats a time with a fitting unit.
pub(super) fn time(ns: u64) -> String {
    rounded(ns as f64)
}
