//! Peers built of omniORB: servers and clients of Cubit and Desk, its naming service, and `catior`.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use super::make::{files, has, once, step};
use crate::raw::{Connection, LOCATE_REQUEST, Stream};
use crate::running::{Running, outcome_of, output_of, until};
use crate::server_process::lasting_port;
use crate::skip;

/// What to install for these tests.
const REMEDY: &str = "omniORB is not installed: apt-get install omniorb omniidl libomniorb4-dev omniorb-nameserver g++";

/// What a program of omniORB is linked with.
pub(crate) const LIBRARIES: &[&str] = &[
    "-Wl,--no-as-needed",
    "-lomniCodeSets4",
    "-Wl,--as-needed",
    "-lomniDynamic4",
    "-lomniORB4",
    "-lomnithread",
    "-lpthread",
];

/// What the programs of Cubit are linked with too: they speak TLS.
const TLS: &[&str] = &["-Wl,--no-as-needed", "-lomnisslTP4"];

/// The folder of the built peers, or none with a word about how to get omniORB.
///
/// # Panics
///
/// The peers cannot be built, or they are missing and `RTORB_REQUIRE_PEERS=1` is set.
pub fn omniorb() -> Option<&'static OmniOrb> {
    static BUILT: OnceLock<Option<OmniOrb>> = OnceLock::new();
    let built = BUILT.get_or_init(|| installed().then(|| OmniOrb { folder: build() }));
    if built.is_none() {
        skip(REMEDY);
    }
    built.as_ref()
}

/// The options of omniORB for a certificate, which it reads together with the key, from a file that is written beside it. Both sides must
/// show a certificate.
///
/// # Panics
///
/// A file cannot be read or written.
#[must_use]
pub fn tls_options(authority: &Path, certificate: &Path, key: &Path) -> Vec<String> {
    let both = certificate.with_extension("both");
    let read = |file| std::fs::read_to_string(file).expect("it is written");
    let text = read(certificate) + &read(key);
    std::fs::write(&both, text).expect("the folder can be written");
    let options = [
        ("-ORBsslCAFile", authority.to_string_lossy().into_owned()),
        ("-ORBsslKeyFile", both.to_string_lossy().into_owned()),
        ("-ORBsslKeyPassword", "none".to_owned()),
        ("-ORBsslVerifyMode", "peer,fail".to_owned()),
    ];
    let options = options.into_iter();
    options
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
}

/// omniORB, built and ready to run.
#[derive(Debug)]
pub struct OmniOrb {
    folder: PathBuf,
}

/// Where an omniORB server listens.
#[derive(Clone, Copy, Debug)]
pub enum Endpoint<'a> {
    /// Loopback, a free port.
    Tcp,
    /// A UNIX socket at this place.
    Unix(&'a Path),
    /// Loopback, a free port, with TLS: for `cubit_server`.
    Tls,
}

impl OmniOrb {
    /// Starts `cubit_server`, `desk_server` or `atlas_server` and answers its reference.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn serve(
        &self,
        program: &str,
        scratch: &Path,
        endpoint: Endpoint<'_>,
        options: &[&str],
    ) -> (Running, String) {
        let file = scratch.join(format!("{program}.ior"));
        let point = match endpoint {
            Endpoint::Tcp => "giop:tcp:127.0.0.1:".to_owned(),
            Endpoint::Tls => "giop:ssl:127.0.0.1:".to_owned(),
            Endpoint::Unix(path) => format!("giop:unix:{}", path.display()),
        };
        let mut command = Command::new(self.folder.join(program));
        command
            .arg("--ior-file")
            .arg(&file)
            .args(["-ORBendPoint", &point])
            .args(options);
        Running::until_written(&mut command, &file)
    }

    /// Runs `in_flight_client`, and answers the calls a second that it prints.
    ///
    /// # Panics
    ///
    /// It fails, or prints something else.
    pub fn calls_per_s(&self, calls: u64) -> f64 {
        let mut command = Command::new(self.folder.join("in_flight_client"));
        let printed = output_of(command.args(["--calls", &calls.to_string()]));
        printed.trim().parse().expect("a number")
    }

    /// Runs `cubit_client`, and answers the median and the 99th percentile of the times of so many calls, in nanoseconds.
    ///
    /// # Panics
    ///
    /// It fails, or prints something else.
    pub fn call_times(&self, reference: &str, calls: usize, options: &[&str]) -> [u64; 2] {
        let mut command = Command::new(self.folder.join("cubit_client"));
        let calls = calls.to_string();
        command.args([reference, "--times", &calls]).args(options);
        let printed = output_of(&mut command);
        let last = printed.lines().last().unwrap_or_default();
        let mut numbers = last
            .split(' ')
            .map(|number| number.parse().expect("a number"));
        [(); 2].map(|()| numbers.next().expect("two numbers"))
    }

    /// Runs `cubit_client`, `desk_client`, `atlas_client` or a supplier of events against `reference`, and answers its lines, one a check, all
    /// of them right.
    ///
    /// # Panics
    ///
    /// A check was wrong.
    pub fn call(&self, program: &str, reference: &str, options: &[&str]) -> Vec<String> {
        let mut command = Command::new(self.folder.join(program));
        let printed = output_of(command.arg(reference).args(options));
        all_right(program, &printed)
    }

    /// The same for a program that says in a file when it is ready: answers what waits for its end and answers its lines.
    ///
    /// # Panics
    ///
    /// It does not get ready; then, a check was wrong.
    pub fn begin(
        &self,
        program: &str,
        reference: &str,
        ready: &Path,
        options: &[&str],
    ) -> impl FnOnce() -> Vec<String> + use<> {
        let mut command = Command::new(self.folder.join(program));
        command
            .arg(reference)
            .args(options)
            .arg("--ready")
            .arg(ready);
        let (running, gather) = Running::gathering(&mut command);
        until(&format!("{program} is ready"), || {
            ready.exists().then_some(())
        });
        let program = program.to_owned();
        move || {
            let status = running.ended();
            let printed = gather.join().expect("reading does not panic");
            assert!(status.success(), "{program}: {status}\n{printed}");
            all_right(&program, &printed)
        }
    }

    /// Starts the naming service with nothing bound, and answers its `host:port`.
    ///
    /// # Panics
    ///
    /// It does not get ready.
    pub fn names(&self, scratch: &Path) -> (Running, String) {
        let log = scratch.join("names");
        std::fs::create_dir_all(&log).expect("the scratch folder can be written");
        let port = lasting_port();
        let mut command = Command::new("omniNames");
        command
            .args(["-start", &port.to_string(), "-ignoreport", "-datadir"])
            .arg(&log);
        command
            .args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")])
            .stderr(Stdio::null());
        let running = Running::start(&mut command);
        // It accepts connections before its root context is there.
        let mut where_is = Stream::new(LOCATE_REQUEST, 0, false);
        where_is.ulong(1).octets(b"NameService");
        let where_is = where_is.message();
        until("omniNames has its root context", || {
            let socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
            let answer = Connection::over(socket).ask(&where_is)?;
            (answer.status == 1).then_some(())
        });
        (running, format!("127.0.0.1:{port}"))
    }

    /// What omniORB's naming client says to this operation, where the naming service is at `host:port`; an error is what it
    /// says when it fails.
    ///
    /// # Errors
    ///
    /// The text of a failure.
    pub fn nameclt(&self, address: &str, operation: &[&str]) -> Result<String, String> {
        let mut command = Command::new("nameclt");
        let place = format!("NameService=corbaloc::{address}/NameService");
        command.args(["-ORBInitRef", &place]).args(operation);
        outcome_of(&mut command).map(|said| said.trim_end().to_owned())
    }

    /// Does the same as [`nameclt`](Self::nameclt), but the client knows only the host and the port, and asks the bootstrap object there.
    ///
    /// # Errors
    /// What it printed, if it failed.
    pub fn nameclt_at(&self, host: &str, port: &str, operation: &[&str]) -> Result<String, String> {
        let mut command = Command::new("nameclt");
        let place = [
            "-ORBbootstrapAgentHostname",
            host,
            "-ORBbootstrapAgentPort",
            port,
        ];
        command.args(place).args(operation);
        outcome_of(&mut command).map(|said| said.trim_end().to_owned())
    }
}

