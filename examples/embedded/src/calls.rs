//! A call of every operation of the Cubit, with its answer checked: what guests call on the host, and what the laboratory times.

use crate::cubit::{Cubit, Many, Oneof};
use rtorb_embedded::{Any, SystemException};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The operation of the Cubit.
    pub operation: &'static str,
    call: fn(&Cubit) -> Result<bool, SystemException>,
}

impl Call {
    /// Calls the operation. True if the answer is right.
    ///
    /// # Errors
    /// The exception.
    pub fn check(&self, cubit: &Cubit) -> Result<bool, SystemException> {
        (self.call)(cubit)
    }
}

const fn call(operation: &'static str, call: fn(&Cubit) -> Result<bool, SystemException>) -> Call {
    Call { operation, call }
}

/// Every operation but `shutdown`.
pub const CALLS: [Call; 11] = [
    call("cube_void", |cubit| cubit.cube_void().map(|()| true)),
    call("cube_oneway", |cubit| cubit.cube_oneway().map(|()| true)),
    call("cube_octet", |cubit| Ok(cubit.cube_octet(3)? == 27)),
    call("cube_short", |cubit| Ok(cubit.cube_short(-3)? == -27)),
    call("cube_long", |cubit| Ok(cubit.cube_long(-11)? == -1331)),
    call(
        "cube_struct",
        |cubit| Ok(cubit.cube_struct(&MANY)? == CUBED),
    ),
    call("cube_union", |cubit| {
        Ok(cubit.cube_union(&Oneof::L(-2))? == Oneof::L(-8))
    }),
    call("cube_any", |cubit| {
        let answer = cubit.cube_any(&Any::from_value(&MANY)?)?;
        Ok(answer.extract::<Many>().ok() == Some(CUBED))
    }),
    call("cube_long_sequence", |cubit| {
        Ok(cubit.cube_long_sequence(&[1, -2, 3])? == [1, -8, 27])
    }),
    call("cube_octet_sequence", |cubit| {
        Ok(cubit.cube_octet_sequence(&[3; 500])? == [27; 500])
    }),
    call("cube_many_sequence", |cubit| {
        let cubed = cubit.cube_many_sequence(&[MANY; 50])?;
        Ok(cubed.len() == 50 && cubed.iter().all(|many| *many == CUBED))
    }),
];

const MANY: Many = Many { o: 2, l: 3, s: -4 };
const CUBED: Many = Many {
    o: 8,
    l: 27,
    s: -64,
};
