//! How long the kernel keeps the CPU from the most urgent task.

use super::Statistic;
use super::cost::Cost;
use super::profile::{Blocking, Profile, UsualBlocking, whole_ns};

const MEASURED_BY: &str = "rtorb lab run os/wakeup --load mix";

/// What a wake-up under load took beyond one without: the largest, or in a virtual machine the 99th percentile, for the largest holds
/// what the hypervisor took.
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
                "the kernel's longest section that cannot be preempted is the largest wake-up under load, which in a virtual machine may \
                 be the hypervisor's: a profile that `{MEASURED_BY}` measures anew tells them apart"
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

/// Without a wake-up without load to compare with, the whole of it: that is more.
fn cost(name: &str, beyond_wakeup: Option<f64>, whole: f64, load: &str, samples: u64) -> Cost {
    Cost {
        ns: whole_ns(beyond_wakeup.unwrap_or(whole)),
        samples,
        source: format!("{name} of the profile, under the load {load}"),
        assumption: beyond_wakeup.is_none().then(|| {
            "the kernel's longest section that cannot be preempted is taken to be a whole wake-up under load, for none was measured \
             without: `rtorb lab run os/wakeup` measures it"
                .to_owned()
        }),
    }
}
