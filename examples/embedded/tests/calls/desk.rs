//! What the Cubit does not have: exceptions of both kinds, attributes, inheritance, text, out parameters, and references.

use super::link::{MESSAGE_BYTES_MAX, client, pair};
use core::sync::atomic::{AtomicI32, Ordering};
use rtorb_embedded::{
    CompletionStatus, ExceptionKind, FixedPriority, Object, ObjectRef, Server, SystemException, Tie,
};
use rtorb_embedded_cubit::exchange::{
    Desk, DeskRefuseError, DeskServant, Empty, Party, PartyServant, Person, Refused, Texts,
};
use std::thread;

/// A desk whose level is 7 at first.
struct Echo {
    level: AtomicI32,
    notes: AtomicI32,
}

const KEY: &[u8] = b"desk";

impl PartyServant for Echo {
    fn name(&self) -> Result<String, SystemException> {
        Ok("embedded".to_owned())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::Relaxed))
    }

    fn set_level(&self, value: i32) -> Result<(), SystemException> {
        self.level.store(value, Ordering::Relaxed);
        Ok(())
    }
}

impl DeskServant for Echo {
    fn echo_string(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn echo_wstring(
        &self,
        text: &rtorb_embedded::cdr::WString,
    ) -> Result<rtorb_embedded::cdr::WString, SystemException> {
        Ok(text.clone())
    }

    fn echo_texts(&self, lines: &[String]) -> Result<Texts, SystemException> {
        Ok(lines.to_vec())
    }

    fn echo_person(&self, who: &Person) -> Result<Person, SystemException> {
        Ok(who.clone())
    }

    fn mixed(&self, given: i32, both: i32) -> Result<(i32, i32, String), SystemException> {
        let product = given.wrapping_mul(both);
        Ok((product, both.wrapping_add(given), format!("given={given}")))
    }

    fn refuse(&self, code: i32, reason: &str) -> Result<(), DeskRefuseError> {
        match code {
            0 => Ok(()),
            -1 => Err(Empty.into()),
            code => Err(refused(code, reason).into()),
        }
    }

    fn fail(&self, minor_code: u32) -> Result<(), SystemException> {
        Err(failure(minor_code))
    }

    fn echo_object(
        &self,
        object: Option<&ObjectRef>,
    ) -> Result<Option<ObjectRef>, SystemException> {
        Ok(object.cloned())
    }

    fn echo_desk(&self, other: Option<&Desk>) -> Result<Option<Desk>, SystemException> {
        Ok(other.cloned())
    }

    fn level_of(&self, other: Option<&Party>) -> Result<i32, SystemException> {
        // A reference that came in a message has no link here.
        Ok(1 + other.ok_or(ExceptionKind::BadParam)?.level()?)
    }

    fn note(&self, n: i32) -> Result<(), SystemException> {
        self.notes.fetch_add(n, Ordering::Relaxed);
        Ok(())
    }

    fn noted(&self) -> Result<i32, SystemException> {
        Ok(self.notes.load(Ordering::Relaxed))
    }

    fn sleep(&self, _milliseconds: u32) -> Result<(), SystemException> {
        Err(ExceptionKind::NoImplement.into())
    }
}

fn refused(code: i32, reason: &str) -> Refused {
    Refused {
        reason: reason.to_owned(),
        code,
    }
}

fn failure(minor_code: u32) -> SystemException {
    SystemException::new(
        ExceptionKind::NoPermission,
        minor_code,
        CompletionStatus::Maybe,
    )
}

/// A desk at the other end of a link.
fn desk() -> Desk {
    let (here, mut there) = pair();
    thread::spawn(move || {
        let echo = Tie::<Desk, _>::new(Echo {
            level: AtomicI32::new(7),
            notes: AtomicI32::new(0),
        });
        let objects = [Object {
            key: KEY,
            servant: &echo,
        }];
        let mut server = Server::new(&objects, MESSAGE_BYTES_MAX);
        while server.serve_next(&mut there, &mut FixedPriority).is_ok() {}
    });
    let object = ObjectRef::new(client(here), "", KEY);
    Desk::narrow(&object).expect("it says that it is a desk")
}

#[test]
fn user_exceptions_and_system_exceptions_come_with_their_members() {
    let desk = desk();
    assert_eq!(desk.refuse(0, ""), Ok(()));
    assert_eq!(desk.refuse(-1, ""), Err(DeskRefuseError::Empty(Empty)));
    let expected = refused(5, "closed");
    let answer = desk.refuse(5, "closed");
    assert_eq!(answer, Err(DeskRefuseError::Refused(expected)));
    assert_eq!(desk.fail(77), Err(failure(77)));
}

#[test]
fn inherited_operations_attributes_and_out_parameters_are_served() {
    let desk = desk();
    assert_eq!(desk.name(), Ok("embedded".to_owned()));
    assert_eq!(desk.level(), Ok(7));
    assert_eq!(desk.set_level(-2), Ok(()));
    let party = Party::from(&desk);
    assert_eq!(party.level(), Ok(-2));
    assert_eq!(desk.mixed(6, 7), Ok((42, 13, "given=6".to_owned())));
    assert_eq!(desk.note(3), Ok(()));
    assert_eq!(desk.noted(), Ok(3));
    let asked = |id: &str| desk.as_object().is_a(id);
    assert_eq!(asked("IDL:Exchange/Party:1.0"), Ok(true));
    assert_eq!(asked("IDL:Cubit:1.0"), Ok(false));
}

#[test]
fn text_of_every_kind_is_the_same_afterwards() {
    let desk = desk();
    assert_eq!(desk.echo_string("G\u{fc}te"), Ok("G\u{fc}te".to_owned()));
    // GIOP's default code set has no such letter, and the code sets of a link are not negotiated.
    let kind = |exception: SystemException| exception.kind;
    let answer = desk.echo_string("\u{17b}").map_err(kind);
    assert_eq!(answer, Err(ExceptionKind::DataConversion));
    let lines = ["one".to_owned(), String::new()];
    assert_eq!(desk.echo_texts(&lines), Ok(lines.to_vec()));
}

#[test]
fn a_reference_without_an_address_cannot_be_sent_and_nil_can() {
    let desk = desk();
    assert_eq!(desk.echo_desk(None), Ok(None));
    let kind = |exception: SystemException| exception.kind;
    let answer = desk.echo_desk(Some(&desk)).map_err(kind);
    assert_eq!(answer, Err(ExceptionKind::Marshal));
}
