//! Who takes part.

use rtorb::rt::PriorityModel;

use super::has_memory;
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::{Contestant, Orb, Transport, key_bytes};
use crate::error::LabError;
use crate::experiment::Context;

/// Everybody who can take part.
#[derive(Debug)]
pub struct LineUp {
    pub(super) contestants: Vec<Contestant>,
    /// Who cannot, and why.
    pub(super) left_out: Vec<String>,
    /// The length of our object key: the raw messages have the size of ours.
    pub(super) key_bytes: usize,
}

impl LineUp {
    /// Starts everybody who can take part.
    pub(super) fn start(context: &Context) -> Result<Self, LabError> {
        let (launcher, folder) = (&context.launcher, context.folder());
        // On another host there is neither memory nor a file system to share.
        let is_near = launcher.agent().is_none();
        let reachable = move |transport: &Transport| is_near || *transport == Transport::Tcp;
        let mut contestants = Vec::new();
        let raw = [Transport::Tcp, Transport::Unix, Transport::Futex];
        for transport in raw.into_iter().filter(reachable) {
            contestants.push(Contestant::raw(launcher, transport, folder)?);
        }
        let by_ours = BY_OURS.into_iter().filter(|_| has_memory(context.effort));
        let ours = BY_ORBS.into_iter().chain(by_ours);
        for transport in ours.filter(reachable) {
            contestants.push(Contestant::rtorb(launcher, transport, folder)?);
        }
        if is_near && has_memory(context.effort) {
            contestants.push(Contestant::collocated(launcher)?);
        }
        for model in [
            PriorityModel::ServerDeclared,
            PriorityModel::ClientPropagated,
        ] {
            contestants.push(Contestant::rtorb_lane(launcher, model)?);
        }
        let ours = contestants.iter().find(|found| found.orb == Orb::Rtorb);
        let reference = ours.and_then(|ours| ours.reference.as_deref());
        let mut line_up = Self {
            key_bytes: reference.and_then(key_bytes).unwrap_or(KEY_BYTES_USUAL),
            contestants,
            left_out: Vec::new(),
        };
        if !is_near {
            let peer = format!("omniORB was left out: {}", omniorb::NOT_ON_AN_AGENT);
            line_up.left_out = vec![ONLY_TCP.to_owned(), peer];
        } else if context.effort.seeds().is_none() {
            line_up.start_peer(context)?;
        }
        Ok(line_up)
    }

    /// Starts the peer, over each transport that it has here.
    fn start_peer(&mut self, context: &Context) -> Result<(), LabError> {
        let launcher = &context.launcher;
        let peer = match OmniOrb::find(&launcher.interrupt) {
            Ok(Some(peer)) => peer,
            Ok(None) => {
                let why = omniorb::HOW_TO_INSTALL;
                self.left_out.push(format!("omniORB was left out: {why}."));
                return Ok(());
            }
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => {
                self.left_out.push(format!("omniORB was left out: {error}"));
                return Ok(());
            }
        };
        for transport in BY_ORBS {
            match Contestant::omniorb(launcher, &peer, transport, context.folder()) {
                Ok(contestant) => self.contestants.push(contestant),
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => self.left_out.push(format!(
                    "omniORB over {} was left out: {error}",
                    transport.label()
                )),
            }
        }
        Ok(())
    }
}

const BY_ORBS: [Transport; 2] = [Transport::Tcp, Transport::Unix];
/// The transports that only our ORB has.
const BY_OURS: [Transport; 2] = [Transport::Shm, Transport::ShmYield];
const ONLY_TCP: &str = "UNIX sockets and shared memory were left out: the servers ran on the agent's host, and these do not leave one.";
const KEY_BYTES_USUAL: usize = 24;
