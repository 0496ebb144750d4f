//! Peers of the control system Tango: its client PyTango, and its device server TangoTest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::running::{Running, outcome_of, output_of};
use crate::server_process::lasting_port;
use crate::skip;

use super::omniorb::all_right;

/// The Python that has Debian's packages, whatever other Python is first in the search path.
const PYTHON: &str = "/usr/bin/python3";

/// Runs a program of `programs/tango/` in PyTango with this argument, and returns its lines, one a check, all of them right; nothing
/// without PyTango.
///
/// # Panics
///
/// A check was wrong, or PyTango is missing and `RTORB_REQUIRE_PEERS=1` is set.
pub fn pytango(program: &str, argument: &str) -> Option<Vec<String>> {
    let is_there = Path::new(PYTHON).exists()
        && outcome_of(Command::new(PYTHON).args(["-c", "import tango"])).is_ok();
    if !is_there {
        skip("PyTango is not installed: apt-get install python3-tango");
        return None;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = package
        .join("programs/tango")
        .join(program)
        .with_extension("py");
    let printed = output_of(Command::new(PYTHON).arg(path).arg(argument));
    Some(all_right(program, &printed))
}

/// Starts TangoTest without a database, and returns the `corbaloc:` of its device; nothing without TangoTest.
///
/// # Panics
///
/// It does not get ready, or it is missing and `RTORB_REQUIRE_PEERS=1` is set.
pub fn tango_test(device: &str) -> Option<(Running, String)> {
    let Some(program) = installed() else {
        skip("TangoTest is not installed: apt-get install tango-test");
        return None;
    };
    let port = lasting_port();
    let mut command = Command::new(program);
    command
        .args(["interop", "-nodb", "-dlist", device, "-ORBendPoint"])
        .arg(format!("giop:tcp:127.0.0.1:{port}"))
        .stderr(Stdio::null());
    let (running, _) = Running::until_line(&mut command, "Ready to accept request");
    Some((
        running,
        format!("corbaloc:iiop:1.2@127.0.0.1:{port}/{device}"),
    ))
}

/// Where Debian's package has the program; it is in no search path.
fn installed() -> Option<PathBuf> {
    let files = outcome_of(Command::new("dpkg").args(["-L", "tango-test"])).ok()?;
    let mut files = files.lines().map(PathBuf::from);
    files.find(|path| path.ends_with("TangoTest") && path.is_file())
}
