//! A server of workers.

use super::worker::{Ledger, Work, Worker};
use crate::world;
use crate::world::processes::{Kill, Process};
use rtorb::{Orb, OrbBuilder, PoaPolicies};
use std::sync::mpsc;

/// A server that runs in a process of its own until it is shut down or killed.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) orb: Orb,
    pub(crate) reference: String,
    process: Process,
}

impl Server {
    /// A server with the same endpoint has the same reference.
    pub(crate) fn start(builder: OrbBuilder, ledger: &Ledger) -> Self {
        let ledger = ledger.clone();
        let (started, starts) = mpsc::channel();
        let process = Process::start(move || {
            let orb = builder.build().expect("the ORB can be built");
            let root = orb.root_poa().expect("the ORB can listen");
            root.manager().activate();
            let poa = root.create_poa("Workers", PoaPolicies::PERSISTENT);
            let poa = poa.expect("it is new");
            let servant = Work {
                ledger,
                orb: orb.clone(),
                levels: 0,
            };
            let worker: Worker = poa
                .activate_with_id("worker", servant)
                .expect("there is room");
            let _ = started.send((orb.clone(), worker.to_string()));
            drop((root, poa, worker));
            let _ = orb.run();
            let _ = orb.destroy();
        });
        let (orb, reference) = starts.recv().expect("the server starts");
        Self {
            orb,
            reference,
            process,
        }
    }

    /// Kills the server or shuts it down, and waits for its end.
    pub(crate) fn end(self, kill: Option<Kill>) {
        if let Some(how) = kill {
            self.process.kill_at(world::now_ns(), how);
            // Its threads have it for ever.
            std::mem::forget(self.orb);
        } else {
            self.orb.shutdown();
            drop(self.orb);
        }
        self.process.wait();
    }
}

/// Opens what a process has once, so that no process has opened it that is killed.
pub(crate) fn open_shared() {
    let orb = Orb::builder().build().expect("the ORB can be built");
    orb.root_poa().expect("the ORB can listen");
    orb.destroy().expect("it is in no servant");
}
