//! Two naming services and their etcd, each killed at any moment, again and again, while clients change names: nothing that was
//! acknowledged is lost, and the clients go on.
//!
//! `RTORB_ETCD_KILLS` is how often one is killed; without it, 6 times. `RTORB_ETCD_NAMES` is how many names are there besides, 200
//! without it; with it, the times of these names are printed beside those of the embedded store. `RTORB_ETCD_DATA` is a folder for the
//! data of both, without it in memory where the host has that.

use super::member::{Member, data_folder, wait_until};
use super::serving::name;
use rtorb::{CompletionStatus, ObjectRef, Orb, SystemException};
use rtorb_etcd::EtcdStore;
use rtorb_services::naming::{NamingConfig, NamingService};
use rtorb_services::stubs::naming::cos_naming::{
    NamingContext, NamingContextBindError, NamingContextExt, NamingContextRebindError,
    NamingContextResolveError, NamingContextUnbindError,
};
use rtorb_tests::ours::absent_object;
use rtorb_tests::running::PATIENCE;
use rtorb_tests::server_process::{
    ServerProcess, end_with_the_test, from_environment, lasting_port, say_ready,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn nothing_acknowledged_is_lost_when_services_and_etcd_are_killed_under_load() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let kills: u32 = from_environment(KILLS).unwrap_or(6);
    let many: Option<u32> = from_environment(NAMES);
    let mut system = System::start(etcd);
    fill("etcd", &system.roots[0], many.unwrap_or(NAMES_USUAL));
    if let Some(many) = many {
        beside_the_embedded_store(many);
    }
    let (writers, acknowledged) = system.kill_under_load(kills);
    let mut seen = BTreeMap::new();
    for writer in &writers {
        for root in &system.roots {
            writer.check(root);
        }
        for (exception, count) in &writer.exceptions {
            *seen.entry(exception.clone()).or_insert(0) += count;
        }
    }
    let unknown: usize = writers.iter().map(|it| it.unknown.len()).sum();
    println!(
        "{kills} kills: acknowledged {acknowledged:?}, unknown {unknown}, exceptions {seen:?}"
    );
    for exception in seen.keys() {
        let is_expected = ["TRANSIENT No", "TRANSIENT Maybe", "COMM_FAILURE Maybe"];
        assert!(is_expected.contains(&&**exception), "{seen:?}");
    }
    // A kill finds one call of each client under way; the next one may find a connection to etcd that is not yet known to be lost.
    assert!(unknown <= 2 * WRITERS * kills as usize, "{unknown} unknown");
    for root in &system.roots {
        let there = list(root);
        let many = many.unwrap_or(NAMES_USUAL) as usize;
        assert_eq!(there, many, "the names that were not changed");
    }
}

/// Two services and their etcd.
struct System {
    etcd: Member,
    url: String,
    endpoints: [String; 2],
    services: [Process; 2],
    /// The root as each service gives it: both have both endpoints.
    roots: [NamingContextExt; 2],
}

impl System {
    fn start(etcd: Member) -> Self {
        let [first, second] = [(); 2].map(|()| lasting_port());
        let endpoints = [(first, second), (second, first)].map(|(own, other)| {
            format!("iiop://127.0.0.1:{own}/publish=127.0.0.1:{own}&publish=127.0.0.1:{other}")
        });
        let url = etcd.url("names");
        let mut services = endpoints
            .each_ref()
            .map(|endpoint| Process::start(&url, endpoint));
        let roots = services.each_mut().map(Process::wait_until_ready);
        Self {
            etcd,
            url,
            endpoints,
            services,
            roots,
        }
    }

    /// Returns the writers, and the number of changes of each that were acknowledged.
    fn kill_under_load(&mut self, kills: u32) -> (Vec<Writer>, [u64; WRITERS]) {
        let is_over = AtomicBool::new(false);
        let acknowledged: [AtomicU64; WRITERS] = Default::default();
        let counts = || acknowledged.each_ref().map(|it| it.load(Ordering::Relaxed));
        let root = self.roots[0].clone();
        let writers = thread::scope(|scope| {
            // The writers end also if a check below fails.
            let end = EndGuard(&is_over);
            let writing: Vec<_> = acknowledged
                .iter()
                .enumerate()
                .map(|(number, acknowledged)| {
                    let (root, is_over) = (&root, &is_over);
                    scope.spawn(move || Writer::new(number, root).run(acknowledged, is_over))
                })
                .collect();
            let all_go_on = || {
                let before = counts();
                wait_until("all clients to go on", || {
                    // One that panicked says why when it is joined.
                    writing.iter().any(thread::ScopedJoinHandle::is_finished)
                        || counts()
                            .iter()
                            .zip(before)
                            .all(|(now, before)| *now > before)
                });
            };
            for kill in 0..kills {
                all_go_on();
                thread::sleep(Duration::from_millis(u64::from(kill * 37 % 100)));
                self.kill(kill, &all_go_on);
            }
            all_go_on();
            drop(end);
            let writers = writing.into_iter().map(|it| it.join().expect("a writer"));
            writers.collect()
        });
        (writers, counts())
    }

