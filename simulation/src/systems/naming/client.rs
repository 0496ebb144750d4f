//! A client of a naming service, and what it knows of its names.

use crate::random::Random;
use crate::systems::call_end::{ENOUGH, check_end, fail};
use crate::world;
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, Orb, SystemException};
use rtorb_services::naming::client::{Context, Existing, Failure, FailureReason, Name, parse_name};
use std::thread;
use std::time::Duration;

/// A client with a context of its own, and names in it.
#[derive(Debug)]
pub(super) struct Client {
    number: u64,
    random: Random,
    orb: Orb,
    /// The context's is the first.
    names: Vec<NameState>,
    next_value: u64,
    /// Changes that were acknowledged.
    pub(super) made: u64,
}

/// What a name may be bound to.
#[derive(Clone, Debug, Default)]
struct NameState {
    value: Option<u64>,
    /// What a change would bind it to that may have been made.
    or: Option<Option<u64>>,
}

/// What a client may expect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// The disk refuses nothing.
    pub(super) is_disk_sound: bool,
    /// Nothing prevents calls from success.
    pub(super) is_sound: bool,
}

/// The names of a client beside that of its context.
const NAMES: u64 = 4;
/// The changes of a client at most, as long as one service runs.
const CHANGES_MAX: u64 = 8;

impl Client {
    pub(super) fn new(number: u64, random: Random) -> Self {
        Self {
            number,
            random,
            orb: Orb::builder().build().expect("the ORB can be built"),
            names: vec![NameState::default(); 1 + NAMES as usize],
            next_value: 0,
            made: 0,
        }
    }

    pub(super) fn has_context(&self) -> bool {
        self.names[0].value.is_some()
    }

    /// The number of names that are bound.
    pub(super) fn count(&self) -> usize {
        let bound = self.names.iter().filter(|name| name.value.is_some());
        bound.count()
    }

    /// Each name is bound as it was acknowledged. Only then it is known what became of a change without an answer.
    pub(super) fn check(&mut self, orb: &Orb, reference: &str) {
        let root = root(orb, reference, ENOUGH).expect("nothing disturbs the call");
        for place in 0..self.names.len() {
            let there = match root.resolve(&self.name(place)) {
                Ok(object) => Some(if place == 0 { 0 } else { value(object) }),
                Err(failure) if is_missing(&failure) => None,
                Err(failure) => fail(&format!("a name cannot be resolved: {failure}")),
            };
            let NameState { value, or } = self.names[place];
            if there != value && Some(there) != or {
                let number = self.number;
                fail(&format!(
                    "name {place} of client {number} is bound to {there:?} instead of {value:?} or {or:?}"
                ));
            }
            self.names[place] = NameState {
                value: there,
                or: None,
            };
        }
    }

    /// Makes changes, one after the other.
    pub(super) fn change(&mut self, reference: &str, conditions: Conditions) {
        for _ in 0..1 + self.random.below(CHANGES_MAX) {
            let timeout = if conditions.is_sound {
                ENOUGH
            } else {
                Duration::from_micros(self.random.choose(&[300, 3_000, 30_000, 2_000_000]))
            };
            let begun_ns = world::now_ns();
            let root = root(&self.orb, reference, timeout);
            check_end("a question for a type", begun_ns, timeout, &root);
            let root = match root {
                Ok(root) => root,
                Err(failure) => {
                    check_failure(&failure, conditions);
                    continue;
                }
            };
            let place = if self.has_context() {
                1 + self.random.below(NAMES) as usize
            } else {
                0
            };
            // A change without an answer may still be made.
            if self.names[place].or.is_some() {
                continue;
            }
            let begun_ns = world::now_ns();
            let outcome = self.change_one(&root, place);
            check_end("a change of a name", begun_ns, timeout, &outcome);
            match outcome {
                Ok(()) => self.look_up(&root, place, conditions),
                Err(failure) => check_failure(&failure, conditions),
            }
            if self.random.one_in(3) {
                thread::sleep(Duration::from_nanos(self.random.below(3_000_000)));
            }
        }
    }

    /// Changes a name, and notes what is known of it then.
    fn change_one(&mut self, root: &Context, place: usize) -> Result<(), Failure> {
        let name = self.name(place);
        let is_bound = self.names[place].value.is_some();
        let wanted = if place == 0 {
            Some(0)
        } else {
            self.next_value += 1;
            Some(self.next_value).filter(|_| !is_bound || !self.random.one_in(3))
        };
        let outcome = match wanted {
            Some(_) if place == 0 => root.bind_new_context(&name).map(drop),
            Some(value) => {
                let existing = if is_bound {
                    Existing::Replace
                } else {
                    Existing::Keep
                };
                root.bind(&name, &object(&self.orb, value), existing)
            }
            None => root.unbind(&name),
        };
        let bound = &mut self.names[place];
        match &outcome {
            Ok(()) => {
                bound.value = wanted;
                self.made += 1;
            }
            Err(failure) if completion(failure) == CompletionStatus::No => {}
            Err(_) => bound.or = Some(wanted),
        }
        outcome
    }

    /// An acknowledged change is seen at once.
    fn look_up(&self, root: &Context, place: usize, conditions: Conditions) {
        let wanted = self.names[place].value;
        let there = match root.resolve(&self.name(place)) {
            Ok(object) => Some(if place == 0 { 0 } else { value(object) }),
            Err(failure) if is_missing(&failure) => None,
            Err(failure) => return check_failure(&failure, conditions),
        };
        if there != wanted {
            fail(&format!(
                "a name is bound to {there:?}, and a change to {wanted:?} was acknowledged"
            ));
        }
    }

    fn name(&self, place: usize) -> Name {
        let number = self.number;
        let text = if place == 0 {
            format!("client{number}")
        } else {
            format!("client{number}/name{place}")
        };
        parse_name(&text).expect("it is a name")
    }
}

/// The root context, which is asked for its type.
fn root(orb: &Orb, reference: &str, timeout: Duration) -> Result<Context, Failure> {
    let object = orb.string_to_object(reference).expect("it is a reference");
    Context::narrow(&object.with_timeout(timeout))
}

/// An object whose key is the value.
fn object(orb: &Orb, value: u64) -> ObjectRef {
    let object = orb.string_to_object(&format!("corbaloc:iiop:127.0.0.1:9/{value}"));
    object.expect("it is a reference")
}

fn value(object: Option<ObjectRef>) -> u64 {
    let profile = object.and_then(|object| object.ior().iiop_profiles().next());
    let key = profile.and_then(|profile| String::from_utf8(profile.object_key).ok());
    let value = key.and_then(|key| key.parse().ok());
    value.unwrap_or_else(|| fail("a name is bound to what no client has bound"))
}

fn is_missing(failure: &Failure) -> bool {
    matches!(failure.reason, FailureReason::MissingNode(_))
}

/// A user exception says that nothing was changed.
fn completion(failure: &Failure) -> CompletionStatus {
    match &failure.reason {
        FailureReason::System(SystemException { completed, .. }) => *completed,
        _ => CompletionStatus::No,
    }
}

/// The failure of a call is one that the conditions allow.
fn check_failure(failure: &Failure, conditions: Conditions) {
    let is_system = matches!(failure.reason, FailureReason::System(_));
    let is_disk = matches!(
        &failure.reason,
        FailureReason::System(exception) if exception.kind == ExceptionKind::PersistStore
    );
    if !is_system || conditions.is_sound || is_disk && conditions.is_disk_sound {
        fail(&format!("a call fails, and nothing disturbs it: {failure}"));
    }
}
