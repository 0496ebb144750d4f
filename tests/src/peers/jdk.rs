//! Programs for the ORB that the JDK had until version 10. It is in big-endian, finds a naming service by host and port, and sends
//! text of every kind.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use super::make::{files, has, once, step};
use crate::running::{Running, output_of};
use crate::skip;

/// The built programs; `None`, with a message about how to get the ORB, if it is missing.
///
/// # Panics
///
/// The programs cannot be built, or they are required and missing.
#[must_use]
pub fn jdk_orb() -> Option<JdkOrb> {
    let Some(jars) = env::var_os("RTORB_JDK_ORB").filter(|_| has("javac")) else {
        skip(
            "the JDK's ORB or a JDK is not there: tests/programs/jdk/pom.xml says how to fetch it",
        );
        return None;
    };
    let jars = format!("{}/*", jars.to_str()?);
    let sources = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/jdk"));
    let classes = once("jdk", &sources, |folder| {
        let java = sources
            .iter()
            .filter(|file| file.extension().is_some_and(|e| e == "java"));
        let options = ["-nowarn", "-cp", &jars, "-d", "."].map(OsString::from);
        let java = java.map(|file| file.as_os_str().to_owned());
        step(folder, "javac", options.into_iter().chain(java));
    });
    Some(JdkOrb {
        class_path: format!("{jars}:{}", classes.display()),
    })
}

/// The JDK's ORB with its programs.
#[derive(Debug)]
pub struct JdkOrb {
    class_path: String,
}

impl JdkOrb {
    /// Runs `InitialNames` for the naming service at that host and port. Returns its lines, one for each check.
    ///
    /// # Panics
    ///
    /// A check failed.
    pub fn use_names(&self, host: &str, port: &str) -> Vec<String> {
        let mut command = self.java("InitialNames");
        checks(command.args(["-ORBInitialHost", host, "-ORBInitialPort", port].map(OsStr::new)))
    }

    /// Runs `TextClient` against `reference`. Returns its lines, one for each check.
    ///
    /// # Panics
    ///
    /// A check failed.
    pub fn send_text(&self, reference: &str) -> Vec<String> {
        checks(self.java("TextClient").arg(reference))
    }

    /// Starts `TextServer`. Returns it with its reference.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve_text(&self, scratch: &Path) -> (Running, String) {
        let file = scratch.join("TextServer.ior");
        Running::until_written(self.java("TextServer").arg(&file), &file)
    }

    fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command.args([
            "-Dorg.omg.CORBA.ORBClass=com.sun.corba.se.impl.orb.ORBImpl",
            "-Dorg.omg.CORBA.ORBSingletonClass=com.sun.corba.se.impl.orb.ORBSingleton",
            "-Dcom.sun.CORBA.ORBServerHost=127.0.0.1",
            "-cp",
            &self.class_path,
            class,
        ]);
        command
    }
}

/// Runs a client. Returns its lines, one for each check, all of them right.
fn checks(command: &mut Command) -> Vec<String> {
    let printed = output_of(command);
    let lines: Vec<_> = printed.lines().map(str::to_owned).collect();
    let are_right = lines.iter().all(|line| line.starts_with("ok "));
    assert!(are_right && !lines.is_empty(), "{printed}");
    lines
}
