//! The naming service through its references, as clients see it.

mod operations;
mod outcome;
mod serving;
