//! A servant that tells which priority it was called with and what the kernel has for its thread, and servers for it.

use std::thread::{self, JoinHandle};

use rtorb::rt::{
    LanedThreadpool, Policy, Priority, PriorityBand, PriorityModel, RtOrb, ThreadpoolId,
    ThreadpoolLane,
};
use rtorb::{Collocation, Orb, OrbBuilder, Poa, PoaError, PoaPolicies, SystemException};
use rtorb_os::sched::{SchedPolicy, allowed, current_policy};

use crate::skip;
use crate::stubs::{Relay, RelayServant, Seen};

/// Tells what it saw, and calls the next one.
#[derive(Debug)]
pub struct Relayer {
    /// What it calls itself.
    pub name: String,
    /// Whose RTCurrent it looks at, and what `shutdown` ends.
    pub orb: Orb,
    /// Whom it calls.
    pub next: Option<Relay>,
}

impl RelayServant for Relayer {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let mut way = vec![seen(&self.name, &self.orb)];
        if let Some(next) = &self.next {
            way.extend(next.pass_on()?);
        }
        // The nested call must have changed nothing here.
        let after = seen(&self.name, &self.orb);
        if after != way[0] {
            way.push(after);
        }
        Ok(way)
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}

/// What the calling thread is at the moment.
#[must_use]
pub fn seen(who: &str, orb: &Orb) -> Seen {
    let corba = orb.rt_current().the_priority();
    Seen {
        who: who.to_owned(),
        corba: corba.map_or(-1, Priority::get),
        kernel: current_policy().priority().into(),
    }
}

/// True if threads of all priorities can be made here; otherwise it says that the test is skipped, and why.
#[must_use]
pub fn has_priorities() -> bool {
    match allowed(SchedPolicy::Fifo(99)) {
        Ok(()) => true,
        Err(refused) => {
            skip(&refused.to_string());
            false
        }
    }
}

/// An ORB that serves until it is dropped.
#[derive(Debug)]
pub struct Served {
    /// The ORB.
    pub orb: Orb,
    /// Its root adapter.
    pub root: Poa,
    running: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves as `builder` says; where it names no endpoint, that is a free port of loopback. Calls of its own objects go by a
    /// transport.
    ///
    /// # Panics
    ///
    /// It cannot be built.
    #[must_use]
    pub fn by(builder: OrbBuilder) -> Self {
        Self::built_by(builder.collocation(Collocation::Transport))
    }

    /// Serves as `builder` says, and calls its own objects on the calling thread.
    ///
    /// # Panics
    ///
    /// It cannot be built.
    #[must_use]
    pub fn collocated(builder: OrbBuilder) -> Self {
        Self::built_by(builder.collocation(Collocation::Direct))
    }

    fn built_by(builder: OrbBuilder) -> Self {
        let orb = builder.build().expect("an ORB");
        let root = orb.root_poa().expect("a port");
        let server = orb.clone();
        let running = thread::spawn(move || server.run().expect("the ORB runs"));
        Self {
            orb,
            root,
            running: Some(running),
        }
    }

    /// Makes a transient adapter with these policies.
    ///
    /// # Errors
    ///
    /// They do not go together.
    pub fn adapter(&self, name: &str, policies: &[Policy]) -> Result<Poa, PoaError> {
        let all = policies
            .iter()
            .cloned()
            .fold(PoaPolicies::default(), PoaPolicies::with);
        self.root.create_poa(name, all)
    }

    /// A servant that calls nobody.
    #[must_use]
    pub fn relayer(&self, name: &str) -> Relayer {
        Relayer {
            name: name.to_owned(),
            orb: self.orb.clone(),
            next: None,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

/// CORBA priority and the kernel's.
pub type Pair = (i16, i16);

/// What every servant on the way saw that a thread of that priority has called; `None` sets no priority.
///
/// # Errors
///
/// The call's.
///
/// # Panics
///
/// The client's ORB cannot be built.
pub fn way(
    builder: OrbBuilder,
    relay: &Relay,
    of: Option<i16>,
) -> Result<Vec<Pair>, SystemException> {
    let text = relay.as_object().to_string();
    // A priority stays with its thread.
    let called = thread::spawn(move || {
        let orb = builder.build().expect("an ORB");
        if let Some(number) = of {
            let current = orb.rt_current();
            current.set_the_priority(priority(number))?;
        }
        let relay = Relay::unchecked_narrow(orb.string_to_object(&text)?);
        relay.pass_on()?;
        let way = relay.pass_on()?;
        Ok(way.iter().map(|seen| (seen.corba, seen.kernel)).collect())
    });
    called.join().expect("no panic")
}

/// A relay in an adapter with these policies.
///
/// # Panics
///
/// They do not go together.
#[must_use]
pub fn relay(served: &Served, name: &str, policies: &[Policy]) -> Relay {
    let poa = served.adapter(name, policies).expect("they go together");
    poa.activate(served.relayer(name)).expect("room")
}

/// The priority of that number.
///
/// # Panics
///
/// It is negative.
#[must_use]
pub fn priority(number: i16) -> Priority {
    Priority::new(number).expect("legal")
}

/// PriorityModelPolicy.
#[must_use]
pub fn model(model: PriorityModel, number: i16) -> Policy {
    Policy::PriorityModel {
        model,
        server_priority: priority(number),
    }
}

/// PriorityBandedConnectionPolicy.
#[must_use]
pub fn bands(bands: &[(i16, i16)]) -> Policy {
    let bands = bands
        .iter()
        .map(|&(low, high)| PriorityBand { low, high })
        .collect();
    Policy::PriorityBandedConnection(bands)
}

/// A lane of one thread.
#[must_use]
pub fn lane(number: i16) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        ..ThreadpoolLane::default()
    }
}

/// A pool of lanes of one thread each; `None` where the host has no real time, and that is said.
///
/// # Panics
///
/// It cannot be made.
#[must_use]
pub fn laned_pool(rt_orb: &RtOrb, lanes: &[i16]) -> Option<ThreadpoolId> {
    if !has_priorities() {
        return None;
    }
    let pool = LanedThreadpool {
        lanes: lanes.iter().copied().map(lane).collect(),
        ..LanedThreadpool::default()
    };
    Some(
        rt_orb
            .create_threadpool_with_lanes(pool)
            .expect("a pool of lanes"),
    )
}

/// Notes the names of the threads that it is called on.
#[derive(Debug, Default)]
pub struct ThreadNames {
    names: std::sync::Mutex<Vec<String>>,
}

impl ThreadNames {
    /// One for each call so far.
    ///
    /// # Panics
    ///
    /// A call panicked.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.names.lock().expect("no call panicked").clone()
    }
}

impl RelayServant for ThreadNames {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let name = thread::current().name().unwrap_or_default().to_owned();
        self.names.lock().expect("no call panicked").push(name);
        Ok(Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}
