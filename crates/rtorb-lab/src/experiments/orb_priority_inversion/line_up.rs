//! Who takes part, and how the clients call.

use super::{FASTER, PRIORITIES, RATES_HZ, WORK};
use crate::contestants::Transport;
use crate::contestants::rates::line_up;
use crate::contestants::rates::server::RateObject;
use crate::contestants::rates::{FirstReleases, Group, Releases, Run, Times};
use crate::experiments::prelude::*;
use crate::experiments::transports::TRANSPORT;

/// Everybody who can take part.
#[derive(Debug)]
pub struct LineUp {
    others: line_up::LineUp,
    clients: Clients,
    /// There is one host: UNIX sockets and shared memory reach the servers.
    is_near: bool,
}

/// How the clients call.
#[derive(Clone, Copy, Debug)]
struct Clients {
    real_time: bool,
    effort: Effort,
}

impl LineUp {
    /// Starts everybody who can take part.
    pub(super) fn start(context: &Context, cells: &[Cell<'_>]) -> Result<Self, LabError> {
        let clients = Clients {
            real_time: context.launcher.is_real_time(),
            effort: context.effort,
        };
        let objects = PRIORITIES.map(|priority| RateObject {
            priority: clients.priority(priority),
            works: true,
        });
        let ours = context.launcher.placement;
        let is_near = context.launcher.agent().is_none();
        let others = line_up::LineUp::start(
            context,
            cells,
            &["preset", TRANSPORT],
            |cell| (is_near || Transport::of(cell) == Transport::Tcp).then_some(ours),
            &objects,
            |_, contestant| contestant.roll_call(&clients.groups()),
        )?;
        Ok(Self {
            others,
            clients,
            is_near,
        })
    }
}

impl Clients {
    fn priority(self, priority: u8) -> u8 {
        if self.real_time { priority } else { 0 }
    }

    /// A client of each rate.
    fn groups(self) -> Vec<Group> {
        let clients = rates_hz(self.effort).into_iter().zip(PRIORITIES);
        let client = |(object, (hz, priority)): (usize, (u64, u8))| Group {
            object,
            priority: self.priority(priority),
            clients: 1,
            period_ns: 1_000_000_000 / hz,
            calls: 1,
            releases: Releases::Each,
        };
        clients.enumerate().map(client).collect()
    }
}

impl Subject for LineUp {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        Ok(self.others.scheduling())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let Some(contestant) = self.others.of(cell) else {
            return Ok(Sampled::default());
        };
        contestant.set_work(cell.number(WORK) as u64)?;
        let ran = contestant.run(&Run {
            duration_ns: turn.run_ms as u64 * 1_000_000,
            round: turn.round,
            first: FirstReleases::Spread,
            groups: self.clients.groups(),
        })?;
        let clients = ran.ran.groups;
        Ok(Sampled {
            parts: parts(contestant.orb.label(), self.clients.effort, &clients),
            wrong: clients.iter().map(|times| times.wrong).sum(),
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        self.others.notes()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        let others = [Transport::Unix, Transport::Shm].into_iter();
        let others = others.filter(|_| !self.is_near);
        let far = others.map(|transport| {
            let labels = labels([(TRANSPORT, transport.label().into())]);
            (labels, FAR.to_owned())
        });
        self.others.absent().into_iter().chain(far).collect()
    }

    fn parameters(effort: Effort) -> Parameters {
        let text = |numbers: &[u64]| {
            let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            words.join(" ")
        };
        labels([
            ("rates_hz", text(&rates_hz(effort)).into()),
            ("priorities", text(&PRIORITIES.map(u64::from)).into()),
        ])
    }
}

/// The times of the clients, the most urgent first: from sending, and from when it should have been sent.
fn parts(orb: &str, effort: Effort, clients: &[Times]) -> Vec<(Labels, Vec<u64>)> {
    let stairs = rates_hz(effort).into_iter().zip(PRIORITIES);
    let both = stairs.zip(clients).map(|((rate_hz, priority), times)| {
        let role = if priority == PRIORITIES[0] {
            "high"
        } else {
            "low"
        };
        let labels = |part: &str| {
            labels([
                ("orb", orb.into()),
                ("role", role.into()),
                ("rate_hz", rate_hz.into()),
                ("priority", u32::from(priority).into()),
                ("part", part.into()),
            ])
        };
        (
            (labels(SENDING), times.sent_ns.clone()),
            (labels(RELEASE), times.release_ns.clone()),
        )
    });
    let (mut from_sending, from_release): (Vec<_>, Vec<_>) = both.unzip();
    from_sending.extend(from_release);
    from_sending
}

fn rates_hz(effort: Effort) -> [u64; RATES_HZ.len()] {
    RATES_HZ.map(|hz| (hz * FASTER.of(effort)) as u64)
}

const FAR: &str =
    "UNIX sockets and shared memory were left out: the servers ran on the agent's host.";
/// The values of the label `part`: from which moment a time counts. A call is judged from its planned release.
pub(super) const SENDING: &str = "from_sending";
pub(super) const RELEASE: &str = "call";

#[cfg(test)]
mod tests {
    use super::super::STUDY;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn whoever_calls_more_often_is_more_urgent() {
        for effort in [
            Effort::Quick,
            Effort::Full,
            Effort::Emulated {
                seeds: 4,
                full: false,
            },
        ] {
            let clients = Clients {
                real_time: true,
                effort,
            };
            let groups = clients.groups();
            assert_eq!(groups.len(), RATES_HZ.len());
            for pair in groups.windows(2) {
                assert!(pair[0].period_ns < pair[1].period_ns);
                assert!(pair[0].priority > pair[1].priority);
            }
        }
        assert_eq!(rates_hz(Effort::Full), [20, 10, 5, 1]);
    }

    #[test]
    fn the_most_urgent_client_is_labelled_high() {
        let parts = parts("rtorb", Effort::Full, &[(); 4].map(|()| Times::default()));
        let high = parts.iter().map(|(labels, _)| labels);
        let high = high.filter(|labels| labels["role"] == "high".into());
        let high: Vec<String> = high
            .map(|labels| format!("{} {}", labels["part"], labels["rate_hz"]))
            .collect();
        assert_eq!(high, ["from_sending 20", "call 20"]);
    }

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_and_little_time() {
        let parameters = STUDY.parameters(Effort::Emulated {
            seeds: 4,
            full: false,
        });
        assert_eq!(parameters["rounds"], 4usize.into());
        assert!(parameters["paced_seconds"].number().unwrap() <= 4);
        let quick = STUDY.parameters(Effort::Quick);
        assert_eq!(quick["paced_seconds"], 12usize.into());
        assert_eq!(quick["rates_hz"], "200 100 50 10".into());
    }
}
