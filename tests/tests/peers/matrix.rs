//! The matrix of ORBs: every type of IDL in every direction, by every client to every server, in every GIOP version and both byte
//! orders, directly and through a proxy that records. `known_differences.toml` has each difference with its reason; docs/reference/interop.md
//! has the table, which `RTORB_MATRIX=1 RTORB_WRITE_PAGES=1 cargo test -p rtorb-tests --test peers matrix` writes.

mod known;
mod ours;
mod page;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rtorb::cdr::ByteOrder;
use rtorb::giop::Version;
use rtorb::ior::{IiopProfile, Ior};
use rtorb::{ObjectRef, Orb};
use rtorb_dynamic::recording::Log;
use rtorb_dynamic::search::Search;
use rtorb_dynamic::{OwnReference, Proxy, standing_for};
use rtorb_tests::peers::matrix::{Participant, all, python};
use rtorb_tests::running::{PATIENCE, Running as Process};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::matrix::{Echo, Judge, Samples};

use known::Known;
use ours::Ours;

/// One try: a type between a client and a server.
#[derive(Clone, Debug)]
struct Cell {
    client: String,
    server: String,
    /// `1.0`, `1.1` or `1.2`.
    version: String,
    is_recorded: bool,
    /// The operation, whose name is that of the type.
    operation: String,
    /// `ok`, or what was wrong.
    said: String,
}

/// A server as the clients see it: in one version, and directly or recorded.
struct Target {
    server: &'static str,
    version: Version,
    is_recorded: bool,
    reference: String,
}

impl Target {
    /// A word for the server, the version and the path.
    fn word(&self) -> String {
        let path = if self.is_recorded {
            "recorded"
        } else {
            "direct"
        };
        format!("{}/{}/{path}", self.server, self.version)
    }
}

/// An ORB of ours that runs until it is dropped.
struct Running {
    orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn new(order: ByteOrder) -> Self {
        let orb = Orb::builder().byte_order(order).build();
        let orb = orb.expect("loopback has a port");
        orb.root_poa().expect("loopback has a port");
        let server = orb.clone();
        let thread = thread::spawn(move || server.run().expect("it is shut down"));
        Self {
            orb,
            thread: Some(thread),
        }
    }

    /// Activates our echo. Returns its reference.
    fn echo(&self) -> Echo {
        let poa = self.orb.root_poa().expect("it runs");
        poa.activate(Ours).expect("there is room for it")
    }

