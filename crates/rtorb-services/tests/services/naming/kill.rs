//! A naming service that is killed at any moment, again and again, while clients change names: nothing that it acknowledged is
//! lost, and nothing is there that nobody asked for.
//!
//! `RTORB_NAMING_KILLS` is how often it is killed; without it, 20 times. `PROPTEST_RNG_SEED` repeats the moments and the
//! changes of a run, as far as the scheduler lets it.

use super::random::Random;
use super::serving::name;
use rtorb::{CompletionStatus, ExceptionKind, Orb, SystemException};
use rtorb_services::naming::{NamingConfig, NamingService};
use rtorb_services::stubs::naming::cos_naming::{
    NamingContext, NamingContextBindError, NamingContextExt, NamingContextRebindError,
    NamingContextResolveError, NamingContextUnbindError,
};
use rtorb_tests::ours::absent_object;
use rtorb_tests::running::until;
use rtorb_tests::server_process::{
    ServerProcess, end_with_the_test, from_environment, lasting_port, say_ready,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_service_killed_at_any_moment_loses_nothing_that_it_acknowledged() {
    let kills: u32 = from_environment(KILLS).unwrap_or(20);
    let seed =
        from_environment("PROPTEST_RNG_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("{kills} kills, PROPTEST_RNG_SEED={seed}");
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("names.redb");
    let endpoint = format!("iiop://127.0.0.1:{}", lasting_port());
    let mut random = Random::new(seed);
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer::new(number, random.next()))
        .collect();
    let mut tally = Tally::default();
    let acknowledged = &AtomicU64::new(0);
    for kill in 0..kills {
        let mut killed = Killed::start(&store, &endpoint);
        // Now and then while it loads the store or repairs it.
        if random.below(6) == 0 {
            std::thread::sleep(random.up_to(Duration::from_millis(30)));
            killed.0.kill();
            tally.before_ready += 1;
            killed = Killed::start(&store, &endpoint);
        }
        let root = killed.wait_until_ready();
        for writer in &mut writers {
            writer.check(&root, &mut tally);
        }
        let life = random.up_to(Duration::from_millis(60));
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let root = root.clone();
                scope.spawn(move || writer.change_until_it_fails(&root, acknowledged));
            }
            std::thread::sleep(life);
            if kill + 1 == kills {
                // On a busy host no life before may have been long enough.
                until("a change is acknowledged", || {
                    (acknowledged.load(Ordering::SeqCst) > 0).then_some(())
                });
            }
            killed.0.kill();
        });
        tally.acknowledged += acknowledged.swap(0, Ordering::SeqCst);
        if (kill + 1) % 100 == 0 {
            println!("{} kills: {tally:?}", kill + 1);
        }
    }
    let mut last = Killed::start(&store, &endpoint);
    let root = last.wait_until_ready();
    for writer in &mut writers {
        writer.check(&root, &mut tally);
    }
    println!("{kills} kills: {tally:?}");
}

#[test]
fn a_service_killed_while_it_makes_its_store_can_make_it_again() {
    let starts = from_environment(KILLS).unwrap_or(20) / 2;
    let endpoint = format!("iiop://127.0.0.1:{}", lasting_port());
    let mut random = Random::new(u64::from(std::process::id()));
    for _ in 0..starts {
        let directory = tempfile::tempdir().expect("a directory");
        let store = directory.path().join("names.redb");
        let mut killed = Killed::start(&store, &endpoint);
        std::thread::sleep(random.up_to(Duration::from_millis(20)));
        killed.0.kill();
        let mut second = Killed::start(&store, &endpoint);
        let root = second.wait_until_ready();
        let (listed, _) = root.list(1).expect("a list");
        assert!(listed.is_empty());
    }
}

/// What a run saw.
#[derive(Debug, Default)]
struct Tally {
    /// Kills before the service was ready, beside the others.
    before_ready: u64,
    /// Changes that were acknowledged.
    acknowledged: u64,
    /// Changes in flight when the service was killed, of which the next one had made.
    in_flight_made: u64,
    /// The same that it had not made.
    in_flight_not_made: u64,
    /// Names looked up in a service started again.
    looked_up: u64,
    /// Contexts without a name found there again.
    orphans: u64,
}

