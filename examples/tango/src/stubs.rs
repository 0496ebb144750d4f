//! The code that Tango's IDL generates.

rtorb::include_idl!("tango");
