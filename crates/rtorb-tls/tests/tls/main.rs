//! Calls over TLS between ORBs, and the connections that are refused.

mod access;
mod authority;
mod calls;
mod certificates;
mod faults;
mod inherited;
mod page;
mod pki;
mod references;
mod required;
