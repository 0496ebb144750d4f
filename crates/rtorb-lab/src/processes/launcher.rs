//! Starts processes, here or on an agent's host, and places them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rtorb_host::placement::Placement;

use super::process::{Process, Running};
use crate::error::LabError;
use crate::processes::agent::Agent;
use crate::processes::interrupt::Interrupt;

/// Starts measured processes.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program that has the hidden subcommand `child` ([`crate::roles`]): this one, except in tests.
    pub executable: PathBuf,
    /// Where the measured processes run.
    pub placement: Placement,
    /// Whether somebody wants the run to end.
    pub interrupt: Interrupt,
    /// The hosts that run the servers, in the order of their names; with none, servers run here.
    pub agents: Vec<Agent>,
}

impl Launcher {
    /// The same, whose processes run at that place.
    #[must_use]
    pub fn placed(&self, placement: Placement) -> Self {
        Self {
            placement,
            ..self.clone()
        }
    }

    /// Starts a child in one of the [`crate::roles`], and waits until it is ready.
    ///
    /// # Errors
    /// That the program could not be started, or what it said instead.
    pub fn start(&self, name: &str, role: &[impl AsRef<str>]) -> Result<Process, LabError> {
        self.spawn(name, role)?.ready()
    }

    /// Starts a server in one of the roles that listen over TCP, and waits until it is ready. It runs on the first agent, or here if there
    /// is none. Its role must name [`Self::server_socket`].
    ///
    /// # Errors
    /// As [`Self::start`], or that there is no agent any more.
    pub fn start_server(&self, name: &str, role: &[impl AsRef<str>]) -> Result<Process, LabError> {
        self.spawn_server(name, role)?.ready()
    }

    /// Starts a child, with standard input and output connected to us: a tool, which never says that it is ready, or one whose
    /// [`Process::ready`] is waited for later.
    ///
    /// # Errors
    /// That the program could not be started.
    pub fn spawn(&self, name: &str, role: &[impl AsRef<str>]) -> Result<Process, LabError> {
        let mut child = child_command(&self.executable, self.placement)
            .args(role.iter().map(AsRef::as_ref))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| LabError::process(name, format!("cannot be started: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked to be pipes");
        };
        let ends = [OwnedFd::from(input), OwnedFd::from(output)];
        Ok(Process::new(
            self,
            name.to_owned(),
            Running::Here(child),
            ends,
        ))
    }

    /// As [`Self::spawn`], on the first agent, or here if there is none.
    ///
    /// # Errors
    /// As [`Self::spawn`], or that there is no agent any more.
    pub fn spawn_server(&self, name: &str, role: &[impl AsRef<str>]) -> Result<Process, LabError> {
        let Some(agent) = self.agent() else {
            return self.spawn(name, role);
        };
        let name = format!("{name} on {}", agent.address());
        let (key, socket) = agent.start(role)?;
        let again = || {
            let again = socket.try_clone();
            again.map_err(|error| LabError::process(&name, error.to_string()))
        };
        let (input, connection) = (again()?, again()?);
        let running = Running::There {
            agent: agent.clone(),
            key,
            connection,
        };
        Ok(Process::new(self, name, running, [input, socket]))
    }

    /// The first agent.
    #[must_use]
    pub fn agent(&self) -> Option<&Agent> {
        self.agents.first()
    }

    /// The same for servers of the host with this number, from 0 on. The last agent takes the servers of hosts that nobody named.
    #[must_use]
    pub fn at_host(&self, number: usize) -> Self {
        let agent = self.agents.get(number).or(self.agents.last());
        Self {
            agents: agent.cloned().into_iter().collect(),
            ..self.clone()
        }
    }

    /// Where servers listen: a free port of the agent's host, or of the loopback interface here.
    #[must_use]
    pub fn server_socket(&self) -> SocketAddr {
        let address = self
            .agent()
            .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Agent::server_address);
        SocketAddr::new(address, 0)
    }

    /// The same as an ORB is told it.
    #[must_use]
    pub fn server_endpoint(&self) -> String {
        format!("iiop://{}", self.server_socket())
    }

    /// How servers are placed.
    #[must_use]
    pub fn server_placement(&self) -> Placement {
        self.agent().map_or(self.placement, Agent::placement)
    }

    /// Whether clients and servers, on all hosts, are given SCHED_FIFO.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        let of_agents = self.agents.iter().map(Agent::placement);
        let mut all = of_agents.chain([self.placement]);
        all.all(|placement| placement.fifo.is_some())
    }

    /// Whether the run must end: somebody wants it, or an agent is lost.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.interrupt.requested() || self.agent_lost().is_some()
    }

    /// The first agent that is lost, and why.
    #[must_use]
    pub fn agent_lost(&self) -> Option<(&Agent, String)> {
        let mut agents = self.agents.iter();
        agents.find_map(|agent| Some((agent, agent.lost()?)))
    }
}

/// The program in the hidden subcommand `child`, as a child of the calling thread; the role is still to be said.
#[must_use]
pub fn child_command(executable: &Path, placement: Placement) -> Command {
    let mut command = Command::new(executable);
    command
        .arg("child")
        .args(["--parent", &std::process::id().to_string()]);
    if let Some(cpu) = placement.cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    if let Some(priority) = placement.fifo {
        command.args(["--fifo", &priority.to_string()]);
    }
    command.process_group(0);
    command
}
