//! rtorb-os.
