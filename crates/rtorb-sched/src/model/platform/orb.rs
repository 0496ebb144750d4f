//! The costs of the ORB.

use super::Statistic;
use super::cost::{Cost, Curve};
use super::profile::{Profile, Service, whole_ns};

/// The services of the ORB.
#[derive(Clone, Debug, Default)]
pub(super) struct OrbCosts {
    /// A two-way call by payload.
    pub(super) call: Curve,
    /// Sending a oneway without payload.
    oneway: Cost,
}

const MEASURED_BY: &str = "rtorb lab run orb/throughput";

impl OrbCosts {
    pub(super) fn of(profile: &Profile, statistic: Statistic) -> Self {
        let sent = tcp_calls(profile).filter(|service| service.says("operation") == Some("oneway"));
        let what = "the sending of a oneway";
        Self {
            call: call(profile, statistic),
            oneway: Cost::worst(sent, statistic)
                .unwrap_or_else(|| Cost::unknown(what, MEASURED_BY)),
        }
    }

    /// Returns the cost of sending: at least half of a call, because most oneways of the measurement woke no thread.
    pub(super) fn send(&self, payload_bytes: u32) -> Cost {
        let mut call = self.call.at(u64::from(payload_bytes));
        let half_ns = call.ns.div_ceil(2);
        if self.oneway.samples == 0 || half_ns >= self.oneway.ns {
            call.ns = half_ns;
            call.source = format!("half of {}", call.source);
            return call;
        }
        let grown_ns = half_ns.saturating_sub(self.call.at(0).ns.div_ceil(2));
        let mut sent = self.oneway.clone();
        sent.ns = sent.ns.saturating_add(grown_ns);
        sent.assumption = call.assumption;
        sent
    }
}

fn tcp_calls(profile: &Profile) -> impl Iterator<Item = &Service> + Clone {
    let tcp = |service: &&Service| service.is_ours() && service.says("transport") == Some("tcp");
    profile.all("orb", "call").filter(tcp)
}

fn is_default(service: &Service) -> bool {
    service
        .says("preset")
        .is_none_or(|preset| preset == "default")
}

/// Returns the cost of a two-way call by payload, from calls with sequences of octets: with the cost of lanes and priorities, and
/// without the servant's work in the measurement.
fn call(profile: &Profile, statistic: Statistic) -> Curve {
    let of = |operation: &'static str| {
        tcp_calls(profile).filter(move |service| service.says("operation") == Some(operation))
    };
    let plain = |service: &&Service| is_default(service);
    let sequences = of("octetseq").filter(plain);
    let points = of("void").filter(plain).chain(sequences.clone());
    let curve = Curve::through(
        points.filter_map(|service| {
            let bytes = service.number("len")?;
            let worked_ns = servant_work_ns(profile, service);
            Some((
                bytes,
                service.ns(statistic).saturating_sub(worked_ns),
                service,
            ))
        }),
        statistic,
        "bytes of data",
    );
    let more_ns = priorities_add_ns(profile, statistic);
    match curve {
        Some(curve) if sequences.clone().next().is_some() => curve.raised(more_ns),
        _ => without_sequences(profile, statistic).raised(more_ns),
    }
}

/// Returns a substitute: another call, or the transport without an ORB.
fn without_sequences(profile: &Profile, statistic: Statistic) -> Curve {
    let what = "a two-way call by bytes of data";
    let two_way = tcp_calls(profile)
        .filter(|service| is_default(service) && service.says("operation") != Some("oneway"));
    let tcp = |service: &&Service| {
        service.says("transport") == Some("tcp") && service.says("cpu").is_none()
    };
    let bare = profile.all("transport", "round_trip").filter(tcp);
    let nearest = Cost::worst(two_way, statistic).or_else(|| Cost::worst(bare, statistic));
    Curve::flat(match nearest {
        Some(cost) => cost.instead_of(what, MEASURED_BY),
        None => Cost::unknown(what, MEASURED_BY),
    })
}

/// Returns the shortest work of the servant in this call: subtracting more would make calls too short.
fn servant_work_ns(profile: &Profile, call: &Service) -> u64 {
    let same = |service: &&Service| {
        service.is_ours()
            && service.says("operation") == call.says("operation")
            && service.number("len") == call.number("len")
    };
    let works = profile.all("orb", "servant_work").filter(same);
    // Rounded down, so that not too much is subtracted.
    let least = works.map(|service| service.min).min_by(f64::total_cmp);
    least.map_or(0, |least| whole_ns(least.floor()))
}

/// Returns how much longer a `long` takes through lanes at the caller's priority than without lanes.
fn priorities_add_ns(profile: &Profile, statistic: Statistic) -> u64 {
    let of = |preset: &'static str| {
        let long = tcp_calls(profile).filter(move |service| {
            service.says("operation") == Some("long") && service.says("preset") == Some(preset)
        });
        Cost::worst(long, statistic)
    };
    let with = of("tao_propagated").or_else(|| of("tao"));
    match (with, of("default")) {
        (Some(with), Some(without)) => with.ns.saturating_sub(without.ns),
        _ => 0,
    }
}
