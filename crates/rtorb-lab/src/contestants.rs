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
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::contestants::burst::{Burst, Samples, Verb};
use crate::contestants::operations::MessageBytes;
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::ping_pong::futex;
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::{Launcher, Process};
use crate::study::Cell;

pub mod burst;
mod clients;
pub mod cubit;
pub mod demux;
pub mod event_channel;
#[cfg(feature = "iceoryx2")]
pub(crate) mod iceoryx2;
pub mod operations;
pub mod packets;
pub mod peers;
pub mod ping_pong;
pub mod rates;
pub(crate) mod real_time;
mod releases;
pub mod rt_policies;
pub mod server;
pub mod square_wave;
pub mod whitebox;

/// Far longer than any call takes, far shorter than the laboratory waits for a burst.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The builder of an ORB that only calls: nothing waits longer than `timeout`.
#[must_use]
pub fn client_orb_builder(timeout: Duration) -> rtorb::OrbBuilder {
    rtorb::Orb::builder()
        .connect_timeout(timeout)
        .round_trip_timeout(Some(timeout))
}

/// Which software answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Orb {
    /// Ours.
    Rtorb,
    /// The peer.
    OmniOrb,
    /// iceoryx2, where it is built in.
    Iceoryx2,
    /// None: the octets alone.
    Raw,
}

impl Orb {
    /// The value of the label `orb`.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.into()
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
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, EnumString, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
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
    /// The same, whose threads spin before they sleep. Client and server have a CPU each.
    ShmSpin,
    /// Shared memory without an ORB, whose sides spin. Client and server have a CPU each.
    Spin,
    /// Copies in one process: nobody answers.
    Memcpy,
    /// None: an ORB calls its own object on the calling thread.
    Collocated,
}

impl Transport {
    /// Every transport of a contestant.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Those over which a server of ours is measured with each of its experiments.
    pub const OF_ORB: [Self; 3] = [Self::Tcp, Self::Unix, Self::Shm];

    /// The transport of ours in a cell: TCP if the study does not vary it.
    pub(crate) fn of(cell: &Cell<'_>) -> Self {
        let level: Option<Self> = cell.parsed("transport");
        let of_orb = level.filter(|transport| Self::OF_ORB.contains(transport));
        of_orb.unwrap_or(Self::Tcp)
    }

