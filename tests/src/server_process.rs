//! A server in a process of its own, which a test kills: the program of the tests again, with an ignored test that serves.

use crate::passed_sockets::command_with_sockets;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio, exit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

/// A server that ends with the test that started it.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// It stays open, because the test runner reports a test that runs for long.
    output: BufReader<ChildStdout>,
}

impl ServerProcess {
    /// Starts this program with the ignored test `serving` and these variables of the environment.
    ///
    /// # Panics
    ///
    /// The process cannot be started.
    pub fn start(serving: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(this_program());
        // It ends with us, too: then its input does.
        command.stdin(Stdio::piped());
        Self::begin(command, serving, variables)
    }

    /// The same with [one or two listening sockets](command_with_sockets). The server does not call [`end_with_the_test`]: it has no input.
    ///
    /// # Panics
    ///
    /// The process cannot be started.
    pub fn start_with_sockets(
        serving: &str,
        variables: &[(&str, &str)],
        sockets: Vec<(&'static str, OwnedFd)>,
    ) -> Self {
        let command = command_with_sockets(this_program(), sockets);
        Self::begin(command, serving, variables)
    }

    fn begin(mut command: Command, serving: &str, variables: &[(&str, &str)]) -> Self {
        command.args([serving, "--exact", "--ignored", "--nocapture"]);
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, output }
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server [is ready](say_ready). Returns its reference.
    ///
    /// # Panics
    ///
    /// The server ends before.
    pub fn reference(&mut self) -> String {
        let mut said = String::new();
        for line in self.output.by_ref().lines() {
            let line = line.expect("text");
            if let Some((_, reference)) = line.split_once(READY) {
                return reference.to_owned();
            }
            said.push_str(&line);
            said.push('\n');
        }
        panic!("the server ended before it was ready: {said}");
    }

    /// Ends it by SIGTERM, after which it must succeed.
    ///
    /// # Panics
    ///
    /// It has ended already, or fails.
    pub fn end(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        // It may print until it ends.
        let mut said = String::new();
        let _ = self.output.read_to_string(&mut said);
        let status = self.child.wait().expect("ended");
        assert!(status.success(), "{status}: {said}");
    }

    /// Kills it by SIGKILL.
    ///
    /// # Panics
    ///
    /// It has been killed already.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Ended already, most of the time.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

/// Has this process end when the test that started it does.
pub fn end_with_the_test() {
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        exit(0);
    });
}

/// Tells the test that started this process its reference.
pub fn say_ready(reference: impl Display) {
    println!("{READY}{reference}");
}

/// Returns a port of loopback that is free now, below those that the kernel gives to connections: the references of one process are to hold
/// for the next, and nobody may take the port in between. No port is returned twice, also not in programs that run at the same time.
///
/// # Panics
///
/// No port is free.
#[must_use]
pub fn lasting_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    static TAKEN: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let first = 10_000 + (std::process::id() % 20_000) as u16;
    let found = (0..1_000).find_map(|_| {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        // A port is free until its server listens. So each program tells others which ports it has, by a name that ends with it.
        let name = SocketAddr::from_abstract_name(format!("rtorb-port-{port}")).ok()?;
        let taken = UnixDatagram::bind_addr(&name).ok()?;
        let is_free = TcpListener::bind(("127.0.0.1", port)).is_ok();
        is_free.then_some((port, taken))
    });
    let (port, taken) = found.expect("a free port");
    TAKEN.lock().expect("no panic").push(taken);
    port
}

/// Returns the number in a variable of the environment, if it is set.
///
/// # Panics
///
/// It is no number.
#[must_use]
pub fn from_environment<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable} is {text}: give it a number"),
    }
}

/// What the server says, with its reference behind it.
const READY: &str = "ready ";
