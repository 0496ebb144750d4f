//! Who takes part.

use rtorb::rt::PriorityModel;

#[cfg(feature = "iceoryx2")]
use super::BY_ICEORYX2;
use super::{BY_ORBS, BY_OURS, has_memory};
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::{Contestant, Orb, Transport, key_bytes};
use crate::experiments::prelude::*;

/// Everybody who can take part.
#[derive(Debug)]
pub struct LineUp {
    pub(super) contestants: Vec<Contestant>,
    /// What this host does not have, with the reason.
    pub(super) absent: Vec<(Labels, String)>,
    /// The length of our object key: the raw messages have the size of ours.
    pub(super) key_bytes: usize,
}

impl LineUp {
    /// Starts everybody who can take part.
    pub(super) fn start(context: &Context) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        // On another host there is neither memory nor a file system to share.
        let is_near = launcher.agent().is_none();
        let has_other_cpu = context.other_cpu().is_some();
        let reachable = move |transport: &Transport| {
            let has_cpus = has_other_cpu || !transport.needs_two_cpus();
            *transport == Transport::Tcp || (is_near && has_cpus)
        };
        let in_memory = |transports: &[Transport]| {
            let has_memory = has_memory(context.effort);
            let transports = transports.iter().copied();
            transports.filter(|_| has_memory).collect::<Vec<_>>()
        };
        let mut contestants = Vec::new();
        let raw = [Transport::Tcp, Transport::Unix, Transport::Futex];
        let raw_memory = in_memory(&[Transport::Spin, Transport::Memcpy]);
        for transport in raw.into_iter().chain(raw_memory).filter(reachable) {
            contestants.push(Contestant::raw(context, transport)?);
        }
        let by_ours = in_memory(&BY_OURS).into_iter();
        let by_ours = by_ours.chain(in_memory(&[Transport::ShmSpin]));
        for transport in BY_ORBS.into_iter().chain(by_ours).filter(reachable) {
            contestants.push(Contestant::rtorb(context, transport)?);
        }
        #[cfg(feature = "iceoryx2")]
        for transport in in_memory(&BY_ICEORYX2).into_iter().filter(reachable) {
            contestants.push(Contestant::iceoryx2(context, transport)?);
        }
        if is_near && has_memory(context.effort) {
            contestants.push(Contestant::collocated(launcher)?);
        }
        for model in [
            PriorityModel::ServerDeclared,
            PriorityModel::ClientPropagated,
        ] {
            contestants.push(Contestant::rtorb_lane(context, model)?);
        }
        let ours = contestants.iter().find(|found| found.orb == Orb::Rtorb);
        let reference = ours.and_then(|ours| ours.reference());
        let mut line_up = Self {
            key_bytes: reference.and_then(key_bytes).unwrap_or(KEY_BYTES_USUAL),
            contestants,
            absent: Vec::new(),
        };
        let has_memory = has_memory(context.effort);
        let unreachable = Transport::ALL.iter().filter(|transport| {
            let is_planned = has_memory || !transport.needs_two_cpus();
            is_planned && !reachable(transport)
        });
        let why = if is_near { ONE_CPU } else { ONLY_TCP };
        line_up.absent.extend(unreachable.map(|transport| {
            let of = labels([("transport", transport.label().into())]);
            (of, why.to_owned())
        }));
        if !cfg!(feature = "iceoryx2") {
            line_up.lack(Orb::Iceoryx2, "this program was built without it.");
        }
        if !is_near {
            line_up.lack(Orb::OmniOrb, omniorb::NOT_ON_AN_AGENT);
        } else if context.effort.seeds().is_some() {
            line_up.lack(Orb::OmniOrb, "it is not in an emulated machine.");
        } else {
            line_up.start_peer(context)?;
        }
        Ok(line_up)
    }

    /// Notes that there is no such peer here.
    fn lack(&mut self, orb: Orb, why: &str) {
        let name = orb.label();
        let of = labels([("orb", name.into())]);
        self.absent
            .push((of, format!("{name} was left out: {why}")));
    }

    /// Starts the peer, over each transport that it has here.
    fn start_peer(&mut self, context: &Context) -> Result<(), LabError> {
        let launcher = &context.launcher;
        let peer = match OmniOrb::find(&launcher.interrupt) {
            Ok(Some(peer)) => peer,
            Ok(None) => {
                self.lack(Orb::OmniOrb, omniorb::HOW_TO_INSTALL);
                return Ok(());
            }
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => {
                self.lack(Orb::OmniOrb, &error.to_string());
                return Ok(());
            }
        };
        for transport in BY_ORBS {
            let contestant = Contestant::omniorb(launcher, &peer, transport, context.folder())?;
            self.contestants.push(contestant);
        }
        Ok(())
    }
}

const ONE_CPU: &str = "Spinning was left out: it needs two CPUs, and the process may use one only.";
const ONLY_TCP: &str = "UNIX sockets and shared memory were left out: the servers ran on the agent's host, and these do not leave one.";
const KEY_BYTES_USUAL: usize = 24;
