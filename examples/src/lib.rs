//! What the examples that measure real-time threads share.
#![forbid(unsafe_code)]
use anyhow::{Context, bail};
use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::thread::SchedPolicy;
use rtorb::{
    Collocation, DispatchStrategy, Orb, OrbBuilder, OrbError, Poa, PoaPolicies, SystemException,
};
use rtorb_os::clock::{monotonic_ns, thread_cpu_ns};
use rtorb_os::sched::allowed;
use rtorb_os::timer::PeriodicTimer;
use std::thread::{self, JoinHandle};

/// Keeps the CPU for so much time of the calling thread.
pub fn compute(ns: u64) {
    let end_ns = thread_cpu_ns() + ns;
    while thread_cpu_ns() < end_ns {}
}

/// Gives the calls of this thread, and the thread itself, that priority.
///
/// # Errors
/// If the host refuses it.
pub fn take_priority(client: &Orb, priority: i16) -> anyhow::Result<()> {
    let current = client.rt_current();
    Ok(current.set_the_priority(Priority::new(priority)?)?)
}

/// Makes an adapter whose objects are served by the lane with that priority.
///
/// # Errors
/// If the server has no such lane.
pub fn adapter(server: &Orb, priority: i16) -> anyhow::Result<Poa> {
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: Priority::new(priority)?,
    });
    let root = server.root_poa()?;
    Ok(root.create_poa(&format!("Priority{priority}"), policies)?)
}

/// A lane with one thread of that priority.
///
/// # Errors
/// If the priority is negative.
pub fn lane(priority: i16) -> anyhow::Result<ThreadpoolLane> {
    Ok(ThreadpoolLane {
        lane_priority: Priority::new(priority)?,
        ..ThreadpoolLane::default()
    })
}

/// A server with lanes that clients in its own process call as others do. A UNIX socket needs no kernel thread, which threads with a
/// priority would delay.
pub fn server(name: &str) -> OrbBuilder {
    let socket = std::env::temp_dir().join(format!("rtorb-{name}-{}", std::process::id()));
    Orb::builder()
        .listen(&format!("uiop://{}", socket.display()))
        .dispatch(DispatchStrategy::Lanes)
        .collocation(Collocation::Transport)
}

/// A server that answers on a thread of its own.
pub struct Serving {
    server: Orb,
    thread: JoinHandle<Result<(), OrbError>>,
}

impl Serving {
    /// Starts the thread.
    pub fn start(server: &Orb) -> Self {
        let serving = server.clone();
        Self {
            server: server.clone(),
            thread: thread::spawn(move || serving.run()),
        }
    }

    /// Ends the server, and waits for that.
    ///
    /// # Errors
    /// If it could not answer.
    pub fn end(self) -> anyhow::Result<()> {
        self.server.shutdown();
        Ok(self.thread.join().expect("no panic")?)
    }
}

/// Refuses a host on which threads cannot have that priority.
///
/// # Errors
/// What the host says.
pub fn require_real_time(priority: i16) -> anyhow::Result<()> {
    allowed(SchedPolicy::Fifo(priority.try_into()?)).map_err(|refused| {
        anyhow::anyhow!(
            "this program compares real-time threads, which this host refuses: {refused}"
        )
    })
}

/// What was seen of a call in each period.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses {
    /// The periods that have begun.
    pub periods: u64,
    /// The periods in which the call was not done.
    pub missed: u64,
    /// From the beginning of a period until the call was done.
    pub longest_ns: u64,
}

impl Responses {
    /// Calls once in each of so many periods.
    ///
    /// # Errors
    /// If a call fails.
    pub fn of(
        mut timer: PeriodicTimer,
        period_ns: u64,
        periods: u64,
        call: impl Fn() -> Result<(), SystemException>,
    ) -> anyhow::Result<Self> {
        let mut seen = Self::default();
        while seen.periods < periods {
            let release = timer.wait();
            call()?;
            let response_ns = monotonic_ns().saturating_sub(release.scheduled_ns);
            seen.periods += 1 + release.missed;
            seen.missed += release.missed + u64::from(response_ns > period_ns);
            let longest_ns = response_ns + release.missed * period_ns;
            seen.longest_ns = seen.longest_ns.max(longest_ns);
        }
        Ok(seen)
    }
}

/// Reads `[--json] [OPTION N]` from the command line: whether the result is JSON, and the number, `otherwise` if there is none.
///
/// # Errors
/// If there is anything else, with the usage of `program`.
pub fn arguments(program: &str, option: &str, otherwise: u64) -> anyhow::Result<(bool, u64)> {
    let (mut is_json, mut number) = (false, otherwise);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--json" {
            is_json = true;
        } else if argument == option {
            let value = arguments.next();
            let value = value.with_context(|| format!("{option} needs a number"))?;
            let parsed = value.parse();
            number = parsed.with_context(|| format!("{option} needs a number"))?;
        } else {
            bail!("usage: {program} [--json] [{option} N]");
        }
    }
    Ok((is_json, number))
}
