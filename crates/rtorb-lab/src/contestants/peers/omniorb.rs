//! omniORB as a contestant: our own C++ program, compiled on demand when its tools are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::LabError;
use crate::processes::interrupt::Interrupt;
use crate::processes::tools::run_tool;

/// The compiled program and the version of omniORB that it was compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmniOrb {
    /// The program: `cubit server`, `cubit client IOR`.
    pub program: PathBuf,
    /// The program of clients that call at a rate: `rates server OBJECT...`, `rates clients IOR...`.
    pub rates: PathBuf,
    /// The program of counted clients: `whitebox IOR LOW-PRIORITY HIGH-PRIORITY LOW-CLIENTS`.
    pub whitebox: PathBuf,
    /// The library that counts for a process into which it is preloaded.
    pub lock_calls: PathBuf,
    /// Such as `4.2.5`.
    pub version: String,
}

impl OmniOrb {
    /// Compiles the program, or finds it compiled by an earlier run. `Ok(None)` when omniORB's tools are not
    /// installed: [`HOW_TO_INSTALL`] says what is missing.
    ///
    /// # Errors
    /// That the tools are there and yet the program does not compile, with what they printed.
    pub fn find(interrupt: &Interrupt) -> Result<Option<Self>, LabError> {
        let (Some(version), true) = (version(), answers("g++", "--version")) else {
            return Ok(None);
        };
        let sources = [
            &PROGRAMS.map(|(_, source)| source).concat(),
            LOCK_CALLS,
            IDL,
            IDL_OPTIONS.join(" ").as_str(),
            LINK.join(" ").as_str(),
            version.as_str(),
        ]
        .concat();
        let folder = cache_folder().join(format!("omniorb-{:016x}", fnv1a(sources.as_bytes())));
        let [program, rates, whitebox] = PROGRAMS.map(|(name, _)| folder.join(name));
        let lock_calls = folder.join("lock_calls.so");
        let all = [&program, &rates, &whitebox, &lock_calls];
        if !all.iter().all(|built| built.exists()) {
            compile(&folder, interrupt)?;
        }
        Ok(Some(Self {
            program,
            rates,
            whitebox,
            lock_calls,
            version,
        }))
    }
}

/// Why it is left out when servers run elsewhere.
pub const NOT_ON_AN_AGENT: &str =
    "its server runs no role of this program, and an agent starts nothing else.";
/// What a reader can do who has no omniORB.
pub const HOW_TO_INSTALL: &str =
    "omniORB is not installed (Debian: apt install omniidl libomniorb4-dev g++)";

/// The servers' options: those that omniORB needs to be at its best here.
///
/// By default its acceptor thread wakes every 50 ms to look for idle connections and holds up the worker for up to a
/// millisecond; with a watch period of 5 s it does not do so within a burst.
pub const SERVER_OPTIONS: [&str; 2] = ["-ORBconnectionWatchPeriod", "5000000"];

/// The clients' options: a reference from this host is otherwise reached over the transport that omniORB likes best.
pub const CLIENT_OPTIONS: [&str; 2] = ["-ORBclientTransportRule", "* unix,tcp"];

/// The options of a server of clients that call at a rate: none, since they do not call all the time.
pub const RATE_SERVER_OPTIONS: [&str; 0] = [];

fn version() -> Option<String> {
    let output = Command::new("omniidl")
        .arg("-V")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let headers = [
        "/usr/include/omniORB4/CORBA.h",
        "/usr/local/include/omniORB4/CORBA.h",
    ];
    if !output.status.success() || !headers.iter().any(|header| Path::new(header).exists()) {
        return None;
    }
    Some(
        text.split_whitespace()
            .last()
            .unwrap_or("unknown")
            .trim_end_matches('.')
            .to_owned(),
    )
}

fn answers(program: &str, argument: &str) -> bool {
    let command = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output();
    command.is_ok_and(|output| output.status.success())
}

/// Compiles in a folder of its own and renames that: two runs at once cannot disturb each other.
fn compile(folder: &Path, interrupt: &Interrupt) -> Result<(), LabError> {
    let building = folder.with_extension(format!("{}", std::process::id()));
    let built = compile_in(&building, interrupt).and_then(|()| {
        match fs::rename(&building, folder) {
            // Somebody else was faster, with the same result.
            Err(_) if folder.join("cubit").exists() => Ok(()),
            renamed => renamed.map_err(LabError::file(folder)),
        }
    });
    // Best effort: after a rename there is nothing left to remove.
    let _ = fs::remove_dir_all(&building);
    built.map_err(|error| match error {
        LabError::Interrupted => error,
        other => LabError::Peer {
            what: format!("omniORB is installed but its contestant cannot be built: {other}"),
        },
    })
}

fn compile_in(folder: &Path, interrupt: &Interrupt) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(LabError::file(folder))?;
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).map_err(LabError::file(folder.join(name)))
    };
    write("cubit.idl", IDL)?;
    write("lock_calls.c", LOCK_CALLS)?;
    for (name, text) in PROGRAMS {
        write(&format!("{name}.cc"), text)?;
    }
    let mut translate = Command::new("omniidl");
    translate
        .args(IDL_OPTIONS)
        .arg("cubit.idl")
        .current_dir(folder);
    let compile = PROGRAMS.map(|(name, _)| {
        let mut compile = Command::new("g++");
        compile
            .args(["-O2", "-o", name, &format!("{name}.cc"), "cubitSK.cc"])
            .args(LINK)
            .current_dir(folder);
        compile
    });
    let mut compile_lock_calls = Command::new("gcc");
    compile_lock_calls
        .args(["-O2", "-shared", "-fPIC", "-o", "lock_calls.so"])
        .args(["lock_calls.c", "-ldl"])
        .current_dir(folder);
    for mut tool in [translate, compile_lock_calls].into_iter().chain(compile) {
        run_tool(&mut tool, COMPILE_TIMEOUT, interrupt)?;
    }
    Ok(())
}

/// Where compiled peers are kept from run to run.
fn cache_folder() -> PathBuf {
    let from = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    from("XDG_CACHE_HOME")
        .or_else(|| from("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("rtorb")
}

/// A name for the sources; nobody attacks it, so the smallest hash will do.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Name and source of each.
const PROGRAMS: [(&str, &str); 3] = [
    ("cubit", include_str!("omniorb/cubit.cc")),
    ("rates", include_str!("omniorb/rates.cc")),
    ("whitebox", include_str!("omniorb/whitebox.cc")),
];
const LOCK_CALLS: &str = include_str!("omniorb/lock_calls.c");
const IDL: &str = include_str!(env!("CUBIT_IDL"));
const IDL_OPTIONS: [&str; 2] = ["-bcxx", "-Wbh=.hh,s=SK.cc"];
const LINK: [&str; 4] = ["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"];
/// A slow machine with others at work on it.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(180);
