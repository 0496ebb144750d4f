//! The clock that deadlines are measured with. Unit tests can make it virtual.

#[cfg(test)]
pub(crate) use crate::tests::clock::{
    coarse_monotonic_ns, known_utc_offset, monotonic_ns, sleep_until, utc_offset,
};
#[cfg(not(test))]
pub(crate) use rtorb_os::clock::{
    coarse_monotonic_ns, known_utc_offset, monotonic_ns, sleep_until, utc_offset,
};
