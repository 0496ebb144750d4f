//! `orb/throughput`: how long a Cubit call takes by type and size, and how much of that the ORB adds to the octets.
//!
//! The client calls as fast as it can, as in IDL_Cubit. Contestants take turns within each round, since a machine
//! drifts; they are compared by the median over rounds. Raw exchanges of the same octets run beside them in the same
//! run, on the same CPU, with the same priority.

use std::time::Duration;

use crate::contestants::burst::{Burst, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::{Contestant, Transport};
use crate::experiments::prelude::*;
use line_up::LineUp;

mod kernels;
mod line_up;
mod says;

/// The experiment.
pub const STUDY: Study<LineUp> = Study {
    name: "orb/throughput",
    title: "How long a call takes, by type and size, and what the ORB adds to the octets",
    reproduces: "P0 Figure 2 (IDL_Cubit)",
    amounts: Amounts {
        glance: 20,
        emulated: 60,
        quick: [9, 600],
        full: [10, 10_000],
        samples: "count_per_round_max",
    },
    factors: &[
        Factor::texts(
            "operation",
            &[
                "oneway", "void", "octet", "short", "long", "struct", "union", "any", "longseq",
                "octetseq", "manyseq",
            ],
        ),
        Factor::numbers(
            "len",
            &[
                0,
                4,
                16,
                256,
                1_024,
                4_096,
                16_384,
                65_536,
                262_144,
                MEBIBYTE as i64,
            ],
        ),
        Factor::texts("orb", &["rtorb", "omniorb", "iceoryx2", "raw"]),
        Factor::texts("preset", &["tao", "tao_propagated"]).or_absent(),
        Factor::texts(
            "transport",
            &[
                "tcp",
                "unix",
                "shm",
                "shm_yield",
                "collocated",
                "futex",
                "shm_spin",
                "spin",
                "memcpy",
                "none",
            ],
        ),
        Factor::texts("part", &["call", "servant_work", "marshalling"]),
    ],
    parameters: &[
        ("warm_up", Value::ByEffort(WARM_UP)),
        ("burst_ms_max", Value::ByEffort(BURST_MS_MAX)),
    ],
    agents_max: 1,
    leaves_out: |cell, effort| {
        let (operation, verb) = (operation(cell), verb(cell));
        let has_transport = match verb {
            Verb::Call => is_called(cell, operation, effort),
            // What is timed without a call is timed once an ORB, if there is something to marshal.
            Verb::Work | Verb::Marshal => {
                let is_orb =
                    cell.is("orb", "rtorb") || (cell.is("orb", "omniorb") && !is_large(cell));
                cell.is("transport", "none") && is_orb && operation.is_sequence()
            }
        };
        // What a lane costs is the same whatever is called: it is measured with the plain call alone.
        let is_plain = operation == Operation::Long && cell.is("transport", "tcp");
        let has_architecture = !cell.has("preset") || (is_plain && cell.is("orb", "rtorb"));
        let has_peer = effort.seeds().is_none() || !cell.is("orb", "omniorb");
        let has_len = lengths(operation, effort).contains(&cell.number("len"));
        !(has_len && has_transport && has_architecture && has_peer)
    },
    plots,
    computed: says::compute,
    says: says::SAYS,
    services: &[
        ServiceRow::new("transport", "exchange")
            .of(&[("orb", "raw"), ("part", "call")])
            .configured_by(&["operation", "len", "payload_bytes", "transport"]),
        ServiceRow::new("orb", "call")
            .of(&[("orb", "rtorb"), ("part", "call")])
            .configured_by(&["operation", "len", "payload_bytes", "transport", "preset"])
            .otherwise(&[("preset", "default")]),
        ServiceRow::new("orb", "marshalling")
            .of(&[("part", "marshalling")])
            .configured_by(&["operation", "len", "payload_bytes"]),
        ServiceRow::new("orb", "servant_work")
            .of(&[("part", "servant_work")])
            .configured_by(&["operation", "len", "payload_bytes"]),
    ],
    emulated: Some(Emulated::unloaded(2.5)),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| LineUp::start(context))
};

