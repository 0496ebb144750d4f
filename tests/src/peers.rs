//! Programs for other ORBs, from `tests/programs/`.
//!
//! omniORB and Tango come from Debian and are needed by the gate; JacORB and the JDK's ORB come from Maven Central and are extra. Where a peer is
//! missing, a test says how to get it and passes, unless `RTORB_REQUIRE_PEERS=1` says that it must be there.

pub mod jacorb;
pub mod jdk;
pub mod matrix;
pub mod omniorb;
pub mod tango;
pub mod tao;

mod make;
