//! An etcd of one member on a free port, with its data in memory where the host has that.

use rtorb_etcd::EtcdStore;
use rtorb_services::naming::shared_store::SharedStore;
use rtorb_tests::running::until;
use rtorb_tests::server_process::lasting_port;
use rtorb_tests::skip;
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A running etcd. It ends with the test.
pub(crate) struct Member {
    data: tempfile::TempDir,
    client_port: u16,
    peer_port: u16,
    child: Child,
}

impl Member {
    /// `None`, with the reason said, if the host has no etcd.
    pub(crate) fn start() -> Option<Self> {
        let version = Command::new("etcd").arg("--version").output();
        if version.is_err() {
            skip("etcd is not installed: install Debian's etcd-server");
            return None;
        }
        let data = data_folder();
        let (client_port, peer_port) = (lasting_port(), lasting_port());
        let child = run(&data, client_port, peer_port);
        let mut member = Self {
            data,
            client_port,
            peer_port,
            child,
        };
        member.wait_until_ready();
        Some(member)
    }

    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("etcd://127.0.0.1:{}/{prefix}", self.client_port)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    /// By SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts it again, with its data and at its ports.
    pub(crate) fn start_again(&mut self) {
        self.child = run(&self.data, self.client_port, self.peer_port);
    }

    /// A copy of its data. It does not run.
    pub(crate) fn copy_data(&self) -> tempfile::TempDir {
        let copy = data_folder();
        let from = self.data.path().join(".");
        let copied = Command::new("cp")
            .arg("-a")
            .args([&*from, copy.path()])
            .status();
        assert!(copied.expect("a command `cp`").success());
        copy
    }

    /// Gives it other data. It does not run.
    pub(crate) fn replace_data(&mut self, data: tempfile::TempDir) {
        self.data = data;
    }

    /// Sets the port for clients that it has when it is started again, and returns the one before.
    pub(crate) fn set_client_port(&mut self, port: u16) -> u16 {
        core::mem::replace(&mut self.client_port, port)
    }

    pub(crate) fn wait_until_ready(&mut self) {
        let store = EtcdStore::open(&self.url("ready")).expect("a store");
        until("etcd is ready", || {
            if let Some(status) = self.child.try_wait().expect("asked") {
                let mut said = String::new();
                let output = self.child.stderr.take();
                let _ = output.map(|mut output| output.read_to_string(&mut said));
                panic!("etcd has ended: {status}: {said}");
            }
            store.load().ok()
        });
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Ended already, now and then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the folder that `RTORB_ETCD_DATA` names, or in memory where the host has that.
pub(crate) fn data_folder() -> tempfile::TempDir {
    let folder = match std::env::var_os("RTORB_ETCD_DATA") {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()),
    };
    folder.expect("a directory")
}

fn run(data: &tempfile::TempDir, client_port: u16, peer_port: u16) -> Child {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    Command::new("etcd")
        .args(["--name", "names", "--log-level", "fatal", "--data-dir"])
        .arg(data.path())
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("names={peer}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("etcd")
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || is_so().then_some(()));
}
