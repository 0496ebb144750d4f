//! The Cubit as an object of a small machine: a servant without state, and its place in the table of objects.
//!
//! Nothing here needs a standard library: the guest of the kernel laboratory that runs FreeRTOS has the same servant.
#![no_std]
#![forbid(unsafe_code)]

pub mod calls;
pub mod servant;

#[expect(missing_docs, reason = "generated from documented IDL")]
pub mod cubit {
    include!(concat!(env!("OUT_DIR"), "/cubit.rs"));
}

include!(concat!(env!("OUT_DIR"), "/exchange.rs"));

include!(concat!(env!("OUT_DIR"), "/periods.rs"));

#[expect(missing_docs, reason = "generated from documented IDL")]
pub mod guest {
    include!(concat!(env!("OUT_DIR"), "/guest.rs"));
}
