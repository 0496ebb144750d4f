//! The naming service through its references, as clients see it.

mod bootstrap;
mod federation;
mod kill;
mod operations;
mod outcome;
mod random;
mod restart;
mod serving;
mod text;
