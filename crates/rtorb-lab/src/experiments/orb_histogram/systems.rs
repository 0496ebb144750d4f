//! Those who take part: a supplier and its receivers for each transport, and the load.

use rtorb_results::{LabelValue, Labels, ObtainedScheduling, labels};

use super::{LEAD_NS_MAX, LOW_CALLS, MEETING, PERIOD_NS};
use crate::contestants::Transport;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Latencies, Meetings, Part, Path, Run};
use crate::error::LabError;
use crate::experiment::Context;
use crate::experiments::beside::VariedLoad;
use crate::study::{Cell, Sampled, Subject, Turn};

/// A system for each transport.
#[derive(Debug)]
pub struct Systems {
    systems: Vec<System>,
    load: VariedLoad,
    /// Lines for one wave are lines for one receiver.
    has_one_wave: bool,
}

impl Systems {
    pub(super) fn start(context: &Context) -> Result<Self, LabError> {
        let (transports, roles) = match context.gpio.len() {
            // Hosts are joined by TCP.
            0 if context.launcher.agent().is_some() => (&[Transport::Tcp][..], &Role::ALL[..]),
            0 => (&[Transport::Tcp, Transport::Unix][..], &Role::ALL[..]),
            // Two systems cannot have the same lines.
            lines => (&[Transport::Tcp][..], &Role::ALL[..lines.min(2)]),
        };
        let transports = transports.iter();
        let systems = transports.map(|transport| System::start(context, *transport, roles));
        Ok(Self {
            systems: systems.collect::<Result<_, _>>()?,
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
            let few = run(system, 10, system.roles.len());
            all.extend(system.roll_call(&few)?);
        }
        Ok(all)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let receivers = cell.number("receivers");
        let mut systems = self.systems.iter_mut();
        let system = systems.find(|system| {
            cell.is("transport", system.transport.label()) && receivers <= system.roles.len()
        });
        let Some(system) = system else {
            return Ok(Sampled::default());
        };
        let load = self.load.set(cell, turn.context)?;
        let waves = system.run(&run(system, turn.samples, receivers))?;
        self.load.check()?;
        Ok(Sampled {
            parts: parts(&system.roles, &waves, &load),
            wrong: waves.iter().map(|wave| wave.wrong).sum(),
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        let one_wave = self.has_one_wave.then(|| ONE_WAVE.to_owned());
        one_wave.into_iter().chain(self.load.note()).collect()
    }
}

/// A run with so many edges of each wave.
fn run(system: &System, edges: usize, receivers: usize) -> Run {
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
        payload_bytes: 0,
        path: Path::Call,
        waves: waves.collect(),
    }
}

/// The latencies of each wave, and those of the high one by what the low one's call did.
fn parts(roles: &[Role], waves: &[Latencies], load: &LabelValue) -> Vec<(Labels, Vec<u64>)> {
    let labels = |role: &Role, part: &str| {
        labels([
            ("role", role.name().into()),
            ("part", part.into()),
            ("load", load.clone()),
        ])
    };
    let mut all = Vec::new();
    for (role, wave) in roles.iter().zip(waves) {
        let parts = Part::ALL.iter().zip(&wave.parts_ns);
        all.extend(parts.map(|(part, times_ns)| (labels(role, part.name()), times_ns.clone())));
    }
    if let [high, low] = waves {
        let Meetings { in_progress, none } = Meetings::of(high, low);
        // Without a meeting, or with nothing else, there is nothing to compare.
        if !in_progress.edges_ns.is_empty() && !none.edges_ns.is_empty() {
            for (low_call, met) in LOW_CALLS.into_iter().zip([in_progress, none]) {
                let mut labels = labels(&Role::High, MEETING);
                labels.insert("low_call".to_owned(), low_call.into());
                let [call_ns, ..] = met.parts_ns;
                all.push((labels, call_ns));
            }
        }
    }
    all
}

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
            let parts = parts(&Role::ALL, &[high.clone(), wave(low)], &"mix".into());
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
        let alone = parts(&[Role::High], &[high], &"none".into());
        assert_eq!(alone.len(), Part::ALL.len());
    }
}