    /// Kills one in turn, and starts it again.
    fn kill(&mut self, turn: u32, all_go_on: &dyn Fn()) {
        match turn as usize % 3 {
            2 => {
                self.etcd.kill();
                thread::sleep(Duration::from_millis(u64::from(turn * 53 % 200)));
                self.etcd.start_again();
                self.etcd.wait_until_ready();
            }
            service => {
                self.services[service].0.kill();
                all_go_on();
                let again = Process::start(&self.url, &self.endpoints[service]);
                self.services[service] = again;
                self.services[service].wait_until_ready();
            }
        }
    }
}

/// Ends the writers when dropped.
struct EndGuard<'o>(&'o AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client with names of its own.
struct Writer {
    number: usize,
    client: Orb,
    root: NamingContextExt,
    /// What each name is bound to, as far as acknowledged.
    bound: Vec<Option<u64>>,
    /// Names with what they were bound to, and what they are if the last change was made. They are not changed again.
    unknown: BTreeMap<usize, (Option<u64>, Option<u64>)>,
    exceptions: BTreeMap<String, u64>,
}

impl Writer {
    fn new(number: usize, root: &NamingContextExt) -> Self {
        let client = client();
        let root = client.string_to_object(&root.as_object().to_string());
        let root = NamingContextExt::unchecked_narrow(root.expect("a reference"));
        let root = root.with_timeout(TIMEOUT);
        Self {
            number,
            client,
            root,
            bound: vec![None; 8],
            unknown: BTreeMap::new(),
            exceptions: BTreeMap::new(),
        }
    }

    fn run(mut self, acknowledged: &AtomicU64, is_over: &AtomicBool) -> Self {
        for value in 1.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let mut index = value as usize * 7 % self.bound.len();
            if self.unknown.contains_key(&index) {
                index = self.bound.len();
                self.bound.push(None);
            }
            let old = self.bound[index];
            let new = (old.is_none() || value % 3 > 0).then_some(value);
            match self.change(index, old, new) {
                Ok(()) => {
                    self.bound[index] = new;
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                Err(exception) => {
                    if exception.completed != CompletionStatus::No {
                        self.unknown.insert(index, (old, new));
                    }
                    let text = format!("{} {:?}", exception.kind.name(), exception.completed);
                    *self.exceptions.entry(text).or_default() += 1;
                    thread::sleep(Duration::from_millis(2));
                }
            }
        }
        self
    }

    fn change(
        &self,
        index: usize,
        old: Option<u64>,
        new: Option<u64>,
    ) -> Result<(), SystemException> {
        let at = name(&self.name(index));
        let thing = new.map(|value| absent_object(&self.client, &value.to_string()));
        match (old, thing) {
            (None, thing) => match self.root.bind(&at, thing.as_ref()) {
                Err(NamingContextBindError::System(exception)) => Err(exception),
                Err(other) => panic!("{at:?}: {other:?}"),
                Ok(()) => Ok(()),
            },
            (Some(_), Some(thing)) => match self.root.rebind(&at, Some(&thing)) {
                Err(NamingContextRebindError::System(exception)) => Err(exception),
                Err(other) => panic!("{at:?}: {other:?}"),
                Ok(()) => Ok(()),
            },
            (Some(_), None) => match self.root.unbind(&at) {
                Err(NamingContextUnbindError::System(exception)) => Err(exception),
                Err(other) => panic!("{at:?}: {other:?}"),
                Ok(()) => Ok(()),
            },
        }
    }

    /// Compares its names with those of a service.
    fn check(&self, root: &NamingContextExt) {
        for (index, bound) in self.bound.iter().enumerate() {
            let is_as_acknowledged = |there: Option<u64>| match self.unknown.get(&index) {
                Some((old, new)) => there == *old || there == *new,
                None => there == *bound,
            };
            // The other services may be behind.
            wait_until(&format!("{} to be {bound:?}", self.name(index)), || {
                is_as_acknowledged(look_up(root, &self.name(index)))
            });
        }
    }