fn plots() -> Vec<Plot> {
    let plot = |id: &str, title: &str| Plot::bars(id, title).x("operation");
    let above_raw = |id: &str, title: &str| {
        plot(id, title)
            .derived("time_above_raw")
            .caption(
                "The call less the raw exchange of the same octets on the same transport, median over rounds. What the servant does \
                 is in it too, and is the larger part for long sequences. Below zero, the host disturbed the raw exchange more than the \
                 call.",
            )
            .choose(["transport"])
            .lines(["orb"])
    };
    let mut plots = vec![
        above_raw("above-raw", "What the ORB adds to the octets")
            .of(labels([("len", 0usize.into())])),
        plot("medians", "Medians, side by side")
            .caption(
                "The bars without an ORB are two processes that send each other the same octets and do nothing else. A call that stands \
                 below them was measured when the host was quieter. Choose a name in the legend to hide or show it.",
            )
            .of(labels([("len", 0usize.into())]))
            .lines(["orb", "transport"]),
        plot("sizes", "Time against size")
            .kind(PlotKind::Lines)
            .caption(
                "Medians of sequences against the octets that each message carries, both scales logarithmic.",
            )
            .x("payload_bytes")
            .x_title("octets of payload")
            .choose(["operation"])
            .lines(["orb", "transport"])
            .log_x()
            .log_y(),
        plot("tails", "The tail: how slow is one call in a thousand")
            .kind(PlotKind::Percentiles)
            .choose(["operation", "len"])
            .lines(["orb", "transport", "preset"]),
    ];
    let sequences = Operation::ALL.iter().filter(|one| one.is_sequence());
    plots.extend(sequences.map(|operation| {
        let operation = operation.name();
        let title = format!("What the ORB adds to the octets of {operation}");
        above_raw(&format!("above-raw-{operation}"), &title)
            .x("payload_bytes")
            .x_title("octets of payload")
            .of(labels([("operation", operation.into())]))
    }));
    plots
}

impl Subject for LineUp {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let contestants = self.contestants.iter();
        Ok(contestants.flat_map(Contestant::scheduling).collect())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let (operation, len) = (operation(cell), cell.number("len"));
        let messages = operation.message_bytes(len, self.key_bytes);
        let payload_bytes = operation.payload_bytes(len);
        let mut contestants = self.contestants.iter_mut();
        let contestant = contestants.find(|contestant| is_of(contestant, cell));
        let Some(contestant) = contestant.filter(|found| found.carries(messages)) else {
            return Ok(Sampled::default());
        };
        let effort = turn.context.effort;
        let warm_up = WARM_UP.of(effort);
        let burst = Burst {
            verb: verb(cell),
            operation,
            len,
            // Beyond a few dozen, more calls of a large message warm nothing that is not warm.
            warm_up: if payload_bytes > LARGE_BYTES {
                warm_up / 4
            } else {
                warm_up
            },
            count: turn.samples,
            budget_ns: BURST_MS_MAX.of(effort) as u64 * 1_000_000,
            request_bytes: messages.request,
            reply_bytes: messages.reply,
            period_ns: 0,
        };
        let samples = contestant.burst(&burst)?;
        std::thread::sleep(PAUSE);
        let labels = labels([("payload_bytes", payload_bytes.into())]);
        Ok(Sampled {
            parts: vec![(labels, samples.times_ns)],
            wrong: samples.wrong,
            elapsed_ns: match burst.verb {
                Verb::Call => samples.elapsed_ns,
                Verb::Work | Verb::Marshal => 0,
            },
            ..Sampled::default()
        })
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        self.absent.clone()
    }
}

/// True if this operation is called on the transport of a cell.
fn is_called(cell: &Cell<'_>, operation: Operation, effort: Effort) -> bool {
    let of = |transports: &[Transport]| {
        let mut labels = transports.iter().map(|transport| transport.label());
        labels.any(|label| cell.is("transport", label))
    };
    let is_octets = operation == Operation::OctetSequence;
    let is_plain = operation == Operation::Long;
    let has_memory = has_memory(effort);
    let is_possible = match () {
        () if cell.is("orb", "omniorb") => of(&BY_ORBS) && !is_large(cell),
        () if cell.is("orb", "iceoryx2") => {
            let is_built_in = cfg!(feature = "iceoryx2");
            is_built_in && has_memory && (is_plain || is_octets) && of(&BY_ICEORYX2)
        }
        () if cell.is("orb", "raw") => {
            let is_memory =
                (is_plain && of(&[Transport::Spin])) || (is_octets && of(&[Transport::Memcpy]));
            of(&[Transport::Tcp, Transport::Unix, Transport::Futex]) || (has_memory && is_memory)
        }
        () => {
            let is_spinning = (is_plain || is_octets) && of(&[Transport::ShmSpin]);
            // A oneway is never collocated.
            let is_collocated = operation != Operation::Oneway && of(&[Transport::Collocated]);
            let is_memory = is_spinning || is_collocated || of(&BY_OURS);
            of(&BY_ORBS) || (has_memory && is_memory)
        }
    };
    let is_for_large = || {
        of(&[
            Transport::Unix,
            Transport::Shm,
            Transport::ShmSpin,
            Transport::Memcpy,
        ])
    };
    is_possible && (!is_large(cell) || is_for_large())
}

/// True for sequences that are compared with copies of memory.
fn is_large(cell: &Cell<'_>) -> bool {
    cell.number("len") >= MEBIBYTE
}

/// True if calls through shared memory are measured: an emulated machine has no time for them.
fn has_memory(effort: Effort) -> bool {
    effort.seeds().is_none()
}

/// True if a contestant is the one that is measured in a cell.
fn is_of(contestant: &Contestant, cell: &Cell<'_>) -> bool {
    let is_transport = match verb(cell) {
        Verb::Call => cell.is("transport", contestant.transport.label()),
        Verb::Work | Verb::Marshal => contestant.transport == Transport::Tcp,
    };
    let is_architecture = match contestant.architecture.label() {
        Some(preset) => cell.is("preset", preset),
        None => !cell.has("preset"),
    };
    cell.is("orb", contestant.orb.label()) && is_transport && is_architecture
}

