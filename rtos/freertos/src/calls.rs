//! Calls of the host's Cubit, over the second serial line.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt::Debug;
use freertos_in_rust::sync::{Mutex, TaskContext};
use rtorb::{Any, Client, ObjectRef, SharedClient, SystemException};
use rtorb_embedded_cubit::cubit::{Cubit, Many, Oneof};

use crate::MESSAGE_OCTETS_MAX;
use crate::serial::Serial;

/// The client behind a mutex of the kernel, which inherits priority.
struct Locked(Mutex<Client>);

// SAFETY: the mutex lets one task at a time at the client, and the client's link may move between tasks.
unsafe impl Sync for Locked {}

impl SharedClient for Locked {
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client)) {
        // SAFETY: only tasks call objects.
        let context = unsafe { TaskContext::assume() };
        let mut client = self.0.lock(&context).expect("waiting has no bound");
        call(&mut client);
    }
}

/// How long a call may take, in milliseconds.
const PATIENCE: u32 = 10_000;

/// The object at the other end of the second line with that key.
///
/// # Safety
/// It is called once.
pub unsafe fn cubit_of_host(context: &TaskContext, key: &[u8]) -> Cubit {
    // SAFETY: the caller says that this is the first use of the line.
    let line = unsafe { Serial::begin(1, PATIENCE) };
    let client = Client::new(Box::new(line), MESSAGE_OCTETS_MAX);
    let client = Mutex::new(context, client).expect("there is memory for a mutex");
    let client: &'static Locked = Box::leak(Box::new(Locked(client)));
    Cubit::unchecked_narrow(ObjectRef::new(client, "IDL:Cubit:1.0", key))
}

/// Calls every operation, and says which answers were wrong.
pub fn faults(cubit: &Cubit) -> Vec<String> {
    let many = Many { o: 2, l: 3, s: -4 };
    let cubed = Many {
        o: 8,
        l: 27,
        s: -64,
    };
    let mut faults = Vec::new();
    compare(&mut faults, "cube_void", cubit.cube_void(), ());
    compare(&mut faults, "cube_oneway", cubit.cube_oneway(), ());
    compare(&mut faults, "cube_octet", cubit.cube_octet(3), 27);
    compare(&mut faults, "cube_short", cubit.cube_short(-3), -27);
    compare(&mut faults, "cube_long", cubit.cube_long(-11), -1331);
    compare(&mut faults, "cube_struct", cubit.cube_struct(&many), cubed);
    let answer = cubit.cube_union(&Oneof::L(-2));
    compare(&mut faults, "cube_union", answer, Oneof::L(-8));
    let any = Any::from_value(&many).map_err(SystemException::from);
    let answer = any.and_then(|any| cubit.cube_any(&any));
    let answer = answer.map(|any| any.extract::<Many>().ok());
    compare(&mut faults, "cube_any", answer, Some(cubed));
    let answer = cubit.cube_long_sequence(&[1, -2, 3]);
    compare(&mut faults, "cube_long_sequence", answer, vec![1, -8, 27]);
    let answer = cubit.cube_octet_sequence(&[3; 500]);
    compare(&mut faults, "cube_octet_sequence", answer, vec![27; 500]);
    let answer = cubit.cube_many_sequence(&[many; 50]);
    compare(&mut faults, "cube_many_sequence", answer, vec![cubed; 50]);
    faults
}

fn compare<T: Debug + PartialEq>(
    faults: &mut Vec<String>,
    operation: &str,
    answer: Result<T, SystemException>,
    expected: T,
) {
    let expected = Ok(expected);
    if answer != expected {
        faults.push(format!("{operation}: {answer:?}, expected {expected:?}"));
    }
}