    /// The value of the label `transport`.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.into()
    }

    /// Whether client and server have a CPU each.
    #[must_use]
    pub fn needs_two_cpus(self) -> bool {
        matches!(self, Self::ShmSpin | Self::Spin)
    }

    /// Where a server of ours listens by a file in this folder; `None` if the transport is TCP. The file has the name of the
    /// transport too: servers with one name over several transports run side by side.
    #[must_use]
    pub fn endpoint_in(self, folder: &Path, name: &str) -> Option<String> {
        let scheme = match self {
            Self::Tcp | Self::Futex | Self::Spin | Self::Memcpy | Self::Collocated => {
                return None;
            }
            Self::Unix => "uiop",
            Self::Shm | Self::ShmYield | Self::ShmSpin => "shmiop",
        };
        let socket = folder.join(format!("{name}-{}.socket", self.label()));
        Some(format!("{scheme}://{}", socket.display()))
    }

    /// How the threads of our ORB wait, if this is shared memory.
    fn shared_memory_wait(self) -> Option<SharedMemoryWait> {
        match self {
            Self::Tcp | Self::Unix | Self::Futex | Self::Spin | Self::Memcpy | Self::Collocated => {
                None
            }
            Self::Shm => Some(SharedMemoryWait::Futex),
            Self::ShmYield => Some(SharedMemoryWait::Yield),
            Self::ShmSpin => Some(SharedMemoryWait::Spin),
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
    pub fn raw(context: &Context, transport: Transport) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let name = format!("raw {}", transport.label());
        let place = raw_place(transport, context.folder());
        let listen = match transport {
            Transport::Tcp => launcher.server_socket().to_string(),
            _ => place.display().to_string(),
        };
        let role = ["raw-server", transport.label(), &listen];
        let there = server_launcher(context, transport);
        let server = start_server(&there, transport, &format!("{name} server"), &role)?;
        let role = ["raw-client", transport.label(), server.text()];
        let client = launcher.start(&format!("{name} client"), &role)?;
        // Both have it open: its name is no longer needed, and so nothing is left behind however we end.
        let _ = std::fs::remove_file(&place);
        let which = (Architecture::Plain, transport);
        Ok(Self::of(Orb::Raw, which, client, Some(server)))
    }

    /// Starts our server and client.
    ///
    /// # Errors
    /// That its processes do not start.
    pub fn rtorb(context: &Context, transport: Transport) -> Result<Self, LabError> {
        let name = format!("rtorb {}", transport.label());
        let endpoint = transport.endpoint_in(context.folder(), "rtorb");
        let endpoint = endpoint.unwrap_or_else(|| context.launcher.server_endpoint());
        let wait = transport.shared_memory_wait().map(|wait| wait.to_string());
        let mut role = vec!["cubit-server", &endpoint];
        role.extend(wait.as_deref());
        let which = (Architecture::Plain, transport);
        Self::ours(context, &name, which, &role)
    }

    /// Starts our ORB, which calls its own object.
    ///
    /// # Errors
    /// That its process does not start.
    pub fn collocated(launcher: &Launcher) -> Result<Self, LabError> {
        let client = launcher.start("rtorb collocated", &["cubit-collocated"])?;
        let which = (Architecture::Plain, Transport::Collocated);
        Ok(Self::of(Orb::Rtorb, which, client, None))
    }

    /// Starts our server with one lane, over TCP, and a client. The lane has the priority that every measured process has.
    ///
    /// # Errors
    /// That its processes do not start.
    pub fn rtorb_lane(context: &Context, model: PriorityModel) -> Result<Self, LabError> {
        let launcher = &context.launcher;
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
        Self::ours(context, &name, which, &role)
    }

    fn ours(
        context: &Context,
        name: &str,
        (architecture, transport): (Architecture, Transport),
        server_role: &[&str],
    ) -> Result<Self, LabError> {
        let there = server_launcher(context, transport);
        let server = start_server(&there, transport, &format!("{name} server"), server_role)?;
        let wait = transport.shared_memory_wait().map(|wait| wait.to_string());
        let mut client_role = vec!["cubit-client", server.text()];
        client_role.extend(wait.as_deref());
        let client = context
            .launcher
            .start(&format!("{name} client"), &client_role)?;
        let which = (architecture, transport);
        Ok(Self::of(Orb::Rtorb, which, client, Some(server)))
    }

    fn of(
        orb: Orb,
        (architecture, transport): (Architecture, Transport),
        client: Process,
        server: Option<Process>,
    ) -> Self {
        Self {
            orb,
            architecture,
            transport,
            client,
            server,
        }
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
        let mut role = vec!["exec", &program, "server", "-ORBendPoint", &endpoint];
        role.extend(omniorb::SERVER_OPTIONS);
        let server = launcher.start(&format!("{name} server"), &role)?;
        let mut role = vec!["exec", &program, "client", server.text()];
        role.extend(omniorb::CLIENT_OPTIONS);
        let client = launcher.start(&format!("{name} client"), &role)?;
        let which = (Architecture::Plain, transport);
        Ok(Self::of(Orb::OmniOrb, which, client, Some(server)))
    }

    /// Starts iceoryx2's server and client. They wait for events ([`Transport::Shm`]) or poll on two CPUs ([`Transport::ShmSpin`]).
    ///
    /// # Errors
    /// That its processes do not start.
    #[cfg(feature = "iceoryx2")]
    pub fn iceoryx2(context: &Context, transport: Transport) -> Result<Self, LabError> {
        let wait = if transport.needs_two_cpus() {
            iceoryx2::POLLED
        } else {
            iceoryx2::EVENTS
        };
        let unique = context
            .folder()
            .join(format!("{}-{wait}", std::process::id()));
        let folder = unique.display().to_string();
        let there = server_launcher(context, transport);
        let name = format!("iceoryx2 {wait}");
        let role = ["iceoryx2-server", &folder, wait];
        let server = there.start(&format!("{name} server"), &role)?;
        let role = ["iceoryx2-client", &folder, wait];
        let client = context.launcher.start(&format!("{name} client"), &role)?;
        let which = (Architecture::Plain, transport);
        Ok(Self::of(Orb::Iceoryx2, which, client, Some(server)))
    }

    /// The reference of the server's object, if it has one.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        let server = self.server.as_ref()?;
        matches!(self.orb, Orb::Rtorb | Orb::OmniOrb).then(|| server.text())
    }

    /// Whether a call with these messages is possible here.
    #[must_use]
    pub fn carries(&self, messages: MessageBytes) -> bool {
        let fits =
            messages.request.max(messages.reply) <= futex::MESSAGE_BYTES_MAX && messages.reply > 0;
        !matches!(self.transport, Transport::Futex | Transport::Spin) || fits
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

/// Starts servers where those of a transport run: on the measured CPU, or on another one if client and server have a CPU each.
fn server_launcher(context: &Context, transport: Transport) -> Launcher {
    let mut launcher = context.launcher.clone();
    if let Some(cpu) = context.other_cpu().filter(|_| transport.needs_two_cpus()) {
        launcher.placement.cpu = Some(cpu);
    }
    launcher
}

/// Over TCP, servers run where the launcher has them run; what shares memory or a file system runs here.
fn start_server(
    launcher: &Launcher,
    transport: Transport,
    name: &str,
    role: &[impl AsRef<str>],
) -> Result<Process, LabError> {
    match transport {
        Transport::Tcp => launcher.start_server(name, role),
        _ => launcher.start(name, role),
    }
}

/// Shared memory belongs where no disk is behind it.
fn raw_place(transport: Transport, folder: &Path) -> PathBuf {
    match transport {
        Transport::Futex | Transport::Spin if Path::new("/dev/shm").is_dir() => {
            let name = folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            PathBuf::from(format!("/dev/shm/{name}.{}", transport.label()))
        }
        _ => folder.join(format!("raw-{}", transport.label())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_one_name_have_a_socket_for_each_transport() {
        let endpoint = |transport: Transport| transport.endpoint_in(Path::new("/run"), "server");
        assert_eq!(endpoint(Transport::Tcp), None);
        let [unix, memory] = [Transport::Unix, Transport::Shm].map(endpoint);
        assert_eq!(unix.as_deref(), Some("uiop:///run/server-unix.socket"));
        assert_eq!(memory.as_deref(), Some("shmiop:///run/server-shm.socket"));
    }
}
