//! The time of a call over TLS beside plain TCP, by this ORB and by omniORB, in turns and on one CPU. It measures only with
//! RTORB_TLS_TIMES=ROUNDS, such as 7, and needs omniORB. Both sides show certificates.

#[path = "tls/pki.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod pki;

use pki::Pki;
use rtorb::{Orb, OrbBuilder};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::{apply_affinity, current_affinity};
use rtorb_tests::peers::omniorb::{Endpoint, OmniOrb, omniorb, tls_options};
use rtorb_tests::running::{Running, output_of};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use rtorb_tls::Tls;
use rtorb_tls::keys::{AUTHORITY, IssuedFiles, Purpose};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CALLS: usize = 20_000;
const WARM_UP: usize = CALLS / 10;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", authority, certificate, key, endpoint, file] => {
            serve(orb(authority, certificate, key), endpoint, Path::new(file));
        }
        ["call", authority, certificate, key, reference] => {
            call(orb(authority, certificate, key), reference);
        }
        _ => {
            if let Ok(rounds) = env::var("RTORB_TLS_TIMES") {
                measure(rounds.parse().expect("a number"));
            }
        }
    }
}

fn orb(authority: &str, certificate: &str, key: &str) -> OrbBuilder {
    let tls = Tls::builder()
        .certificate(certificate, key)
        .authorities(authority);
    Orb::builder().secure_transport(tls.build().expect("right files").transport())
}

fn serve(orb: OrbBuilder, endpoint: &str, file: &Path) {
    let orb = orb.listen(endpoint).build().expect("an ORB");
    let root = orb.root_poa().expect("it listens");
    let servant = Cubes { orb: orb.clone() };
    let cubit: Cubit = root.activate(servant).expect("there is room");
    let draft = file.with_extension("draft");
    fs::write(&draft, cubit.to_string()).expect("the folder can be written");
    fs::rename(draft, file).expect("the folder can be written");
    orb.run().expect("it serves");
}

/// Prints the median and the 99th percentile in nanoseconds.
fn call(orb: OrbBuilder, reference: &str) {
    let orb = orb.build().expect("an ORB");
    let cubit: Cubit = orb.string_to_reference(reference).expect("a reference");
    let mut times = Vec::with_capacity(CALLS);
    for number in 0..WARM_UP + CALLS {
        let begin_ns = monotonic_ns();
        assert_eq!(cubit.cube_long(3), Ok(27));
        let time_ns = monotonic_ns() - begin_ns;
        if number >= WARM_UP {
            times.push(time_ns);
        }
    }
    times.sort_unstable();
    println!("{} {}", times[CALLS / 2], times[CALLS * 99 / 100]);
}

fn measure(rounds: usize) {
    let Some(omniorb) = omniorb() else { return };
    // The servers and the clients inherit it.
    apply_affinity(&current_affinity()[..1]).expect("an own CPU");
    let keys = Keys::new();
    let contestants = [
        keys.ours("rtorb, TCP", "iiop"),
        keys.ours("rtorb, TLS", "ssliop"),
        keys.omniorb(omniorb, "omniORB, TCP", Endpoint::Tcp),
        keys.omniorb(omniorb, "omniORB, TLS", Endpoint::Tls),
    ];
    let mut times = contestants.each_ref().map(|_| Vec::new());
    for round in 1..=rounds {
        for (contestant, times) in contestants.iter().zip(&mut times) {
            let [p50, p99] = contestant.times(&keys);
            println!(
                "round {round}, {}: p50 {p50} ns, p99 {p99} ns",
                contestant.name
            );
            times.push([p50, p99]);
        }
    }
    println!("medians of {rounds} rounds of {CALLS} calls");
    for (contestant, times) in contestants.iter().zip(&times) {
        let [p50, p99] = [0, 1].map(|which| median(times.iter().map(|time| time[which])));
        println!("{:12} p50 {p50:>7} ns, p99 {p99:>7} ns", contestant.name);
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// Certificates of both sides.
struct Keys {
    pki: Pki,
    server: IssuedFiles,
    client: IssuedFiles,
    scratch: Scratch,
}

impl Keys {
    fn new() -> Self {
        let pki = Pki::new();
        Self {
            server: pki.issue(Purpose::Server, "server", &["127.0.0.1"]),
            client: pki.issue(Purpose::Client, "client", &[]),
            pki,
            scratch: Scratch::new(),
        }
    }

    fn authority(&self) -> PathBuf {
        self.pki.folder.join(AUTHORITY)
    }

    /// This program in another role.
    fn role(&self, role: &str, files: &IssuedFiles) -> Command {
        let mut command = Command::new(env::current_exe().expect("it runs"));
        command
            .arg(role)
            .args([&self.authority(), &files.certificate, &files.key]);
        command
    }

    fn omniorb_options(&self, files: &IssuedFiles) -> Vec<String> {
        tls_options(&self.authority(), &files.certificate, &files.key)
    }

    fn ours(&self, name: &'static str, scheme: &str) -> Contestant<'static> {
        let file = self.scratch.join(scheme);
        let mut command = self.role("serve", &self.server);
        command.arg(format!("{scheme}://127.0.0.1:0")).arg(&file);
        let (server, reference) = Running::until_written(&mut command, &file);
        Contestant {
            name,
            omniorb: None,
            reference,
            _server: server,
        }
    }

    fn omniorb<'a>(
        &self,
        omniorb: &'a OmniOrb,
        name: &'static str,
        endpoint: Endpoint<'_>,
    ) -> Contestant<'a> {
        let folder = self.scratch.join(format!("{endpoint:?}"));
        fs::create_dir(&folder).expect("the folder can be written");
        let options = self.omniorb_options(&self.server);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let (server, reference) = omniorb.serve("cubit_server", &folder, endpoint, &options);
        Contestant {
            name,
            omniorb: Some(omniorb),
            reference,
            _server: server,
        }
    }
}

/// A server, and the ORB whose client calls it.
struct Contestant<'a> {
    name: &'static str,
    /// `None` is ours.
    omniorb: Option<&'a OmniOrb>,
    reference: String,
    _server: Running,
}

impl Contestant<'_> {
    /// The median and the 99th percentile of a round's calls, in nanoseconds.
    fn times(&self, keys: &Keys) -> [u64; 2] {
        if let Some(omniorb) = self.omniorb {
            let options = keys.omniorb_options(&keys.client);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            return omniorb.call_times(&self.reference, CALLS, &options);
        }
        let printed = output_of(keys.role("call", &keys.client).arg(&self.reference));
        let mut numbers = printed
            .split_whitespace()
            .map(|number| number.parse().expect("a number"));
        [(); 2].map(|()| numbers.next().expect("two numbers"))
    }
}