/// A client with names of its own, in a context of its own.
struct Writer {
    number: u32,
    random: Random,
    client: Orb,
    /// What each name is bound to, as far as acknowledged: the number in the object's key.
    bound: Vec<Option<u64>>,
    next_value: u64,
    /// The change that got no answer: a name, and what it would be bound to.
    in_flight: Option<(usize, Option<u64>)>,
    /// Contexts without a name that it made.
    orphans: Vec<NamingContext>,
    /// One that it was ending.
    ending: Option<NamingContext>,
}

impl Writer {
    fn new(number: u32, seed: u64) -> Self {
        Self {
            number,
            random: Random::new(seed),
            client: client(),
            bound: vec![None; NAMES],
            next_value: 0,
            in_flight: None,
            orphans: Vec::new(),
            ending: None,
        }
    }

    /// Changes names until the service is gone, and counts the changes that it acknowledged.
    fn change_until_it_fails(&mut self, root: &NamingContextExt, acknowledged: &AtomicU64) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let changed = match self.random.below(8) {
                0 => self.change_orphans(root),
                _ => self.change_a_name(root),
            };
            match changed {
                Ok(()) => {
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                Err(exception) => {
                    let is_end = matches!(
                        exception.kind,
                        ExceptionKind::CommFailure | ExceptionKind::Transient
                    );
                    assert!(is_end, "writer {}: {exception}", self.number);
                    return;
                }
            }
        }
        panic!(
            "writer {}: the service was not killed in {PATIENCE:?}",
            self.number
        );
    }

    fn change_a_name(&mut self, root: &NamingContextExt) -> Result<(), SystemException> {
        let index = self.random.below(NAMES as u64) as usize;
        let at = name(&self.name(index));
        let value = match self.bound[index] {
            Some(_) if self.random.below(3) == 0 => None,
            _ => {
                self.next_value += 1;
                Some(self.next_value)
            }
        };
        self.in_flight = Some((index, value));
        let thing = value.map(|value| absent_object(&self.client, &value.to_string()));
        let made = match (self.bound[index], &thing) {
            (None, thing) => match root.bind(&at, thing.as_ref()) {
                // The context is not there yet.
                Err(NamingContextBindError::NotFound(_)) => {
                    self.in_flight = None;
                    return self.make_context(root);
                }
                Err(NamingContextBindError::System(exception)) => Err(exception),
                Err(other) => panic!("{other}"),
                Ok(()) => Ok(()),
            },
            (Some(_), Some(thing)) => match root.rebind(&at, Some(thing)) {
                Err(NamingContextRebindError::System(exception)) => Err(exception),
                Err(other) => panic!("{other}"),
                Ok(()) => Ok(()),
            },
            (Some(_), None) => match root.unbind(&at) {
                Err(NamingContextUnbindError::System(exception)) => Err(exception),
                Err(other) => panic!("{other}"),
                Ok(()) => Ok(()),
            },
        };
        match made {
            Ok(()) => self.bound[index] = value,
            // Certainly not made.
            Err(exception) if exception.completed == CompletionStatus::No => {
                self.in_flight = None;
                return Err(exception);
            }
            Err(exception) => return Err(exception),
        }
        self.in_flight = None;
        Ok(())
    }

    fn make_context(&self, root: &NamingContextExt) -> Result<(), SystemException> {
        use rtorb_services::stubs::naming::cos_naming::NamingContextBindNewContextError as Error;
        match root.bind_new_context(&name(&self.context())) {
            Err(Error::System(exception)) => Err(exception),
            other => {
                other.expect("made");
                Ok(())
            }
        }
    }

    fn change_orphans(&mut self, root: &NamingContextExt) -> Result<(), SystemException> {
        if self.orphans.len() < ORPHANS {
            self.orphans.extend(root.new_context()?);
            return Ok(());
        }
        let index = self.random.below(ORPHANS as u64) as usize;
        self.ending = Some(self.orphans.swap_remove(index));
        use rtorb_services::stubs::naming::cos_naming::NamingContextDestroyError as Error;
        match self.ending.as_ref().map(NamingContext::destroy) {
            Some(Err(Error::System(exception))) => return Err(exception),
            other => other.unwrap_or(Ok(())).expect("destroyed"),
        }
        self.ending = None;
        Ok(())
    }

    /// Compares what is there with what was acknowledged, and takes over what became of the change in flight.
    fn check(&mut self, root: &NamingContextExt, tally: &mut Tally) {
        for index in 0..NAMES {
            let there = self.look_up(root, index);
            tally.looked_up += 1;
            match self.in_flight.take_if(|(in_flight, _)| *in_flight == index) {
                Some((_, wanted)) if there == wanted => tally.in_flight_made += 1,
                Some(_) if there == self.bound[index] => tally.in_flight_not_made += 1,
                _ => assert_eq!(
                    there,
                    self.bound[index],
                    "{}: not as acknowledged",
                    self.name(index)
                ),
            }
            self.bound[index] = there;
        }
        // What is there beside: nothing.
        let expected: BTreeSet<String> = (0..NAMES)
            .filter(|index| self.bound[*index].is_some())
            .map(|index| format!("n{index}"))
            .collect();
        assert_eq!(self.list(root), expected, "writer {}", self.number);
        self.ending = None;
        for orphan in &self.orphans {
            let object = root
                .as_object()
                .orb()
                .string_to_object(&orphan.as_object().to_string());
            let orphan = NamingContext::unchecked_narrow(object.expect("a reference"));
            let (listed, _) = orphan.list(1).expect("a context without a name");
            assert!(listed.is_empty());
            tally.orphans += 1;
        }
    }

    fn look_up(&self, root: &NamingContextExt, index: usize) -> Option<u64> {
        match root.resolve(&name(&self.name(index))) {
            Ok(found) => {
                let found = found.expect("a reference");
                let profile = found.ior().iiop_profiles().next().expect("a profile");
                let key = String::from_utf8(profile.object_key).expect("a number");
                Some(key.parse().expect("a number"))
            }
            Err(NamingContextResolveError::NotFound(_)) => None,
            Err(other) => panic!("{}: {other}", self.name(index)),
        }
    }

    fn list(&self, root: &NamingContextExt) -> BTreeSet<String> {
        let context = match root.resolve(&name(&self.context())) {
            Ok(context) => NamingContext::unchecked_narrow(context.expect("a context")),
            Err(NamingContextResolveError::NotFound(_)) => return BTreeSet::new(),
            Err(other) => panic!("{other}"),
        };
        let (listed, more) = context.list(2 * NAMES as u32).expect("a list");
        assert!(more.is_none());
        let ids = listed.into_iter().map(|mut b| b.binding_name.remove(0).id);
        ids.collect()
    }

    fn context(&self) -> String {
        format!("writer{}", self.number)
    }

    fn name(&self, index: usize) -> String {
        format!("{}/n{index}", self.context())
    }
}

