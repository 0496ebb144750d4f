//! rtorb-lab.
#![forbid(unsafe_code)]
