//! Those who take part: a supplier, its receivers and an event channel for each transport, and the load.

use super::{EVENT, LEAD_NS_MAX, LOW_CALLS, MEETING, PATH, PERIOD_NS, RECEIVERS, SIZE};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::Channel;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Latencies, Meetings, Part, Path, Run};
use crate::experiments::beside::VariedLoad;
use crate::experiments::orb_events::served;
use crate::experiments::prelude::*;

/// A system for each transport.
#[derive(Debug)]
pub struct Systems {
    systems: Vec<System>,
    load: VariedLoad,
    /// Lines for one wave are lines for one receiver.
    has_one_wave: bool,
}

impl Systems {
    pub(super) fn start(context: &Context, cells: &[Cell<'_>]) -> Result<Self, LabError> {
        let has_agents = context.launcher.agent().is_some();
        let roles = match context.gpio.len() {
            0 => &Role::ALL[..],
            lines => &Role::ALL[..lines.min(2)],
        };
        // Hosts are joined by TCP, and two systems cannot have the same lines.
        let is_free = !has_agents && context.gpio.is_empty();
        let is_possible = |transport: &Transport| is_free || *transport == Transport::Tcp;
        let is_planned = |transport: &Transport| {
            let mut cells = cells.iter();
            cells.any(|cell| Transport::of(cell) == *transport)
        };
        let start = |transport: Transport| {
            let served = served(context, roles);
            let channel = if has_agents {
                Channel::start_server(&context.launcher.at_host(system::CHANNEL_HOST), &served)?
            } else {
                Channel::start(context, transport, "edges", &served)?
            };
            System::start(context, transport, roles, channel)
        };
        let transports = Transport::OF_ORB.into_iter();
        let transports = transports.filter(is_possible).filter(is_planned);
        Ok(Self {
            systems: transports.map(start).collect::<Result<_, _>>()?,
            load: VariedLoad::new(context, system::HOSTS)?,
            has_one_wave: roles.len() == 1,
        })
    }
}

impl Subject for Systems {
    /// To start the load takes long.
    const BLOCKS: Option<&'static str> = Some("load");

    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let mut all = Vec::new();
        for system in &mut self.systems {
            let few = |path, receivers| run(system, FEW_EDGES, (path, receivers, 0));
            let [event, calls] = [few(Path::Event, 1), few(Path::Call, system.roles.len())];
            system.run(&event)?;
            // With them come all threads.
            all.extend(system.roll_call(&calls)?);
        }
        Ok(all)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let receivers = cell.number(RECEIVERS);
        let mut systems = self.systems.iter_mut();
        let system = systems.find(|system| {
            cell.is("transport", system.transport.label()) && receivers <= system.roles.len()
        });
        let Some(system) = system else {
            return Ok(Sampled::default());
        };
        let is_event = cell.is(PATH, EVENT);
        let path = if is_event { Path::Event } else { Path::Call };
        let Some(load) = self.load.set(cell, turn.context)? else {
            return Ok(Sampled::default());
        };
        let run = run(system, turn.samples, (path, receivers, cell.number(SIZE)));
        let waves = system.run(&run)?;
        self.load.check()?;
        Ok(Sampled {
            parts: parts(&waves, path, &load),
            wrong: waves.iter().map(|wave| wave.wrong).sum(),
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        let one_wave = self.has_one_wave.then(|| ONE_WAVE.to_owned());
        one_wave.into_iter().chain(self.load.note()).collect()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        self.load.absent().into_iter().collect()
    }
}

/// A run with so many edges of each wave.
fn run(
    system: &System,
    edges: usize,
    (path, receivers, payload_bytes): (Path, usize, usize),
) -> Run {
    let roles = system.roles[..receivers].iter();
    let waves = roles.map(|role| {
        let lead_ns_max = match role {
            Role::High => 0,
            Role::Low => LEAD_NS_MAX,
        };
        system.wave(*role, PERIOD_NS, lead_ns_max)
    });
    Run {
        duration_ns: edges as u64 * PERIOD_NS,
        payload_bytes,
        path,
        waves: waves.collect(),
    }
}

/// The latencies of each wave, and those of the high one by what the low one's call did.
fn parts(waves: &[Latencies], path: Path, load: &LabelValue) -> Vec<(Labels, Vec<u64>)> {
    let labels = |role: Role, part: &str| {
        labels([
            ("role", role.name().into()),
            ("part", part.into()),
            ("load", load.clone()),
        ])
    };
    let mut all = Vec::new();
    for (role, wave) in Role::ALL.into_iter().zip(waves) {
        let parts = Part::ALL.iter().zip(&wave.parts_ns);
        // An event has no reply.
        let parts = parts.filter(|(part, _)| path == Path::Call || **part != Part::RoundTrip);
        all.extend(parts.map(|(part, times_ns)| (labels(role, part.name()), times_ns.clone())));
    }
    if let [high, low] = waves {
        let Meetings { in_progress, none } = Meetings::of(high, low);
        // Without a meeting, or with nothing else, there is nothing to compare.
        if !in_progress.edges_ns.is_empty() && !none.edges_ns.is_empty() {
            for (low_call, met) in LOW_CALLS.into_iter().zip([in_progress, none]) {
                let mut labels = labels(Role::High, MEETING);
                labels.insert("low_call".to_owned(), low_call.into());
                let [call_ns, ..] = met.parts_ns;
                all.push((labels, call_ns));
            }
        }
    }
    all
}

const FEW_EDGES: usize = 10;
const ONE_WAVE: &str = "There is one receiver, since lines of GPIO were given for one wave.";

#[cfg(test)]
mod tests {
    use super::*;

    /// Edges a millisecond apart whose calls take 30 us.
    fn wave(edges_ns: &[u64]) -> Latencies {
        let times_ns = |ns: u64| vec![ns; edges_ns.len()];
        Latencies {
            edges_ns: edges_ns.to_vec(),
            parts_ns: [30_000, 2_000, 28_000, 29_000].map(times_ns),
            wrong: 0,
        }
    }

    #[test]
    fn both_kinds_of_meeting_are_parts_of_their_own() {
        let high = wave(&[1_000_000, 2_000_000]);
        let found = |low: &[u64]| {
            let parts = parts(&[high.clone(), wave(low)], Path::Call, &"mix".into());
            let kinds = parts.iter().filter_map(|(labels, times_ns)| {
                assert_eq!(labels["load"], "mix".into());
                let low_call = labels.get("low_call")?;
                Some((low_call.to_string(), times_ns.len()))
            });
            (parts.len(), kinds.collect::<Vec<_>>())
        };
        let kinds = [("in_progress".to_owned(), 1), ("none".to_owned(), 1)];
        assert_eq!(found(&[990_000, 1_900_000]), (10, kinds.to_vec()));
        assert_eq!(found(&[990_000, 1_990_000]), (8, Vec::new()));
        let alone = |path| parts(std::slice::from_ref(&high), path, &"none".into()).len();
        assert_eq!(alone(Path::Call), Part::ALL.len());
        assert_eq!(alone(Path::Event), Part::ALL.len() - 1);
    }
}
