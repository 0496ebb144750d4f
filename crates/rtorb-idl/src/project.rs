//! The IDL that several packages of this project use. It is in this package because each of them depends on it.

use std::path::{Path, PathBuf};

/// The path of a file, for a build script: `rtorb_idl::compile(rtorb_idl::project::file("cubit.idl"))`.
pub fn file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// The folder of the files.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl");

/// The text of the interfaces that tools know without a file: naming, events, scheduling, and the benchmark Cubit. Each stands behind those
/// that it includes.
pub const KNOWN_TO_TOOLS: [(&str, &str); 4] = [
    ("cos_naming.idl", include_str!("../idl/cos_naming.idl")),
    ("cos_event.idl", include_str!("../idl/cos_event.idl")),
    (
        "rtec.idl",
        concat!(
            include_str!("../idl/rtec_base.idl"),
            include_str!("../idl/rtec_event.idl"),
            include_str!("../idl/event_statistics.idl"),
            include_str!("../idl/rtec_scheduler.idl"),
            include_str!("../idl/changeable_scheduler.idl"),
        ),
    ),
    ("cubit.idl", include_str!("../idl/cubit.idl")),
];
