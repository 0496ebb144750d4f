//! Who is measured: an ORB or a raw exchange on a transport, as a server process and a client process that stay alive
//! and warm while the others have their turn.
//!
//! Below: what each of them is, and how it is called.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rtorb::SharedMemoryWait;
use rtorb::rt::PriorityModel;
use rtorb_results::ObtainedScheduling;
use rtorb_wire::Ior;
use rtorb_wire::ior::object_key;

use crate::contestants::burst::{Burst, Samples, Verb};
use crate::contestants::operations::MessageBytes;
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::ping_pong::futex;
use crate::error::LabError;
use crate::processes::{Launcher, Process};

pub mod burst;
mod clients;
pub mod cubit;
pub mod demux;
pub mod event_channel;
pub mod operations;
pub mod packets;
pub mod peers;
pub mod ping_pong;
mod questions;
pub mod rates;
pub(crate) mod real_time;
pub mod rt_policies;
pub mod square_wave;
pub mod whitebox;

/// Far longer than any call takes, far shorter than the laboratory waits for a burst.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Which software answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Orb {
    /// Ours.
    Rtorb,
    /// The peer.
    OmniOrb,
    /// None: the octets alone.
    Raw,
}

impl Orb {
    /// The value of the label `orb`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Rtorb => "rtorb",
            Self::OmniOrb => OMNIORB,
            Self::Raw => "raw",
        }
    }
}

/// How our ORB is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    /// As it is when nothing is said: a thread for each connection, no priorities.
    #[default]
    Plain,
    /// The preset `tao`: one lane of one thread, whose priority the object declares.
    Lane,
    /// The same, and the object takes the priority that the client sends with each request.
    LanePropagated,
}

impl Architecture {
    /// The value of the label `preset`; what is plain has none.
    #[must_use]
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Lane => Some("tao"),
            Self::LanePropagated => Some("tao_propagated"),
        }
    }
}

/// The label of the peer, which stands under it among the presets too.
pub const OMNIORB: &str = "omniorb";

/// How the octets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// IIOP for an ORB.
    Tcp,
    /// A UNIX stream socket.
    Unix,
    /// Shared memory without an ORB: each side sleeps on a futex.
    Futex,
    /// An ORB's shared memory, whose threads sleep on a futex.
    Shm,
    /// The same, whose threads yield the CPU before they sleep.
    ShmYield,
    /// None: an ORB calls its own object on the calling thread.
    Collocated,
}

impl Transport {
    /// The value of the label `transport`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Futex => "futex",
            Self::Shm => "shm",
            Self::ShmYield => "shm_yield",
            Self::Collocated => "collocated",
        }
    }

    /// How the threads of our ORB wait, if this is shared memory.
    fn shared_memory_wait(self) -> Option<SharedMemoryWait> {
        match self {
            Self::Tcp | Self::Unix | Self::Futex | Self::Collocated => None,
            Self::Shm => Some(SharedMemoryWait::Futex),
            Self::ShmYield => Some(SharedMemoryWait::Yield),
        }
    }
}

/// A running server and client.
#[derive(Debug)]
pub struct Contestant {
    /// Which software.
    pub orb: Orb,
    /// How ours is set up; peers and raw exchanges are plain.
    pub architecture: Architecture,
    /// On which transport.
    pub transport: Transport,
    /// The reference of the server's object, when it has one.
    pub reference: Option<String>,
    // In this order: the client is ended before the server that it is connected to.
    client: Process,
    /// None if the client calls its own object.
    server: Option<Process>,
}

impl Contestant {
    /// Starts a raw exchange.
    ///
    /// # Errors
    /// That its processes do not start.
    pub fn raw(launcher: &Launcher, transport: Transport, folder: &Path) -> Result<Self, LabError> {
        let name = format!("raw {}", transport.label());
        let place = raw_place(transport, folder);
        let listen = match transport {
            Transport::Tcp => launcher.server_socket().to_string(),
            _ => place.display().to_string(),
        };
        let role = ["raw-server", transport.label(), &listen];
        let mut server = start_server(launcher, transport, &format!("{name} server"), &role)?;
        let address = server.ready()?;
        let mut client = launcher.start(
            &format!("{name} client"),
            &["raw-client", transport.label(), &address],
        )?;
        client.ready()?;
        // Both have it open: its name is no longer needed, and so nothing is left behind however we end.
        let _ = std::fs::remove_file(&place);
        Ok(Self {
            orb: Orb::Raw,
            architecture: Architecture::Plain,
            transport,
            reference: None,
            client,
            server: Some(server),
        })
    }

    /// Starts our server and client.
    ///
    /// # Errors
    /// That its processes do not start.
    pub fn rtorb(
        launcher: &Launcher,
        transport: Transport,
        folder: &Path,
    ) -> Result<Self, LabError> {
        let name = format!("rtorb {}", transport.label());
        let socket = folder.join(format!("rtorb-{}.socket", transport.label()));
        let wait = transport.shared_memory_wait().map(|wait| wait.to_string());
        let endpoint = match (transport, &wait) {
            (Transport::Tcp, _) => launcher.server_endpoint(),
            (_, None) => format!("uiop://{}", socket.display()),
            (_, Some(_)) => format!("shmiop://{}", socket.display()),
        };
        let mut role = vec!["cubit-server", &endpoint];
        role.extend(wait.as_deref());
        let which = (Architecture::Plain, transport);
        Self::ours(launcher, &name, which, &role)
    }