/// What `catior` says about a reference, keys in hex.
///
/// # Panics
///
/// It cannot decode it.
#[must_use]
pub fn decoded(reference: &str) -> String {
    output_of(Command::new("catior").arg("-x").arg(reference))
}

/// The lines of a program, each of which must say that a check was right.
pub(crate) fn all_right(program: &str, printed: &str) -> Vec<String> {
    let lines: Vec<_> = printed.lines().map(str::to_owned).collect();
    assert!(
        lines.iter().all(|line| line.starts_with("ok ")),
        "{printed}"
    );
    assert!(!lines.is_empty(), "{program} checked nothing");
    lines
}

fn installed() -> bool {
    ["omniidl", "catior", "omniNames", "nameclt", "g++"]
        .into_iter()
        .all(has)
        && Path::new("/usr/include/omniORB4/CORBA.h").exists()
}

fn build() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = package.join("programs/omniorb");
    let idl = package.join("../crates/rtorb-idl/idl");
    let mut needs = files(&sources);
    needs.extend(files(&idl));
    // All interfaces at once: on a host with other work, one compiler after the other takes longer than a test may.
    once("omniorb", &needs, |folder| {
        thread::scope(|scope| {
            for (interface, programs) in PROGRAMS {
                let (idl, sources) = (&idl, &sources);
                scope.spawn(move || build_programs(folder, idl, sources, interface, programs));
            }
        });
    })
}

/// The programs, by the interface that they use.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("atlas", &["atlas_server", "atlas_client"]),
    (
        "cubit",
        &["cubit_server", "cubit_client", "in_flight_client"],
    ),
    ("exchange", &["desk_server", "desk_client"]),
    ("cos_event", &["plain_supplier", "plain_consumer"]),
    ("rtec_event", &["rtec_supplier", "rtec_consumer"]),
    ("rtec_scheduler", &["scheduler_client"]),
];

/// Builds the programs of an interface.
fn build_programs(folder: &Path, idl: &Path, sources: &Path, interface: &str, programs: &[&str]) {
    let source = idl.join(interface).with_extension("idl");
    step(
        folder,
        "omniidl",
        ["-bcxx", "-Wba", "-Wbinline", path(&source)],
    );
    let objects = ["SK", "DynSK"].map(|part| format!("{interface}{part}"));
    for object in &objects {
        step(
            folder,
            "g++",
            ["-std=c++17", "-O1", "-c", "-I.", &format!("{object}.cc")],
        );
    }
    for program in programs {
        let source = sources.join(program).with_extension("cc");
        let objects = objects.each_ref().map(|object| format!("{object}.o"));
        let mut arguments = vec![
            "-std=c++17",
            "-O1",
            "-I.",
            "-I",
            path(sources),
            "-o",
            program,
            path(&source),
        ];
        arguments.extend(objects.iter().map(String::as_str));
        if *program == "cubit_server" || *program == "cubit_client" {
            arguments.extend(TLS);
        }
        arguments.extend(LIBRARIES);
        step(folder, "g++", arguments);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the repository's path is UTF-8")
}
