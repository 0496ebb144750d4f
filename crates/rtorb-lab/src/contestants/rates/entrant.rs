//! Who can take part in an experiment of clients that call at a rate, and which priorities the threads of its server have.

use std::fmt;

use rtorb::{DispatchStrategy, Strategies};
use rtorb_host::placement::Placement;

use crate::contestants::{OMNIORB, Transport};

/// Somebody who can take part.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Ours with a preset of strategies, which `_rt` or [`PER_REQUEST`] may follow, or the peer: the label `preset`.
    pub name: String,
    /// Where its server runs.
    pub server: Placement,
    /// The transport of ours.
    pub transport: Transport,
}

/// What an entrant runs.
pub(super) enum Software<'a> {
    /// Ours with that preset.
    Rtorb(&'a str),
    OmniOrb,
}

/// What follows the name of a preset whose server starts a thread for each request.
pub(crate) const PER_REQUEST: &str = "_per_request";

/// The strategies of a preset, which [`PER_REQUEST`] may follow.
///
/// # Errors
/// The names that there are.
pub(super) fn strategies(name: &str) -> Result<Strategies, String> {
    let preset = name.strip_suffix(PER_REQUEST);
    let strategies = Strategies::preset(preset.unwrap_or(name));
    let strategies = strategies.map_err(|error| error.to_string())?;
    Ok(match preset {
        Some(_) => Strategies::new(strategies.connection, DispatchStrategy::ThreadPerRequest),
        None => strategies,
    })
}

/// Which priorities the threads have that serve requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPriorities {
    /// That of the object which is called: objects declare priorities.
    OfObjects,
    /// That of the server's process, for all requests.
    OfProcess,
}

/// The threads of each server, and why they have these priorities.
const SERVERS: [(&str, ServerPriorities, &str); 9] = [
    (
        "tao",
        ServerPriorities::OfObjects,
        "TAO has a thread for each priority, which does all for its requests (P1 2.2.2).",
    ),
    (
        "mt_orbix",
        ServerPriorities::OfObjects,
        "MT-Orbix has a servant thread for each priority. The thread of the filters before them has a high one, so that it dispatches \
         fast (P1 2.2.2).",
    ),
    (
        "minicool",
        ServerPriorities::OfProcess,
        "miniCOOL has one pool, and its users cannot separate requests by priority (P1 2.2.2 and recommendation 2).",
    ),
    (
        "corbaplus",
        ServerPriorities::OfProcess,
        "CORBAplus has one thread that reads and one pool that serves, and its users cannot separate requests by priority (P1 2.2.2 and \
         recommendation 2).",
    ),
    (
        "minicool_rt",
        ServerPriorities::OfObjects,
        "These are the strategies of miniCOOL with the priorities of RT-CORBA, which P1 did not measure.",
    ),
    (
        "corbaplus_rt",
        ServerPriorities::OfObjects,
        "These are the strategies of CORBAplus with the priorities of RT-CORBA, which P1 did not measure.",
    ),
    (
        "minicool_per_request",
        ServerPriorities::OfObjects,
        "miniCOOL can also start a thread for each request (P1 2.1), which P1 did not measure. Here it takes the priority of RT-CORBA.",
    ),
    (
        "default",
        ServerPriorities::OfObjects,
        "The thread of a connection takes the priority of the object that is called.",
    ),
    (
        OMNIORB,
        ServerPriorities::OfProcess,
        "omniORB knows no priorities.",
    ),
];

impl Entrant {
    /// Ours or the peer, and for ours the preset.
    pub(super) fn software(&self) -> Software<'_> {
        match self.name.strip_suffix("_rt") {
            Some(preset) => Software::Rtorb(preset),
            None if self.name == OMNIORB => Software::OmniOrb,
            None => Software::Rtorb(&self.name),
        }
    }

    /// Which priorities the threads of its server have.
    #[must_use]
    pub fn priorities(&self) -> ServerPriorities {
        self.declared()
            .map_or(ServerPriorities::OfObjects, |found| found.0)
    }

    /// The priority of its server's threads in words, with the reason; `None` if they have those of the objects.
    #[must_use]
    pub fn one_priority(&self) -> Option<String> {
        let (priorities, reason) = self.declared()?;
        let fifo = self.server.fifo?;
        (priorities == ServerPriorities::OfProcess).then(|| {
            format!(
                "{}: the threads of its server have one priority, SCHED_FIFO {fifo}. {reason}",
                self.name
            )
        })
    }

    fn declared(&self) -> Option<(ServerPriorities, &'static str)> {
        let mut all = SERVERS.iter();
        let found = all.find(|(name, ..)| *name == self.name);
        found.map(|(_, priorities, reason)| (*priorities, *reason))
    }
}

impl fmt::Display for Entrant {
    /// The name, and the transport if that is not TCP.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match self.transport {
            Transport::Tcp => Ok(()),
            other => write!(formatter, " over {}", other.label()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rtorb::Strategies;

    use super::*;

    #[test]
    fn every_preset_is_declared_with_its_reason() {
        let declared = |name: &str| SERVERS.iter().any(|(known, ..)| *known == name);
        assert!(Strategies::PRESETS.iter().all(|(name, _)| declared(name)));
        assert!(declared(OMNIORB) && declared("minicool_per_request"));
        let per_request = strategies("minicool_per_request").expect("it is known");
        assert_eq!(per_request.connection, Strategies::MINICOOL.connection);
        assert_eq!(per_request.dispatch, DispatchStrategy::ThreadPerRequest);
        let one = |(name, priorities, reason): &(&str, ServerPriorities, &str)| {
            let is_paper = reason.contains("(P1 2.2.2") || *name == OMNIORB;
            *priorities == ServerPriorities::OfObjects || is_paper
        };
        assert!(
            SERVERS.iter().all(one),
            "the paper's architecture is the reason"
        );
    }

    #[test]
    fn a_server_of_one_priority_is_told() {
        let entrant = |name: &str| Entrant {
            name: name.to_owned(),
            server: Placement {
                cpu: Some(1),
                fifo: Some(10),
            },
            transport: Transport::Tcp,
        };
        let told = entrant("minicool").one_priority().expect("it has one");
        assert!(
            told.starts_with("minicool: ") && told.contains("SCHED_FIFO 10"),
            "{told}"
        );
        assert_eq!(entrant("minicool_rt").one_priority(), None);
        assert_eq!(entrant("tao").one_priority(), None);
    }
}
