//! The servant: everything cubed, in wrapping arithmetic.

use crate::cubit::{CubitServant, LongSeq, Many, ManySeq, OctetSeq, Oneof};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_embedded::{Any, ExceptionKind, SystemException};

/// Cubes its arguments.
#[derive(Debug, Default)]
pub struct Cuber {
    is_shut_down: AtomicBool,
}

/// The key of the Cubit in every table of this example: `corbaloc:iiop:HOST:PORT/cubit`.
pub const KEY: &[u8] = b"cubit";

impl Cuber {
    /// A servant that was not told to end.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            is_shut_down: AtomicBool::new(false),
        }
    }

    /// True once a client has called `shutdown`.
    pub fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::Relaxed)
    }
}

fn cubed(many: &Many) -> Many {
    Many {
        o: many.o.wrapping_pow(3),
        l: many.l.wrapping_pow(3),
        s: many.s.wrapping_pow(3),
    }
}

impl CubitServant for Cuber {
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
        Ok(cubed(values))
    }

    fn cube_union(&self, values: &Oneof) -> Result<Oneof, SystemException> {
        Ok(match values {
            Oneof::O(o) => Oneof::O(o.wrapping_pow(3)),
            Oneof::S(s) => Oneof::S(s.wrapping_pow(3)),
            Oneof::L(l) => Oneof::L(l.wrapping_pow(3)),
            Oneof::Cm(many) => Oneof::Cm(cubed(many)),
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
            Any::from_value(&cubed(&many))
        } else {
            return Err(ExceptionKind::BadParam.into());
        };
        Ok(cubed?)
    }

    fn cube_long_sequence(&self, input: &[i32]) -> Result<LongSeq, SystemException> {
        Ok(input.iter().map(|l| l.wrapping_pow(3)).collect())
    }

    fn cube_octet_sequence(&self, input: &[u8]) -> Result<OctetSeq, SystemException> {
        Ok(input.iter().map(|o| o.wrapping_pow(3)).collect())
    }

    fn cube_many_sequence(&self, input: &[Many]) -> Result<ManySeq, SystemException> {
        Ok(input.iter().map(cubed).collect())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.is_shut_down.store(true, Ordering::Relaxed);
        Ok(())
    }
}
