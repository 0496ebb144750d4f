//! Our servants of the tests' interfaces.

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use rtorb::any::Any;
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, Orb, SystemException};

use crate::stubs::exchange::{
    Desk, DeskRefuseError, DeskServant, Empty, Party, PartyServant, Person, Refused,
};
use crate::stubs::{CubitServant, Many, Oneof};

/// Cubes in wrapping arithmetic, as cubit.idl demands.
#[derive(Debug)]
pub struct Cubes {
    /// What `shutdown` ends.
    pub orb: Orb,
}

/// A struct cubed.
#[must_use]
pub fn cube_many(many: Many) -> Many {
    Many {
        o: many.o.wrapping_pow(3),
        l: many.l.wrapping_pow(3),
        s: many.s.wrapping_pow(3),
    }
}

impl CubitServant for Cubes {
    fn cube_oneway(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_void(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cube_octet(&self, o: u8) -> Result<u8, SystemException> {
        Ok(o.wrapping_pow(3))
    }

    fn cube_short(&self, s: i16) -> Result<i16, SystemException> {
        Ok(s.wrapping_pow(3))
    }

    fn cube_long(&self, l: i32) -> Result<i32, SystemException> {
        Ok(l.wrapping_pow(3))
    }

    fn cube_struct(&self, values: &Many) -> Result<Many, SystemException> {
        Ok(cube_many(*values))
    }

    fn cube_union(&self, values: &Oneof) -> Result<Oneof, SystemException> {
        Ok(match *values {
            Oneof::O(o) => Oneof::O(o.wrapping_pow(3)),
            Oneof::S(s) => Oneof::S(s.wrapping_pow(3)),
            Oneof::L(l) => Oneof::L(l.wrapping_pow(3)),
            Oneof::Cm(many) => Oneof::Cm(cube_many(many)),
        })
    }

    fn cube_any(&self, values: &Any) -> Result<Any, SystemException> {
        let cubed = if let Ok(o) = values.extract::<u8>() {
            Any::from_value(&o.wrapping_pow(3))
        } else if let Ok(s) = values.extract::<i16>() {
            Any::from_value(&s.wrapping_pow(3))
        } else if let Ok(l) = values.extract::<i32>() {
            Any::from_value(&l.wrapping_pow(3))
        } else if let Ok(many) = values.extract::<Many>() {
            Any::from_value(&cube_many(many))
        } else {
            return Err(ExceptionKind::BadParam.into());
        };
        Ok(cubed?)
    }

    fn cube_long_sequence(&self, input: &[i32]) -> Result<Vec<i32>, SystemException> {
        Ok(input.iter().map(|l| l.wrapping_pow(3)).collect())
    }

    fn cube_octet_sequence(&self, input: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(input.iter().map(|o| o.wrapping_pow(3)).collect())
    }

    fn cube_many_sequence(&self, input: &[Many]) -> Result<Vec<Many>, SystemException> {
        Ok(input.iter().copied().map(cube_many).collect())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}

/// Gives back what it is given, as exchange.idl demands.
#[derive(Debug, Default)]
pub struct Counter {
    level: AtomicI32,
    noted: AtomicI32,
}

impl PartyServant for Counter {
    fn name(&self) -> Result<String, SystemException> {
        Ok("rtorb".to_owned())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::Relaxed))
    }

    fn set_level(&self, value: i32) -> Result<(), SystemException> {
        self.level.store(value, Ordering::Relaxed);
        Ok(())
    }
}

impl DeskServant for Counter {
    fn echo_string(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn echo_wstring(
        &self,
        text: &rtorb::cdr::WString,
    ) -> Result<rtorb::cdr::WString, SystemException> {
        Ok(text.clone())
    }

    fn echo_texts(&self, lines: &[String]) -> Result<Vec<String>, SystemException> {
        Ok(lines.to_vec())
    }

    fn echo_person(&self, who: &Person) -> Result<Person, SystemException> {
        Ok(who.clone())
    }

    fn mixed(&self, given: i32, both: i32) -> Result<(i32, i32, String), SystemException> {
        Ok((
            given.wrapping_mul(both),
            both.wrapping_add(given),
            format!("given={given}"),
        ))
    }

    fn refuse(&self, code: i32, reason: &str) -> Result<(), DeskRefuseError> {
        match code {
            0 => Ok(()),
            -1 => Err(Empty {}.into()),
            _ => Err(Refused {
                reason: reason.to_owned(),
                code,
            }
            .into()),
        }
    }

    fn fail(&self, minor_code: u32) -> Result<(), SystemException> {
        Err(SystemException::new(
            ExceptionKind::NoPermission,
            minor_code,
            CompletionStatus::Maybe,
        ))
    }

    fn echo_object(
        &self,
        any_object: Option<&ObjectRef>,
    ) -> Result<Option<ObjectRef>, SystemException> {
        Ok(any_object.cloned())
    }

    fn echo_desk(&self, other: Option<&Desk>) -> Result<Option<Desk>, SystemException> {
        Ok(other.cloned())
    }

    fn level_of(&self, other: Option<&Party>) -> Result<i32, SystemException> {
        let other = other.ok_or(SystemException::from(ExceptionKind::BadParam))?;
        Ok(other.level()? + 1)
    }

    fn note(&self, _: i32) -> Result<(), SystemException> {
        self.noted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn noted(&self) -> Result<i32, SystemException> {
        Ok(self.noted.load(Ordering::Relaxed))
    }

    fn sleep(&self, milliseconds: u32) -> Result<(), SystemException> {
        thread::sleep(Duration::from_millis(u64::from(milliseconds)));
        Ok(())
    }
}
