//! `orb/edge`: how long it takes from a digital input to a digital output: by a call to one receiver and to two of different
//! priority, with more and more data, and by an event through the channel; without and with load.
//!
//! With two receivers, the edges of the less urgent wave come a little before those of the urgent one, by a lead that is
//! spread evenly: so the urgent edge meets every moment of the other call, and would have to wait if anything on the way
//! forgot the priority.

use crate::contestants::Transport;
use crate::contestants::square_wave::system::{self, Role};
use crate::experiments::beside::{LOADS, NONE};
use crate::experiments::prelude::*;
use crate::experiments::transports::TRANSPORTS;
use systems::Systems;

mod kernels;
mod plots;
mod says;
mod systems;

/// The experiment.
pub const STUDY: Study<Systems> = Study {
    name: "orb/edge",
    title: "How long it takes from a digital input to a digital output, by calls and by events, without and with load",
    reproduces: "P4 Figures 6 to 10 and 12",
    amounts: Amounts {
        glance: 30,
        emulated: 125,
        quick: [6, 170],
        full: [10, 1_000],
        samples: "edges_per_round",
    },
    // The load varies slowest: to start it takes long.
    factors: &[
        LOADS,
        TRANSPORTS,
        Factor::texts(PATH, &["call", EVENT]),
        Factor::numbers(RECEIVERS, &[1, 2]),
        // P4's example is an image of 1 KiB.
        Factor::numbers(SIZE, &[0, 64, 256, 1_024, 4_096, 16_384, 65_536]),
    ],
    fixed: "orb=rtorb, preset=tao",
    parameters: &[
        ("edges_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("low_leads_us_max", Number((LEAD_NS_MAX / 1_000) as i64)),
        ("priority_high", Number(Role::High.priority() as i64)),
        ("priority_low", Number(Role::Low.priority() as i64)),
    ],
    columns: &["load"],
    labels_of_run: system::labels_of_run,
    agents_max: system::HOSTS,
    obstacle: system::obstacle,
    period_ns: PERIOD_NS,
    leaves_out,
    plots: plots::plots,
    says: says::SAYS,
    notes,
    emulated: Some(Emulated {
        loads: EmulatedLoads::NoneAndMix,
        ..Emulated::unloaded(5.0)
    }),
    kernels: Some(kernels::view),
    ..Study::with(Systems::start)
};

/// Events, a second receiver and data are each beside the plain call, and not beside each other.
fn leaves_out(cell: &Cell<'_>, effort: Effort) -> bool {
    let (transport, size) = (Transport::of(cell), cell.number(SIZE));
    let is_event = cell.is(PATH, EVENT);
    let has_two = cell.number(RECEIVERS) == 2;
    let beside_plain = [is_event, has_two, size > 0]
        .into_iter()
        .filter(|is_so| *is_so);
    let is_crossed = beside_plain.count() > 1;
    // An emulated machine has the load that it was booted for.
    let is_emulated = effort.seeds().is_some();
    let is_elsewhere = is_emulated && (cell.is("load", NONE) || transport == Transport::Shm);
    let is_between = !effort.is_full() && ![0, 1_024, 4_096, 65_536].contains(&size);
    is_crossed
        || is_elsewhere
        || is_between
        || (has_two && transport == Transport::Shm)
        || (size > 0 && transport != Transport::Tcp)
}

fn notes(context: &Context) -> Vec<String> {
    let is_host = context.effort.seeds().is_none();
    let others = [
        (is_host, COLD),
        (true, MEETINGS),
        (true, ONE_WAY),
        (context.launcher.agent().is_none(), ON_ONE_CPU),
    ];
    let others = others.into_iter().filter(|(is_so, _)| *is_so);
    let mut notes = system::notes(context);
    notes.extend(others.map(|(_, note)| note.to_owned()));
    notes.extend(context.without_fifo(NOT_REAL_TIME));
    notes
}

const PATH: &str = "path";
const EVENT: &str = "event";
const RECEIVERS: &str = "receivers";
const SIZE: &str = "payload_bytes";
/// The part of the latencies that has the label `low_call`. Like `call`, it is from the edge until the output was set.
const MEETING: &str = "meeting";
/// The values of `low_call`: what the low receiver's call did when the high one's edge came.
const LOW_CALLS: [&str; 2] = ["in_progress", "none"];
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
/// Longer than a call takes.
const LEAD_NS_MAX: u64 = 100_000;
const COLD: &str = "Without the low receiver's calls, which run the same code, the high receiver finds colder caches. So its median may be \
                    smaller with the low receiver than without it, and this difference can hide a wait of the same length.";
const MEETINGS: &str = "Whether there is priority inversion is judged within the runs with both receivers, by what the low one's call did \
                        when the high one's edge came: `in_progress`, or `none`. Caches are as warm in both. Edges between a low edge \
                        and the moment at which its thread ran are of neither kind, since one timer interrupt may serve both.";
const ONE_WAY: &str = "An event has no reply, so its series have no `round_trip`. Where consumer and supplier have the same priority, the \
                       thread of the channel that receives an event sends it on at once.";
const ON_ONE_CPU: &str = "All processes share this one CPU. A supplier does not wait for a reply to its event, so the channel sends the event \
                          on only when the supplier sleeps until its next edge. `request` of an event contains that time; `request` of a \
                          call does not.";
const NOT_REAL_TIME: &str =
    "Without SCHED_FIFO no call has a priority: `role` says what was asked for.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_under_its_one_load() {
        assert!(STUDY.varies_load());
        let emulated = Effort::Emulated {
            seeds: 4,
            full: false,
        };
        assert_eq!(STUDY.cells(emulated).len(), 9);
        assert_eq!(STUDY.cells(Effort::Quick).len(), 2 * 11);
        assert_eq!(STUDY.cells(Effort::Full).len(), 2 * 14);
        let parameters = STUDY.parameters(emulated);
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 5);
        assert!(!parameters.contains_key("load"), "the run knows it");
    }
}
