//! The command from outside: arguments in, text and exit status out.

mod cubit;
mod idl;
mod ior;
mod lab;
mod ping;
mod support;
