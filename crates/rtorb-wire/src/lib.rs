//! rtorb-wire.
#![forbid(unsafe_code)]
