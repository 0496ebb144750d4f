//! What a service is told of the commits of others.

use super::member::{Member, wait_until};
use rtorb_etcd::EtcdStore;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::naming::shared_store::{
    CommitOutcome, Follower, SharedCommit, SharedSnapshot, SharedStore, SharedWrites,
};
use rtorb_tests::server_process::lasting_port;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// What a follower was told.
#[derive(Debug, Default)]
struct Told {
    events: Mutex<Vec<Event>>,
    found: AtomicUsize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Committed(u64, SharedWrites),
    Replaced(SharedSnapshot),
}

impl Follower for Told {
    fn committed(&self, revision: u64, commit: &SharedWrites) {
        let event = Event::Committed(revision, commit.clone());
        self.events.lock().expect("no panic").push(event);
    }

    fn replaced(&self, snapshot: &SharedSnapshot) {
        let event = Event::Replaced(snapshot.clone());
        self.events.lock().expect("no panic").push(event);
    }

    fn lost(&self, why: &str) {
        println!("lost: {why}");
    }

    fn found(&self) {
        self.found.fetch_add(1, Ordering::Relaxed);
    }
}

impl Told {
    fn follow(store: &EtcdStore, revision: u64) -> Arc<Self> {
        let told = Arc::new(Self::default());
        let weak: Weak<Self> = Arc::downgrade(&told);
        store.follow(revision, weak);
        told
    }

    /// Waits until it follows for the `count`th time.
    fn wait_until_found(&self, count: usize) {
        wait_until("the watch", || self.found.load(Ordering::Relaxed) >= count);
    }

    fn wait_for(&self, count: usize) -> Vec<Event> {
        wait_until("what is told", || {
            self.events.lock().expect("no panic").len() >= count
        });
        self.events.lock().expect("no panic").clone()
    }
}

fn writes(mark: &str, writes: &[(&str, Option<&str>)]) -> SharedWrites {
    let written = |(key, value): &(&str, Option<&str>)| {
        (
            format!("bindings/{key}"),
            value.map(|value| value.as_bytes().to_vec()),
        )
    };
    SharedWrites {
        mark: mark.as_bytes().to_vec(),
        writes: writes.iter().map(written).collect(),
    }
}

fn has_etcdctl() -> bool {
    let is_there = Command::new("etcdctl").arg("version").output().is_ok();
    if !is_there {
        rtorb_tests::skip("etcdctl is not installed: install Debian's etcd-client");
    }
    is_there
}

fn compact(etcd: &Member, revision: u64) {
    let compacted = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &etcd.endpoint()])
        .args(["compaction", &revision.to_string()])
        .output()
        .expect("etcdctl");
    assert!(compacted.status.success(), "{compacted:?}");
}

