//! A service that this program supervises as systemd does: it waits until the service is ready, hears that it lives, and ends it.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{self, Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use xshell::{Shell, cmd};

/// A service that runs. It is killed when this is dropped.
pub(crate) struct Supervised {
    child: Child,
    socket: UnixDatagram,
}

impl Supervised {
    /// Starts the service, and waits until it has said that it is ready and then, twice, that it lives.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        let name = format!("rtorb-xtask-{}", process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_read_timeout(Some(LONGEST))?;
        command.env("NOTIFY_SOCKET", format!("@{name}"));
        command.env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        let mut service = Self { child, socket };
        for message in ["READY=1", "WATCHDOG=1", "WATCHDOG=1"] {
            service.wait_for(message)?;
        }
        Ok(service)
    }

    /// Ends the service by SIGTERM: it says that it ends, and its status is 0.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status()?;
        ensure!(sent.success(), "the service is gone");
        self.wait_for("STOPPING=1")?;
        let end = Instant::now() + LONGEST;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the service has ended with {status}");
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the service does not end by SIGTERM");
    }

    fn wait_for(&mut self, message: &str) -> anyhow::Result<()> {
        let mut buffer = [0; 256];
        loop {
            let received = self.socket.recv(&mut buffer);
            let length = received.with_context(|| format!("the service does not say {message}"))?;
            if buffer[..length] == *message.as_bytes() {
                return Ok(());
            }
        }
    }
}

/// True if this host lets root raise the limit of priorities, as systemd and container engines do.
pub(crate) fn permits_real_time(sh: &Shell) -> bool {
    let trial = cmd!(sh, "prlimit --rtprio=99 chrt --fifo 1 true");
    let is_permitted = trial.quiet().ignore_stderr().run().is_ok();
    if !is_permitted {
        println!(
            "skipped: no lanes are served, because this host permits no limit of real-time priorities (prlimit --rtprio=99)"
        );
    }
    is_permitted
}

impl Drop for Supervised {
    fn drop(&mut self) {
        // Whether it has ended already makes no difference.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The service says that it lives in each third of it.
const WATCHDOG: Duration = Duration::from_millis(600);
const LONGEST: Duration = Duration::from_secs(60);
/// The options of a command whose calls succeed however long a busy host lets the service wait for a CPU.
pub(crate) const PATIENT: [&str; 2] = ["--timeout", "60s"];