    fn name(&self, index: usize) -> String {
        format!("writer{}-{index}", self.number)
    }
}

fn look_up(root: &NamingContextExt, text: &str) -> Option<u64> {
    match root.resolve(&name(text)) {
        Ok(found) => {
            let found = found.expect("a reference");
            let profile = found.ior().iiop_profiles().next().expect("a profile");
            let key = String::from_utf8(profile.object_key).expect("a number");
            Some(key.parse().expect("a number"))
        }
        Err(NamingContextResolveError::NotFound(_)) => None,
        Err(other) => panic!("{text}: {other}"),
    }
}

/// Binds so many names, looks them up and lists them, and prints the times.
fn fill(store: &str, root: &NamingContextExt, names: u32) {
    let context = root.bind_new_context(&name("many")).expect("made");
    drop(context);
    let begun = Instant::now();
    let threads = 16;
    thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                let client = client();
                let thing = absent_object(&client, "thing");
                for number in (first..names).step_by(threads as usize) {
                    bind(root, number, &thing);
                }
            });
        }
    });
    let bound = begun.elapsed();
    let begun = Instant::now();
    for number in 0..names {
        root.resolve(&name(&format!("many/n{number}")))
            .expect("bound");
    }
    let resolved = begun.elapsed();
    let begun = Instant::now();
    assert_eq!(list(root), names as usize);
    let listed = begun.elapsed();
    println!(
        "{store}, {names} names: bound in {bound:?} by {threads} clients, resolved in {resolved:?}, listed in {listed:?}"
    );
}

fn bind(root: &NamingContextExt, number: u32, thing: &ObjectRef) {
    let at = name(&format!("many/n{number}"));
    root.bind(&at, Some(thing)).expect("bound");
}

/// The number of names that `fill` has bound.
fn list(root: &NamingContextExt) -> usize {
    let many = root.resolve(&name("many")).expect("bound");
    let many = NamingContext::unchecked_narrow(many.expect("a context"));
    let (first, more) = many.list(1_000).expect("a list");
    let mut count = first.len();
    if let Some(more) = more {
        while let Ok((true, next)) = more.next_n(1_000) {
            count += next.len();
        }
    }
    count
}

fn beside_the_embedded_store(names: u32) {
    let folder = data_folder();
    let store = folder.path().join("names.redb");
    let store = store.to_str().expect("text");
    let endpoint = format!("iiop://127.0.0.1:{}", lasting_port());
    let mut service = Process::start(store, &endpoint);
    fill("embedded", &service.wait_until_ready(), names);
}

/// A naming service in a process that is to be killed.
struct Process(ServerProcess);

impl Process {
    fn start(store: &str, endpoint: &str) -> Self {
        let variables = [(STORE, store), (ENDPOINT, endpoint)];
        Self(ServerProcess::start("kill::serve_until_killed", &variables))
    }

    /// The root, as a new client has it.
    fn wait_until_ready(&mut self) -> NamingContextExt {
        let object = client().string_to_object(&self.0.reference());
        NamingContextExt::unchecked_narrow(object.expect("a reference")).with_timeout(TIMEOUT)
    }
}

/// Not a test: what the test starts in a process of its own.
#[test]
#[ignore = "started by the test beside it"]
fn serve_until_killed() {
    let (Ok(store), Ok(endpoint)) = (std::env::var(STORE), std::env::var(ENDPOINT)) else {
        return;
    };
    end_with_the_test();
    let orb = Orb::builder().listen(&endpoint).build().expect("an ORB");
    let naming = if store.starts_with("etcd://") {
        let store = Arc::new(EtcdStore::open(&store).expect("a store"));
        NamingService::serve_shared(&orb, NamingConfig::default(), store)
    } else {
        NamingService::serve(&orb, NamingConfig::stored_at(store))
    };
    let naming = naming.expect("a service");
    orb.root_poa().expect("an adapter").manager().activate();
    say_ready(naming.reference().as_object());
    orb.run().expect("an ORB that runs");
}

fn client() -> Orb {
    Orb::builder().build().expect("a client")
}

const KILLS: &str = "RTORB_ETCD_KILLS";
const NAMES: &str = "RTORB_ETCD_NAMES";

/// Names beside those of the clients, without the variable.
const NAMES_USUAL: u32 = 200;

const WRITERS: usize = 4;

/// Of a call.
const TIMEOUT: Duration = PATIENCE;

const STORE: &str = "RTORB_ETCD_TEST_STORE";
const ENDPOINT: &str = "RTORB_ETCD_TEST_ENDPOINT";