fn commit(store: &EtcdStore, base: u64, writes: &SharedWrites) -> u64 {
    let commit = SharedCommit {
        base,
        writes: writes.clone(),
    };
    let deadline_ns = monotonic_ns() + 60_000_000_000;
    match store.commit(&commit, deadline_ns) {
        Ok(CommitOutcome::Made(revision)) => revision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn commits_are_told_whole_and_in_order_and_only_the_first_on_a_revision_is_made() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let [one, two] = [(); 2].map(|()| EtcdStore::open(&etcd.url("names")).expect("a store"));
    let empty = one.load().expect("etcd answers");
    assert_eq!(empty, SharedSnapshot::default());
    let told = Told::follow(&two, 0);
    let first = writes("1", &[("a", Some("x")), ("b", Some("y"))]);
    let first_at = commit(&one, 0, &first);
    let second = writes("2", &[("a", None), ("z", Some(""))]);
    let second_at = commit(&two, first_at, &second);
    assert!(second_at > first_at);
    let events = [
        Event::Committed(first_at, first.clone()),
        Event::Committed(second_at, second),
    ];
    assert_eq!(told.wait_for(2), events);

    let late = SharedCommit {
        base: first_at,
        writes: first,
    };
    let nothing = SharedCommit {
        base: first_at,
        writes: writes("3", &[]),
    };
    for behind in [&late, &nothing] {
        let outcome = one.commit(behind, monotonic_ns() + 60_000_000_000);
        assert_eq!(outcome, Ok(CommitOutcome::Behind(second_at)));
    }
    assert_eq!(commit(&one, second_at, &writes("4", &[])), second_at);
    let there = one.load().expect("etcd answers");
    let entries = [("b", "y"), ("z", "")];
    let entries =
        entries.map(|(key, value)| (format!("bindings/{key}"), value.as_bytes().to_vec()));
    assert_eq!(there.entries, entries);
    assert_eq!((there.revision, &*there.mark), (second_at, &b"2"[..]));
}

#[test]
fn a_follower_whose_revision_etcd_does_not_have_gets_a_snapshot_and_then_commits() {
    let Some(etcd) = Member::start() else {
        return;
    };
    if !has_etcdctl() {
        return;
    }
    let store = EtcdStore::open(&etcd.url("names")).expect("a store");
    // More than a page.
    let mut revision = commit(&store, 0, &writes("0", &[("a", Some("x"))]));
    let forgotten = revision;
    for part in 0..22 {
        let keys: Vec<_> = (0..100).map(|it| format!("k{part:02}-{it:02}")).collect();
        let keys: Vec<_> = keys.iter().map(|key| (&**key, Some("v"))).collect();
        revision = commit(&store, revision, &writes("n", &keys));
    }
    compact(&etcd, revision);
    let told = Told::follow(&store, forgotten);
    let Event::Replaced(snapshot) = told.wait_for(1).remove(0) else {
        panic!("{told:?}");
    };
    assert_eq!(snapshot, store.load().expect("etcd answers"));
    assert_eq!(
        (snapshot.entries.len(), snapshot.revision),
        (2_201, revision)
    );
    let next = writes("m", &[("a", None)]);
    let next_at = commit(&store, revision, &next);
    assert_eq!(told.wait_for(2)[1], Event::Committed(next_at, next));
    // As if etcd was restored from an earlier copy.
    let ahead = Told::follow(&store, next_at + 1_000);
    let there = store.load().expect("etcd answers");
    assert_eq!(ahead.wait_for(1), [Event::Replaced(there)]);
}

#[test]
fn a_follower_needs_no_snapshot_though_what_others_write_is_compacted() {
    let Some(mut etcd) = Member::start() else {
        return;
    };
    if !has_etcdctl() {
        return;
    }
    let open = |etcd: &Member, prefix| EtcdStore::open(&etcd.url(prefix)).expect("a store");
    let names = open(&etcd, "names");
    let first_at = commit(&names, 0, &writes("1", &[("a", Some("x"))]));
    let mut others_at = 0;
    let mut compact_others = |etcd: &Member| {
        for _ in 0..3 {
            let others = open(etcd, "others");
            others_at = commit(&others, others_at, &writes("o", &[("o", Some("o"))]));
        }
        compact(etcd, others_at);
    };
    compact_others(&etcd);
    let told = Told::follow(&names, first_at);
    told.wait_until_found(1);
    let second = writes("2", &[("b", Some("y"))]);
    let second_at = commit(&names, first_at, &second);
    told.wait_for(1);
    compact_others(&etcd);
    etcd.kill();
    etcd.start_again();
    etcd.wait_until_ready();
    told.wait_until_found(2);
    let third = writes("3", &[("a", None)]);
    let third_at = commit(&open(&etcd, "names"), second_at, &third);
    let events = [
        Event::Committed(second_at, second),
        Event::Committed(third_at, third),
    ];
    assert_eq!(told.wait_for(2), events);
}

#[test]
fn an_etcd_that_was_restored_from_a_copy_is_noticed_though_new_commits_overtake_the_old_ones() {
    let Some(mut etcd) = Member::start() else {
        return;
    };
    let open = |etcd: &Member| EtcdStore::open(&etcd.url("names")).expect("a store");
    let first_at = commit(&open(&etcd), 0, &writes("1", &[("a", Some("x"))]));
    etcd.kill();
    let copy = etcd.copy_data();
    etcd.start_again();
    etcd.wait_until_ready();
    let followed = open(&etcd);
    let told = Told::follow(&followed, first_at);
    let second = writes("2", &[("lost", Some("y"))]);
    let second_at = commit(&open(&etcd), first_at, &second);
    assert_eq!(told.wait_for(1), [Event::Committed(second_at, second)]);
    etcd.kill();
    etcd.replace_data(copy);
    // The follower does not reach it before there are other commits.
    let port = etcd.set_client_port(lasting_port());
    etcd.start_again();
    etcd.wait_until_ready();
    let mut revision = first_at;
    for mark in ["other", "another"] {
        revision = commit(&open(&etcd), revision, &writes(mark, &[("b", Some("z"))]));
    }
    assert!(revision > second_at);
    etcd.kill();
    etcd.set_client_port(port);
    etcd.start_again();
    etcd.wait_until_ready();
    let there = open(&etcd).load().expect("etcd answers");
    assert_eq!(told.wait_for(2)[1], Event::Replaced(there));
}

#[test]
fn a_store_is_not_disturbed_by_another_below_its_prefix() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let open = |prefix| EtcdStore::open(&etcd.url(prefix)).expect("a store");
    let [outer, inner] = ["plant", "plant/names"].map(open);
    commit(&inner, 0, &writes("1", &[("inner", Some("x"))]));
    assert_eq!(outer.load(), Ok(SharedSnapshot::default()));
    let told = Told::follow(&outer, 0);
    let first = writes("2", &[("outer", Some("y"))]);
    let first_at = commit(&outer, 0, &first);
    assert_eq!(told.wait_for(1), [Event::Committed(first_at, first)]);
}