fn operation(cell: &Cell<'_>) -> Operation {
    cell.parsed("operation")
        .expect("each level is an operation")
}

fn verb(cell: &Cell<'_>) -> Verb {
    match () {
        () if cell.is("part", "call") => Verb::Call,
        () if cell.is("part", "servant_work") => Verb::Work,
        () => Verb::Marshal,
    }
}

/// The numbers of elements: the original benchmark's, and up to 256 KiB; 0 for what is no sequence.
fn lengths(operation: Operation, effort: Effort) -> &'static [usize] {
    if effort.is_full() {
        return match operation {
            Operation::OctetSequence => &[16, 256, 1_024, 4_096, 16_384, 65_536, 262_144, MEBIBYTE],
            Operation::LongSequence => &[4, 256, 1_024, 4_096, 16_384, 65_536],
            Operation::ManySequence => &[4, 256, 1_024, 4_096, 16_384],
            _ => &[0],
        };
    }
    match (operation, effort) {
        (Operation::OctetSequence, Effort::Glance) => &[16],
        (Operation::OctetSequence, Effort::Emulated { .. }) => &[16, 1_024],
        (Operation::OctetSequence, Effort::Quick) => &[16, 1_024, 4_096, 65_536, MEBIBYTE],
        (Operation::LongSequence | Operation::ManySequence, Effort::Glance)
        | (Operation::ManySequence, Effort::Emulated { .. }) => &[4],
        (Operation::LongSequence, Effort::Emulated { .. }) => &[4, 1_024],
        (Operation::LongSequence | Operation::ManySequence, Effort::Quick) => &[4, 1_024, 4_096],
        _ => &[0],
    }
}

/// The transports that every ORB has.
const BY_ORBS: [Transport; 2] = [Transport::Tcp, Transport::Unix];
/// The transports of our ORB alone on which everything is called.
const BY_OURS: [Transport; 2] = [Transport::Shm, Transport::ShmYield];
/// With events, and polled on two CPUs.
const BY_ICEORYX2: [Transport; 2] = [Transport::Shm, Transport::ShmSpin];
const MEBIBYTE: usize = 1 << 20;
const WARM_UP: ByEffort = ByEffort {
    glance: 10,
    emulated: 10,
    quick: 60,
    full: 500,
};
/// Far below the 950 ms after which real-time tasks that never rest are throttled.
const BURST_MS_MAX: ByEffort = ByEffort {
    glance: 20,
    emulated: 40,
    quick: 26,
    full: 300,
};
/// Beyond this, copying the octets takes longer than handing them over.
const LARGE_BYTES: usize = 8_192;
/// Leaves the CPU to others between bursts, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_machine_makes_few_calls() {
        let effort = Effort::Emulated {
            seeds: 4,
            full: false,
        };
        let cells = STUDY.cells(effort);
        assert!(cells.iter().all(|cell| cell["orb"] != "omniorb".into()));
        let ours = cells.iter().filter(|cell| {
            let of = |label: &str, level: &str| cell.get(label) == Some(&level.into());
            of("orb", "rtorb") && of("transport", "tcp") && !cell.contains_key("preset")
        });
        let calls = 4 * ours.count() * (WARM_UP.of(effort) + 60);
        assert!(calls < 5_000, "{calls} calls of a contestant");
    }

    #[test]
    fn a_sequence_has_its_lengths_and_its_parts_and_a_lane_has_the_plain_call() {
        let cells = STUDY.cells(Effort::Quick);
        let count = |wanted: &[(&str, &str)]| {
            let is = |cell: &&rtorb_results::Labels| {
                let mut wanted = wanted.iter();
                wanted.all(|(name, value)| {
                    let found = cell.get(*name);
                    found.map(ToString::to_string).as_deref() == Some(value)
                })
            };
            cells.iter().filter(is).count()
        };
        // By TCP, UNIX sockets and shared memory with three waits each, collocated, and two parts without a call. A mebibyte is
        // not sent by TCP, nor while a thread yields, nor collocated.
        assert_eq!(
            count(&[("operation", "octetseq"), ("orb", "rtorb")]),
            4 * 8 + 5
        );
        assert_eq!(
            count(&[("operation", "octetseq"), ("orb", "raw")]),
            4 * 4 + 2
        );
        assert_eq!(count(&[("transport", "spin")]), 1);
        assert_eq!(count(&[("transport", "memcpy"), ("orb", "rtorb")]), 0);
        assert_eq!(count(&[("operation", "void"), ("orb", "omniorb")]), 2);
        for preset in ["tao", "tao_propagated"] {
            let lane = [("operation", "long"), ("preset", preset)];
            assert_eq!((count(&lane), count(&lane[1..])), (1, 1));
        }
    }
}
