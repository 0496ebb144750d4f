//! The custom valuetype of `value_forms.idl`: the application's code of its state.

use crate::snapshots::value_forms::Secret;
use rtorb::cdr::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// The state has a version before its members, and the key backwards.
const VERSION: u16 = 2;

impl Encode for Secret {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        w.primitive(VERSION)?;
        let backwards: String = self.key.chars().rev().collect();
        w.str(&backwards)?;
        self.inside.encode(w)
    }
}

impl Decode for Secret {
    const BYTES_MIN: usize = 13;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if r.primitive::<u16>()? != VERSION {
            return Err(DecodeError::UnknownValue);
        }
        let backwards = String::decode(r)?;
        Ok(Self {
            key: backwards.chars().rev().collect(),
            inside: Decode::decode(r)?,
        })
    }
}
