//! Peers built of JacORB, which writes big-endian: a server and a client of Cubit.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::make::{files, has, once, step};
use crate::running::{Running, output_of};

/// The built peers, or none with a word about how to get JacORB. It is not in Debian, so the gate does without it.
///
/// # Panics
///
/// The peers cannot be built.
#[must_use]
pub fn jacorb() -> Option<JacOrb> {
    let Some(jars) = env::var_os("RTORB_JACORB").filter(|_| has("javac")) else {
        skip_extra();
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
    /// Starts the Cubit server and answers its reference.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve(&self, scratch: &Path) -> (Running, String) {
        let file = scratch.join("jacorb.ior");
        Running::until_written(self.java("CubitServer").arg(&file), &file)
    }

    /// Runs the Cubit client against `reference`, and answers its lines, one a check, all of them right.
    ///
    /// # Panics
    ///
    /// A check was wrong.
    pub fn call(&self, reference: &str, lengths: &str) -> Vec<String> {
        let printed = output_of(self.java("CubitClient").args([reference, lengths]));
        let lines: Vec<_> = printed.lines().map(str::to_owned).collect();
        assert!(
            lines.iter().all(|line| line.starts_with("ok ")),
            "{printed}"
        );
        assert!(!lines.is_empty(), "the client checked nothing");
        lines
    }

    fn java(&self, class: &str) -> Command {
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
            .args(["-cp", &self.class_path, class])
            .stderr(std::process::Stdio::null());
        command
    }
}

/// As [`skip`], but never required.
fn skip_extra() {
    use std::io::Write;
    let why = "JacORB is extra: see interop/jacorb/pom.xml";
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

fn build(jars: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = files(&package.join("jacorb"));
    let idl = package.join("../idl/cubit.idl");
    let mut needs = sources.clone();
    needs.push(idl.clone());
    once("jacorb", &needs, |folder| {
        step(
            folder,
            "java",
            [
                "-cp".as_ref(),
                jars.as_ref(),
                "org.jacorb.idl.parser".as_ref(),
                "-d".as_ref(),
                "generated".as_ref(),
                idl.as_os_str(),
            ],
        );
        let mut arguments = vec![
            "-nowarn".into(),
            "-cp".into(),
            jars.into(),
            "-d".into(),
            ".".into(),
        ];
        let written = files(&folder.join("generated"));
        let java = sources
            .iter()
            .chain(&written)
            .filter(|file| file.extension().is_some_and(|e| e == "java"));
        arguments.extend(java.map(|file| file.as_os_str().to_owned()));
        step(folder, "javac", arguments);
    })
}
