//! rtorb.
#![forbid(unsafe_code)]
