//! `orb/rt-policies`: what policies of RT-CORBA do for an urgent call beside other calls to the same server.
//!
//! P0 names the evaluation of the Real-time CORBA capabilities as future work: thread borrowing, request buffering,
//! priority-banded connections, and priorities of nested calls.

use std::time::Duration;

use crate::contestants::rt_policies::{
    self, BUFFERED_MAX, BURST, BURST_WAIT_US, BUSY_US, DECLARED, LOW, LOW_CLIENTS,
    LOW_COMPUTATION_US, RtPolicy, Run, Setting, System, URGENT_OFFSETS_US,
};
use crate::experiments::prelude::*;
use crate::processes::awake::{AWAKE_AT_MOST, Awake};

mod says;

/// The experiment.
pub const STUDY: Study<Systems> = Study {
    name: "orb/rt-policies",
    title: "What thread borrowing, request buffering, priority bands and nested priority do for an urgent call beside others",
    reproduces: "P0 section 4 (future work: the capabilities of Real-time CORBA)",
    amounts: Amounts {
        glance: 3,
        emulated: 20,
        quick: [6, 8],
        // As many as each client of P0 makes, over the rounds.
        full: [10, 400],
        samples: "urgent_calls_per_round",
    },
    factors: &[
        Factor::texts(POLICY, <RtPolicy as VariantNames>::VARIANTS),
        Factor::texts(SETTING, &[OFF, ON]),
        Factor::texts(OTHER_CALLS, &[NONE, IN_PROGRESS]),
    ],
    fixed: "orb=rtorb, transport=tcp",
    parameters: &[
        ("urgent_priority", Number(rt_policies::URGENT as i64)),
        ("low_priority", Number(LOW as i64)),
        ("declared_priority", Number(DECLARED as i64)),
        ("urgent_offset_us_min", Number(URGENT_OFFSETS_US[0] as i64)),
        ("urgent_offset_us_max", Number(URGENT_OFFSETS_US[1] as i64)),
        ("busy_us", Number(BUSY_US as i64)),
        ("low_clients", Number(LOW_CLIENTS as i64)),
        ("low_computation_us", Number(LOW_COMPUTATION_US as i64)),
        ("burst_requests", Number(BURST as i64)),
        ("burst_wait_us", Number(BURST_WAIT_US as i64)),
        ("buffered_requests_max", Number(BUFFERED_MAX as i64)),
    ],
    columns: &[SETTING],
    run_ms: |cell, effort| {
        let period_ns = setting(cell).policy.others().period_ns;
        STUDY.amounts.of(effort).1 * period_ns as usize / 1_000_000
    },
    obstacle: |context| context.launcher.placement.fifo.is_none().then_some(NO_FIFO),
    plots,
    says: says::SAYS,
    ..Study::with(Systems::start)
};

/// A system for each policy, in force and not.
#[derive(Debug)]
pub struct Systems {
    systems: Vec<(Setting, System)>,
    // The clients sleep between calls, and servants wait.
    _awake: Awake,
}

impl Systems {
    fn start(context: &Context, cells: &[Cell<'_>]) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let mut systems: Vec<(Setting, System)> = Vec::new();
        for cell in cells {
            let setting = setting(cell);
            if systems.iter().all(|(known, _)| *known != setting) {
                systems.push((setting, System::start(launcher, setting)?));
            }
        }
        Ok(Self {
            systems,
            _awake: Awake::keep(launcher.placement.cpu, AWAKE_AT_MOST),
        })
    }
}

impl Subject for Systems {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let setting = setting(cell);
        let found = self.systems.iter_mut().find(|(known, _)| *known == setting);
        let (_, system) = found.expect("each setting has been started");
        let has_others = cell.is(OTHER_CALLS, IN_PROGRESS);
        let run = Run {
            calls: turn.samples,
            has_others,
        };
        let within = Duration::from_millis(turn.run_ms as u64);
        let calls = system.run(&run, within)?;
        let [served, refused] = [&calls.others.served_ns, &calls.others.refused_ns].map(Vec::len);
        // Each client of the burst makes a request.
        let bursts = ((served + refused) as f64 / BURST as f64).max(1.0);
        let is_burst = has_others && setting.policy == RtPolicy::Buffering;
        let counts = [("served_a_burst", served), ("refused_a_burst", refused)];
        let counts = counts.map(|(name, count)| {
            let labels = labels([("counted", name.into())]);
            (labels, count as f64 / bursts, ("requests", bursts as u64))
        });
        let parts = [
            (URGENT, calls.urgent.served_ns),
            (SERVED, calls.others.served_ns),
            (REFUSED, calls.others.refused_ns),
        ];
        Ok(Sampled {
            parts: parts
                .into_iter()
                .filter(|(_, times_ns)| !times_ns.is_empty())
                .map(|(call, times_ns)| (labels([(CALL, call.into())]), times_ns))
                .collect(),
            wrong: calls.urgent.wrong + calls.others.wrong,
            scheduling: calls.scheduling,
            counts: counts.into_iter().filter(|_| is_burst).collect(),
            ..Sampled::default()
        })
    }
}

/// The policy of a cell, and whether it is in force.
fn setting(cell: &Cell<'_>) -> Setting {
    let mut all = RtPolicy::ALL.iter().copied();
    let policy = all.find(|policy| cell.is(POLICY, policy.word()));
    Setting {
        policy: policy.expect("the levels of the study are policies"),
        is_on: cell.is(SETTING, ON),
    }
}

fn plots() -> Vec<Plot> {
    let of_calls = |id: &str, title: &str, caption: &str, x: &str| {
        Plot::bars(id, title)
            .caption(caption)
            .x(x)
            .values([StatisticName::P50, StatisticName::P99])
            .log_y()
    };
    vec![
        of_calls(
            "urgent",
            "An urgent call by policy",
            "From sending to having the reply, alone and while the others' calls are in progress.",
            POLICY,
        )
        .of(labels([(CALL, URGENT.into())]))
        .lines([OTHER_CALLS, SETTING]),
        of_calls(
            "burst",
            "Calls of a burst to a lane of one thread, and urgent calls to another lane",
            "Without buffering, requests wait in their connections until the thread has time. With it, a request without room is \
             refused at once.",
            CALL,
        )
        .of(labels([
            (POLICY, RtPolicy::Buffering.word().into()),
            (OTHER_CALLS, IN_PROGRESS.into()),
        ]))
        .lines([SETTING]),
    ]
}

/// The label of the policy.
const POLICY: &str = "policy";
/// The label that says whether it is in force.
const SETTING: &str = "setting";
const OFF: &str = "off";
const ON: &str = "on";
/// The label of the other clients' calls.
const OTHER_CALLS: &str = "other_calls";
const NONE: &str = "none";
const IN_PROGRESS: &str = "in_progress";
/// The label of whose calls they are: the urgent client's, or the others', which are served or refused.
const CALL: &str = "call";
const URGENT: &str = "urgent";
const SERVED: &str = "served";
const REFUSED: &str = "refused";
const NO_FIFO: &str = "Nothing was measured: without SCHED_FIFO, calls have no priorities.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn every_cell_has_a_setting_and_every_setting_two_cells() {
        let cells = STUDY.cells(Effort::Quick);
        let settings: Vec<Setting> = cells.iter().map(|cell| setting(&Cell::of(cell))).collect();
        let expected = RtPolicy::ALL.iter().flat_map(|&policy| {
            let setting = |is_on| Setting { policy, is_on };
            [false, false, true, true].map(setting)
        });
        assert_eq!(settings, expected.collect::<Vec<_>>());
    }
}
