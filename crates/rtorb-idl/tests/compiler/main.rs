//! The compiler with files of its users, of Debian and of chance. Tests with snapshots are programs of their own, which give the
//! snapshots their names.

mod any_input;
mod compile;
mod peers;
mod rust_any_input;
mod shared;
