//! Peers built of JacORB, which writes big-endian: servers and clients of Cubit and Desk.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::make::{files, has, once, step};
use crate::running::{Running, output_of};
use crate::skip;

/// The built peers, or none with a word about how to get JacORB, which is not in Debian.
///
/// # Panics
///
/// The peers cannot be built, or they are required and missing.
#[must_use]
pub fn jacorb() -> Option<JacOrb> {
    let Some(jars) = env::var_os("RTORB_JACORB").filter(|_| has("javac")) else {
        skip("JacORB or a JDK is not there: tests/programs/jacorb/pom.xml says how to fetch it");
        return None;
    };
    let jars = format!("{}/*", jars.to_str()?);
    let classes = build(&jars);
    Some(JacOrb {
        class_path: format!("{jars}:{}", classes.display()),
    })
}

/// JacORB, built and ready to run.
#[derive(Debug)]
pub struct JacOrb {
    class_path: String,
}

impl JacOrb {
    /// Starts `CubitServer` or `DeskServer` and answers its reference.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve(&self, class: &str, scratch: &Path) -> (Running, String) {
        self.serve_with(&[], class, scratch)
    }

    /// Starts a server whose adapters have one thread each.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve_by_one_thread(&self, class: &str, scratch: &Path) -> (Running, String) {
        let threads = [
            "-Djacorb.poa.thread_pool_min=1",
            "-Djacorb.poa.thread_pool_max=1",
        ];
        self.serve_with(&threads, class, scratch)
    }

    /// Starts a server whose nested calls carry the distributable thread of their request, and wait for a reply that long.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve_carrying_threads(
        &self,
        class: &str,
        scratch: &Path,
        timeout_ms: &str,
    ) -> (Running, String) {
        let timeout = format!("-Djacorb.connection.client.pending_reply_timeout={timeout_ms}");
        let carrier =
            "-Dorg.omg.PortableInterceptor.ORBInitializerClass.ThreadCarrier=ThreadCarrier";
        self.serve_with(&[carrier, &timeout], class, scratch)
    }

    /// Starts a server at that IP address that calls back over the connections of its clients, if they offer that.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve_both_ways(&self, class: &str, host: &str, scratch: &Path) -> (Running, String) {
        let host = format!("-DOAIAddr={host}");
        let properties = [&BOTH_WAYS[..], &[&host]].concat();
        self.serve_with(&properties, class, scratch)
    }

    /// As [`JacOrb::call`], with a client at that IP address that offers to be called back over its own connection.
    ///
    /// # Panics
    ///
    /// A check was wrong.
    pub fn call_both_ways(&self, class: &str, reference: &str, host: &str) -> Vec<String> {
        let host = format!("-DOAIAddr={host}");
        let properties = [&BOTH_WAYS[..], &[&host]].concat();
        lines_of(self.java(&properties, class).arg(reference))
    }

    /// Starts the notification service and answers the reference of its factory of channels.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    #[must_use]
    pub fn serve_notification(&self) -> (Running, String) {
        let mut command = self.java(&[], "org.jacorb.notification.ConsoleMain");
        let (service, rest) = Running::until_line(command.arg("-printIOR"), "IOR:");
        (service, format!("IOR:{rest}"))
    }

    /// Runs `CubitClient`, `DeskClient` or `DeadlineClient` against `reference`, and answers its lines, one a check, all of them right.
    ///
    /// # Panics
    ///
    /// A check was wrong.
    pub fn call(&self, class: &str, reference: &str, options: &[&str]) -> Vec<String> {
        lines_of(self.java(&[], class).arg(reference).args(options))
    }

    /// As [`JacOrb::call`], with properties of JacORB: `-DNAME=VALUE`.
    ///
    /// # Panics
    ///
    /// A check was wrong.
    pub fn call_with(&self, properties: &[&str], class: &str, reference: &str) -> Vec<String> {
        lines_of(self.java(properties, class).arg(reference))
    }

    /// As [`JacOrb::serve`], with properties of JacORB: `-DNAME=VALUE`.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve_with(
        &self,
        properties: &[&str],
        class: &str,
        scratch: &Path,
    ) -> (Running, String) {
        let file = scratch.join(format!("{class}.ior"));
        Running::until_written(self.java(properties, class).arg(&file), &file)
    }

    fn java(&self, properties: &[&str], class: &str) -> Command {
        let mut command = Command::new("java");
        command.args([
            "-Dorg.omg.CORBA.ORBClass=org.jacorb.orb.ORB",
            "-DOAIAddr=127.0.0.1",
        ]);
        command.args([
            "-Dorg.omg.CORBA.ORBSingletonClass=org.jacorb.orb.ORBSingleton",
            "-Djacorb.log.default.verbosity=0",
        ]);
        command
            .args(properties)
            .args(["-cp", &self.class_path, class])
            .stderr(std::process::Stdio::null());
        command
    }
}

/// What lets connections carry calls of both ends.
const BOTH_WAYS: [&str; 2] = [
    "-Dbidirectional=true",
    "-Dorg.omg.PortableInterceptor.ORBInitializerClass.bidir_init=org.jacorb.orb.giop.BiDirConnectionInitializer",
];

/// The lines that a client prints, one a check, all of them right.
fn lines_of(client: &mut Command) -> Vec<String> {
    let printed = output_of(client);
    let lines: Vec<_> = printed.lines().map(str::to_owned).collect();
    assert!(
        lines.iter().all(|line| line.starts_with("ok ")),
        "{printed}"
    );
    assert!(!lines.is_empty(), "the client checked nothing");
    lines
}

fn build(jars: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = files(&package.join("programs/jacorb"));
    let idl = ["cubit.idl", "exchange.idl"]
        .map(|name| package.join("../crates/rtorb-idl/idl").join(name));
    let mut needs = sources.clone();
    needs.extend_from_slice(&idl);
    once("jacorb", &needs, |folder| {
        let generated = folder.join("generated");
        for idl in &idl {
            let translate =
                ["-cp", jars, "org.jacorb.idl.parser", "-d", "generated"].map(OsStr::new);
            step(
                folder,
                "java",
                translate.into_iter().chain([idl.as_os_str()]),
            );
        }
        let mut arguments = ["-nowarn", "-cp", jars, "-d", "."]
            .map(OsString::from)
            .to_vec();
        let written = [files(&generated), files(&generated.join("Exchange"))].concat();
        let java = sources
            .iter()
            .chain(&written)
            .filter(|file| file.extension().is_some_and(|e| e == "java"));
        arguments.extend(java.map(|file| file.as_os_str().to_owned()));
        step(folder, "javac", arguments);
    })
}