    /// Starts our ORB, which calls its own object.
    ///
    /// # Errors
    /// That its process does not start.
    pub fn collocated(launcher: &Launcher) -> Result<Self, LabError> {
        let mut client = launcher.start("rtorb collocated", &["cubit-collocated"])?;
        client.ready()?;
        Ok(Self {
            orb: Orb::Rtorb,
            architecture: Architecture::Plain,
            transport: Transport::Collocated,
            reference: None,
            client,
            server: None,
        })
    }

    /// Starts our server with one lane, over TCP, and a client. The lane has the priority that every measured process has.
    ///
    /// # Errors
    /// That its processes do not start.
    pub fn rtorb_lane(launcher: &Launcher, model: PriorityModel) -> Result<Self, LabError> {
        let architecture = match model {
            PriorityModel::ServerDeclared => Architecture::Lane,
            PriorityModel::ClientPropagated => Architecture::LanePropagated,
        };
        let name = format!("rtorb {}", architecture.label().unwrap_or_default());
        let priority = launcher.server_placement().fifo.unwrap_or(0).to_string();
        let role = match model {
            PriorityModel::ServerDeclared => "declared-lane-server",
            PriorityModel::ClientPropagated => "propagated-lane-server",
        };
        let which = (architecture, Transport::Tcp);
        let role = [role, &launcher.server_endpoint(), &priority];
        Self::ours(launcher, &name, which, &role)
    }

    fn ours(
        launcher: &Launcher,
        name: &str,
        (architecture, transport): (Architecture, Transport),
        server_role: &[&str],
    ) -> Result<Self, LabError> {
        let mut server = start_server(launcher, transport, &format!("{name} server"), server_role)?;
        let reference = server.ready()?;
        let wait = transport.shared_memory_wait().map(|wait| wait.to_string());
        let mut client_role = vec!["cubit-client", &reference];
        client_role.extend(wait.as_deref());
        let mut client = launcher.start(&format!("{name} client"), &client_role)?;
        client.ready()?;
        Ok(Self {
            orb: Orb::Rtorb,
            architecture,
            transport,
            reference: Some(reference),
            client,
            server: Some(server),
        })
    }

    /// Starts omniORB's server and client.
    ///
    /// # Errors
    /// That its processes do not start.
    pub fn omniorb(
        launcher: &Launcher,
        peer: &OmniOrb,
        transport: Transport,
        folder: &Path,
    ) -> Result<Self, LabError> {
        let name = format!("omniorb {}", transport.label());
        let program = peer.program.display().to_string();
        let endpoint = match transport {
            Transport::Tcp => "giop:tcp:127.0.0.1:".to_owned(),
            _ => format!("giop:unix:{}", folder.join("omniorb.socket").display()),
        };
        let server_role = ["exec", &program, "server", "-ORBendPoint", &endpoint];
        let server_role: Vec<&str> = server_role
            .into_iter()
            .chain(omniorb::SERVER_OPTIONS)
            .collect();
        let mut server = launcher.start(&format!("{name} server"), &server_role)?;
        let reference = server.ready()?;
        let client_role = ["exec", &program, "client", &reference];
        let client_role: Vec<&str> = client_role
            .into_iter()
            .chain(omniorb::CLIENT_OPTIONS)
            .collect();
        let mut client = launcher.start(&format!("{name} client"), &client_role)?;
        client.ready()?;
        Ok(Self {
            orb: Orb::OmniOrb,
            architecture: Architecture::Plain,
            transport,
            reference: Some(reference),
            client,
            server: Some(server),
        })
    }

    /// Whether a call with these messages is possible here.
    #[must_use]
    pub fn carries(&self, messages: MessageBytes) -> bool {
        let fits =
            messages.request.max(messages.reply) <= futex::MESSAGE_BYTES_MAX && messages.reply > 0;
        self.transport != Transport::Futex || fits
    }

    /// Has the client run a burst.
    ///
    /// # Errors
    /// As [`Burst::ask`].
    pub fn burst(&mut self, burst: &Burst) -> Result<Samples, LabError> {
        // Work and marshalling need no server, but are only known to those who have something to marshal.
        debug_assert!(burst.verb == Verb::Call || self.orb != Orb::Raw);
        burst.ask(&mut self.client)
    }

    /// What the threads of both processes have, read while they wait for work.
    #[must_use]
    pub fn scheduling(&self) -> Vec<ObtainedScheduling> {
        let server = self.server.iter();
        server
            .chain([&self.client])
            .filter_map(Process::scheduling)
            .collect()
    }
}

/// The length of the object key in a stringified reference; `None` when it has no profile that is known here.
#[must_use]
pub fn key_bytes(reference: &str) -> Option<usize> {
    let ior = Ior::parse(reference).ok()?;
    ior.profiles
        .iter()
        .find_map(|profile| object_key(profile.tag, &profile.data).ok())
        .map(<[u8]>::len)
}

impl fmt::Display for Contestant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ", self.orb.label())?;
        if let Some(preset) = self.architecture.label() {
            write!(formatter, "{preset} ")?;
        }
        formatter.write_str(self.transport.label())
    }
}

/// Over TCP, servers run where the launcher has them run; what shares memory or a file system runs here.
fn start_server(
    launcher: &Launcher,
    transport: Transport,
    name: &str,
    role: &[&str],
) -> Result<Process, LabError> {
    match transport {
        Transport::Tcp => launcher.start_server(name, role),
        _ => launcher.start(name, role),
    }
}

/// Shared memory belongs where no disk is behind it.
fn raw_place(transport: Transport, folder: &Path) -> PathBuf {
    match transport {
        Transport::Futex if Path::new("/dev/shm").is_dir() => {
            let name = folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            PathBuf::from(format!("/dev/shm/{name}.words"))
        }
        _ => folder.join(format!("raw-{}", transport.label())),
    }
}
