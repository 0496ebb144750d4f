//! `rtorb locate`: a name service that does not run is started by its first client, also after it was killed.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::running::until;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Running, rtorb};

/// A locator, and the file of what it and its servers print.
struct Locator {
    _running: Running,
    printed: std::path::PathBuf,
}

impl Locator {
    fn start(folder: &Path, servers: &str) -> Self {
        let (file, printed) = (folder.join("servers.toml"), folder.join("printed"));
        fs::write(&file, servers).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command.arg("locate").arg(&file);
        command.args(["--listen", "iiop://127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&printed).unwrap());
        Self {
            _running: Running(command.spawn().unwrap()),
            printed,
        }
    }

    /// Waits until `count` lines contain these words, and returns the rest of each line.
    fn said(&self, words: &str, count: usize) -> Vec<String> {
        until(words, || {
            let printed = fs::read_to_string(&self.printed).unwrap();
            let said = printed.lines().filter_map(|line| line.split_once(words));
            let said: Vec<String> = said.map(|(_, rest)| rest.to_owned()).collect();
            (said.len() >= count).then_some(said)
        })
    }
}

/// A process that the locator has started, which is killed when the test ends.
struct Started(Pid);

impl Started {
    fn of(locator: &Locator, number: usize) -> Self {
        let said = locator.said("being started by process ", number);
        Self(Pid::from_raw(said[number - 1].parse().unwrap()).unwrap())
    }

    /// Kills it and waits until its last thread has ended: then nobody listens at its port.
    fn end(self) {
        kill_process(self.0, Signal::KILL).unwrap();
        let id = self.0.as_raw_nonzero();
        until("it has ended", || {
            let threads = fs::read_dir(format!("/proc/{id}/task"));
            let threads = threads.map_or(0, |threads| threads.count());
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            (threads == 0 || threads == 1 && stat.contains(") Z ")).then_some(())
        });
        // Its number may be that of another process from now on.
        std::mem::forget(self);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_server_is_started_by_its_first_client_and_again_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("rtorb").display().to_string();
    let reference = folder.path().join("names.ior").display().to_string();
    // No other test listens where the killed server did.
    let listen = own_endpoint();
    let servers = format!(
        "[[server]]\nname = \"names\"\nkeys = [\"NameService\"]\nreference = {reference:?}\n\
         start_timeout_ms = 60000\nstart = [{program:?}, \"naming\", \"serve\", \
         \"--listen\", {listen:?}, \"--ior-file\", {reference:?}]\n"
    );
    let locator = Locator::start(folder.path(), &servers);
    let place = locator.said("serving at iiop://", 1).remove(0);
    let names = format!("corbaloc::{place}/NameService");
    let ping = || {
        let mut command = rtorb();
        command.args(["ping", &names, "--count", "1", "--timeout", "60s"]);
        command.assert().success();
    };
    ping();
    let first = Started::of(&locator, 1);
    ping();
    first.end();
    ping();
    let _second = Started::of(&locator, 2);
    assert_eq!(locator.said("names: started", 2).len(), 2);
}

#[test]
fn a_wrong_file_is_named_with_its_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("servers.toml");
    for (text, mistake) in [
        (None, "cannot read"),
        (Some("[[server]]\nname = 5\n"), "line 2"),
        (
            Some("[[server]]\nname = \"plant\"\nreference = \"/x\"\n"),
            "has no object",
        ),
    ] {
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let mut command = rtorb();
        command
            .arg("locate")
            .arg(&file)
            .args(["--listen", "iiop://127.0.0.1:0"]);
        let assert = command.assert().code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            said.contains(mistake) && said.contains("servers.toml"),
            "{said}"
        );
    }
}
