//! What the services' IDL (`crates/rtorb-idl/idl/`) becomes: references, and the traits of servants.

#[expect(missing_docs, reason = "documented where the interface is, by the OMG")]
pub mod cos_event {
    rtorb::include_idl!("cos_event");
}

/// The cancellation of distributable threads from other processes.
pub mod distributable_threads {
    rtorb::include_idl!("distributable_threads");
}

/// The bootstrap protocol of the JDK's ORB.
pub mod initial_references {
    rtorb::include_idl!("initial_references");
}

#[expect(missing_docs, reason = "documented where the interface is, by the OMG")]
pub mod naming {
    rtorb::include_idl!("cos_naming");
}

/// The counters of a process's recorder.
pub mod recorder {
    rtorb::include_idl!("recorder");
}

/// TAO's interfaces, and what a channel of ours tells beside them.
pub mod rtec_event {
    rtorb::include_idl!("event_statistics");
}

/// TAO's interface of a scheduling service, and how ours changes a running system.
pub mod rtec_scheduler {
    rtorb::include_idl!("changeable_scheduler");
}