    /// Activates a proxy for an echo, as `rtorb record` does. Returns its reference.
    fn record(&self, target: &str, log: &Arc<Log>) -> String {
        let target = self.orb.string_to_object(target).expect("a reference");
        let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("idl/matrix.idl");
        let search = Search {
            files: vec![idl],
            ..Search::default()
        };
        let found = search.interface_of(&target, None).expect("it is there");
        let (ior, own, log) = (
            target.ior().clone(),
            OwnReference::default(),
            Arc::clone(log),
        );
        let proxy = Proxy::new(target, &self.orb, move |record| {
            log.write(record).expect("there is room on the disk");
        });
        let proxy = proxy.with_interface(found).with_own_reference(&own);
        let poa = self.orb.root_poa().expect("it runs");
        let object = poa.activate_dynamic(proxy).expect("there is room for it");
        let ior = standing_for(object.ior(), &ior);
        own.set(&ior);
        ior.to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orb.shutdown();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The reference with another GIOP version, so that its clients use that.
fn in_version(reference: &str, version: Version) -> String {
    let mut ior: Ior = reference.trim().parse().expect("a reference");
    for profile in &mut ior.profiles {
        if let Ok(mut iiop) = IiopProfile::from_tagged(profile) {
            iiop.version = version;
            *profile = iiop.to_tagged().expect("it was one");
        }
    }
    ior.to_string()
}

/// All ORBs with their servers, and what their clients need of us.
struct Stage {
    peers: [Participant; 3],
    _served: Vec<(Process, String)>,
    _ours: [Running; 2],
    /// The name of each server, ours first, and its reference.
    servers: Vec<(&'static str, String)>,
    /// Our references.
    samples: String,
    judge: String,
    scratch: Scratch,
}

impl Stage {
    /// Starts all servers; `None` if a peer is missing.
    fn start() -> Option<Self> {
        let peers = all()?;
        let scratch = Scratch::new();
        let ours = [ByteOrder::Little, ByteOrder::Big].map(Running::new);
        let echoes = ours.each_ref().map(Running::echo);
        ours::set_object(&echoes[0]);
        let orb = &ours[0].orb;
        let text = |object: &ObjectRef| orb.object_to_string(object);
        let poa = orb.root_poa().expect("it runs");
        let samples: Samples = poa.activate(Ours).expect("there is room for it");
        let judge: Judge = poa.activate(Ours).expect("there is room for it");
        let (samples, judge) = (text(samples.as_object()), text(judge.as_object()));
        let served: Vec<_> = peers.iter().map(|peer| peer.serve(&scratch)).collect();
        let names = ["rtorb", "rtorb-big"];
        let own = names
            .into_iter()
            .zip(echoes.iter().map(|it| text(it.as_object())));
        let others = peers.iter().zip(&served);
        let servers = own.chain(others.map(|(it, (_, at))| (it.name, at.clone())));
        Some(Self {
            servers: servers.collect(),
            peers,
            _served: served,
            _ours: ours,
            samples,
            judge,
            scratch,
        })
    }

    /// Writes the targets into a file, as the clients of others read them.
    fn write(&self, name: &str, targets: &[Target]) -> PathBuf {
        let lines = targets.iter();
        let lines: String = lines
            .map(|it| format!("{} {}\n", it.word(), it.reference))
            .collect();
        let file = self.scratch.join(name);
        std::fs::write(&file, lines).expect("there is room on the disk");
        file
    }

    /// Has a client of another ORB call the targets in a file.
    fn called_by(&self, client: &Participant, file: &Path) -> Vec<Cell> {
        let printed = client.call(file, &self.samples, &self.judge);
        let lines = printed.lines();
        lines.map(|line| cell_of(client.name, line)).collect()
    }
}

/// Tries all cells; `None` if a peer is missing.
fn tried() -> Option<Vec<Cell>> {
    let stage = Stage::start()?;
    let recorder = Running::new(ByteOrder::NATIVE);
    let log = Log::create(&stage.scratch.join("log.jsonl"), 1 << 30);
    let log = Arc::new(log.expect("there is room"));
    let targets = targets(&stage.servers, &recorder, &log);
    let file = stage.write("targets", &targets);
    let mut cells = Vec::new();
    thread::scope(|scope| {
        let (stage, file) = (&stage, &file);
        let runs = stage
            .peers
            .each_ref()
            .map(|peer| scope.spawn(move || stage.called_by(peer, file)));
        cells.extend(by_us("rtorb", ByteOrder::Little, &targets));
        cells.extend(by_us("rtorb-big", ByteOrder::Big, &targets));
        for run in runs {
            cells.extend(run.join().expect("the client runs"));
        }
    });
    assert!(log.is_complete());
    Some(cells)
}

fn targets(servers: &[(&'static str, String)], recorder: &Running, log: &Arc<Log>) -> Vec<Target> {
    let mut targets = Vec::new();
    for (server, reference) in servers {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let reference = in_version(reference, version);
            let recorded = recorder.record(&reference, log);
            let both = [(false, reference), (true, recorded)];
            targets.extend(both.map(|(is_recorded, reference)| Target {
                server,
                version,
                is_recorded,
                reference,
            }));
        }
    }
    targets
}

fn by_us(client: &str, order: ByteOrder, targets: &[Target]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for target in targets {
        // A connection agrees on code sets once, by its first request, and all versions of a server have one address.
        let orb = Orb::builder().byte_order(order).build();
        let orb = orb.expect("nothing is opened");
        let object = orb
            .string_to_object(&target.reference)
            .expect("a reference");
        let echo = Echo::unchecked_narrow(object).with_timeout(PATIENCE);
        let said = ours::check(&echo).into_iter();
        let line = |(operation, said)| format!("{}\t{operation}\t{said}", target.word());
        cells.extend(said.map(|it| cell_of(client, &line(it))));
    }
    cells
}

/// The cell of a line that a client prints.
fn cell_of(client: &str, line: &str) -> Cell {
    let mut words = line.split(['\t', '/']);
    let mut word = || {
        words
            .next()
            .unwrap_or_else(|| panic!("{client}: {line}"))
            .to_owned()
    };
    Cell {
        client: client.to_owned(),
        server: word(),
        version: word(),
        is_recorded: word() == "recorded",
        operation: word(),
        said: word(),
    }
}

/// The cells as lines, those with one client, server and answer together.
fn listed<'c>(cells: impl Iterator<Item = &'c Cell>) -> String {
    let mut groups: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for cell in cells {
        let path = if cell.is_recorded { "r" } else { "" };
        let key = (&cell.operation, &cell.client, &cell.server, &cell.said);
        groups
            .entry(key)
            .or_default()
            .push(format!("{}{path}", cell.version));
    }
    groups
        .iter()
        .fold(String::new(), |mut text, (key, versions)| {
            let (operation, client, server, said) = key;
            let _ = writeln!(
                text,
                "{operation}: {client} -> {server} {}: {said}",
                versions.join(",")
            );
            text
        })
}

/// Tries all cells of the Python package, as client of all servers and as server of all clients, directly.
fn tried_with_python(python: &Participant) -> Option<Vec<Cell>> {
    let stage = Stage::start()?;
    let (_serving, at) = python.serve(&stage.scratch);
    let targets = direct(&[("Python", at)]);
    let to_python = stage.write("python", &targets);
    let to_others = stage.write("others", &direct(&stage.servers));
    let mut cells = by_us("rtorb", ByteOrder::Little, &targets);
    cells.extend(by_us("rtorb-big", ByteOrder::Big, &targets));
    let calls = stage.peers.iter().map(|it| (it, &to_python));
    for (client, file) in calls.chain([(python, &to_python), (python, &to_others)]) {
        cells.extend(stage.called_by(client, file));
    }
    Some(cells)
}

/// The servers in each version, without a recorder.
fn direct(servers: &[(&'static str, String)]) -> Vec<Target> {
    let versions = [Version::V1_0, Version::V1_1, Version::V1_2];
    let target = |(server, reference): &(&'static str, String)| {
        versions.map(|version| Target {
            server,
            version,
            is_recorded: false,
            reference: in_version(reference, version),
        })
    };
    servers.iter().flat_map(target).collect()
}

#[test]
fn every_type_passes_between_python_and_all_orbs_as_between_them_and_us() {
    let Some(python) = python() else {
        eprintln!("not run: RTORB_PYTHON names the interpreter that `cargo xtask python` prints");
        return;
    };
    let start = Instant::now();
    let Some(cells) = tried_with_python(&python) else {
        return;
    };
    println!("{} cells in {:?}", cells.len(), start.elapsed());
    assert!(cells.len() > 1000, "{}", cells.len());
    let known = Known::read();
    let as_ours = |name: &str| name.replace("Python", "rtorb");
    let unknown = cells.iter().filter(|it| {
        let ours = Cell {
            client: as_ours(&it.client),
            server: as_ours(&it.server),
            ..(*it).clone()
        };
        it.said != "ok" && !known.of_place(&ours)
    });
    let unknown = listed(unknown);
    assert!(
        unknown.is_empty(),
        "not in known_differences.toml:\n{unknown}"
    );
}

#[test]
fn every_type_passes_between_all_orbs_or_is_a_known_difference() {
    if std::env::var_os("RTORB_MATRIX").is_none() {
        eprintln!("not run: the matrix is a command of its own, with RTORB_MATRIX=1");
        return;
    }
    let start = Instant::now();
    let Some(cells) = tried() else { return };
    println!("{} cells in {:?}", cells.len(), start.elapsed());
    let known = Known::read();
    let unknown = cells
        .iter()
        .filter(|it| it.said != "ok" && known.of(it).is_none());
    let unknown = listed(unknown);
    assert!(
        unknown.is_empty(),
        "not in known_differences.toml:\n{unknown}"
    );
    let gone = cells
        .iter()
        .filter(|it| it.said == "ok" && known.of_place(it));
    let gone = listed(gone);
    assert!(
        gone.is_empty(),
        "known differences that do not occur:\n{gone}"
    );
    page::check(&cells, &known);
    assert!(start.elapsed() < Duration::from_secs(600));
}
