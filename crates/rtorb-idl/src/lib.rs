//! rtorb-idl.
#![forbid(unsafe_code)]
