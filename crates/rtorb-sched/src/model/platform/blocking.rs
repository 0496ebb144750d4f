//! The blocking by the kernel.

use super::Statistic;
use super::cost::Cost;
use super::profile::{Blocking, Profile, UsualBlocking, whole_ns};

const MEASURED_BY: &str = "rtorb lab run os/wakeup --load mix";

/// Returns by how much a wake-up under load was longer than one without: the maximum, or in a virtual machine the 99th
/// percentile, because the maximum contains what the hypervisor took.
pub(super) fn of(profile: &Profile, statistic: Statistic) -> Cost {
    let Some(blocking) = &profile.blocking else {
        return Cost::unknown(
            "the kernel's longest section that cannot be preempted",
            MEASURED_BY,
        );
    };
    match (statistic, &blocking.usual) {
        (Statistic::P99, Some(usual)) => from_usual(usual),
        (Statistic::P99, None) => Cost {
            assumption: Some(format!(
                "the kernel's longest section that cannot be preempted is taken as the largest wake-up under load, which in a virtual machine may \
                 contain the hypervisor: a new profile of `{MEASURED_BY}` separates them"
            )),
            ..from_largest(blocking)
        },
        (Statistic::Max, _) => from_largest(blocking),
    }
}

fn from_largest(blocking: &Blocking) -> Cost {
    let name = "blocking beyond_wakeup";
    cost(
        name,
        blocking.beyond_wakeup,
        blocking.bound,
        &blocking.load,
        blocking.count,
    )
}

fn from_usual(usual: &UsualBlocking) -> Cost {
    let name = "blocking usual beyond_wakeup";
    cost(
        name,
        usual.beyond_wakeup,
        usual.p99,
        &usual.load,
        usual.count,
    )
}

/// If no wake-up without load was measured, the whole wake-up counts, which is more.
fn cost(name: &str, beyond_wakeup: Option<f64>, whole: f64, load: &str, samples: u64) -> Cost {
    Cost {
        ns: whole_ns(beyond_wakeup.unwrap_or(whole)),
        samples,
        source: format!("{name} of the profile, under the load {load}"),
        assumption: beyond_wakeup.is_none().then(|| {
            "the kernel's longest section that cannot be preempted is taken as a whole wake-up under load, because none was measured \
             without load: `rtorb lab run os/wakeup` measures it"
                .to_owned()
        }),
    }
}
