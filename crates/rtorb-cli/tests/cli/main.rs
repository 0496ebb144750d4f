//! The command from outside: arguments in, text and exit status out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod agent;
mod call;
mod calls;
mod campaigns;
mod check;
mod closed_outputs;
mod colours;
mod completions;
mod contestants;
mod cubit;
mod deadlines;
mod events;
mod experiments;
mod idl;
mod ior;
mod kernels;
mod lab;
mod load;
mod model;
mod model_apply;
mod model_run;
mod naming;
mod page_commands;
mod pages;
mod papers;
mod ping;
mod priorities;
mod recordings;
mod runs;
mod scheduling;
mod serve;
mod support;
mod top;
mod traces;
mod wrong_uses;