/// A naming service in a process that is to be killed.
struct Killed(ServerProcess);

impl Killed {
    fn start(store: &Path, endpoint: &str) -> Self {
        let store = store.to_str().expect("a folder of the tests");
        let variables = [(STORE, store), (ENDPOINT, endpoint)];
        Self(ServerProcess::start(
            "naming::kill::serve_until_killed",
            &variables,
        ))
    }

    /// The root, as a new client has it.
    fn wait_until_ready(&mut self) -> NamingContextExt {
        let object = client().string_to_object(&self.0.reference());
        NamingContextExt::unchecked_narrow(object.expect("a reference"))
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
    let naming = NamingService::serve(&orb, NamingConfig::stored_at(store)).expect("a service");
    orb.root_poa().expect("an adapter").manager().activate();
    say_ready(naming.reference().as_object());
    orb.run().expect("an ORB that runs");
}

fn client() -> Orb {
    Orb::builder().build().expect("a client")
}

/// How often the service is killed.
const KILLS: &str = "RTORB_NAMING_KILLS";

const WRITERS: u32 = 4;

/// Names of a writer.
const NAMES: usize = 40;

/// Contexts without a name of a writer.
const ORPHANS: usize = 8;

/// How long a writer goes on without the service being killed.
const PATIENCE: Duration = Duration::from_secs(30);

const STORE: &str = "RTORB_NAMING_TEST_STORE";
const ENDPOINT: &str = "RTORB_NAMING_TEST_ENDPOINT";
