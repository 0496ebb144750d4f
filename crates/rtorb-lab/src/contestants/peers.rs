//! Other ORBs, measured beside ours in the same run when they are installed.

pub mod omniorb;
