//! What is said of the bytes.

use crate::experiments::prelude::*;

const IN_KIB: Metric = Metric::of(P50).with(&[Times(1.0 / 1024.0)]).in_unit("KiB");
/// What a server with one object and no connection has written and shares with no other process.
const OF_SERVER: &str = "what=server, preset=default, connections=0, counted=private_dirty";
const OF_LIBRARY: &str = "what=library_text, crate=orb";

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        HighlightOf {
            what: "memory of a server with one object that it shares with no other process",
            of: OF_SERVER,
            metric: IN_KIB,
            beside: Words::text("P4: less than 1 MByte"),
        },
        HighlightOf {
            what: "memory of a server with 100 connections, {preset}",
            of: "what=server, connections=100, counted=private_dirty",
            metric: IN_KIB,
            beside: Words::with("without any {0}", &[IN_KIB.at("connections=0")]),
        },
        HighlightOf {
            what: "code of the ORB in this program (rtorb, rtorb_core, rtorb_wire, rtorb_os)",
            of: OF_LIBRARY,
            metric: IN_KIB,
            beside: Words::with("the whole program: {0}", &[IN_KIB.at("crate=all")]),
        },
    ],
    // Between none and most.
    derived: &[DerivedOf {
        name: "bytes_per_connection",
        of: "connections=1000",
        without: &["connections"],
        metric: Metric::of(P50)
            .with(&[Less(P50, "connections=0"), Times(1e-3)])
            .in_unit("bytes"),
    }],
    published: &[
        PublishedOf {
            source: "P4 section 1.3",
            what: "memory of an application",
            published: "\"less than 1 MByte of RAM\"",
            of: OF_SERVER,
            ours: Words::with(
                "{0} written by a server with one object, preset default",
                &[IN_KIB],
            ),
        },
        PublishedOf {
            source: "P0 Figure 7",
            what: "static size of libACE and libTAO",
            published: "the text has no numbers; it says that NT's was the smallest, QNX's of TAO and Linux's of ACE the largest",
            of: "what=program, counted=stripped",
            ours: Words::with(
                "{0} of text and data: this whole program, laboratory, report and command line included",
                &[IN_KIB],
            ),
        },
    ],
    conclusions: &[Sentence {
        of: "what=server, connections=1000, counted=private_dirty",
        says: Words::with(
            "A server with the preset {preset} has written {0} with 1,000 connections, and {1} without any.",
            &[IN_KIB, IN_KIB.at("connections=0")],
        ),
    }],
    ..Statements::NONE
};
