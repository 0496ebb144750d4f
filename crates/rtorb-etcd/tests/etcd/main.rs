//! Naming services on etcd: Debian's `etcd-server`, which each test starts for itself.

mod away;
mod kill;
mod member;
mod model;
mod serving;
mod sharing;
mod watching;
