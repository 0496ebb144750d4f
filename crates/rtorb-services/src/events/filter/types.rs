//! The event types below 16, which have meanings of their own in a subscription (fact sheet of TAO's event service).

/// Any type; as a source, any source.
pub const ANY: i32 = 0;
/// A timeout that comes once.
pub const TIMEOUT: i32 = 4;
/// A timeout that comes every period, whatever else comes.
pub const INTERVAL_TIMEOUT: i32 = 5;
/// A timeout that comes when nothing was delivered for a period.
pub const DEADLINE_TIMEOUT: i32 = 6;
/// What follows belongs to no group.
pub const GLOBAL: i32 = 7;
/// What follows must all come.
pub const CONJUNCTION: i32 = 8;
/// One of what follows must come.
pub const DISJUNCTION: i32 = 9;
/// What follows must not match.
pub const NEGATION: i32 = 10;
/// All of what follows must match one event.
pub const LOGICAL_AND: i32 = 11;
/// The entry after it has masks; the child after that must match as well.
pub const BITMASK: i32 = 12;
/// The two entries after it have masks and values.
pub const MASKED_TYPE: i32 = 13;
/// Any event.
pub const NULL: i32 = 14;
/// The first type that an application may use.
pub const UNDEFINED: i32 = 16;

/// What the type is called.
pub(super) fn name(event_type: i32) -> &'static str {
    match event_type {
        ANY => "any event",
        1 => "shutdown",
        2 => "ACT",
        3 => "notification",
        TIMEOUT => "timeout",
        INTERVAL_TIMEOUT => "interval timeout",
        DEADLINE_TIMEOUT => "deadline timeout",
        GLOBAL => "global designator",
        CONJUNCTION => "conjunction",
        DISJUNCTION => "disjunction",
        NEGATION => "negation",
        LOGICAL_AND => "logical AND",
        BITMASK => "bitmask",
        MASKED_TYPE => "masked type",
        NULL => "null",
        15 => "reserved",
        _ => "event",
    }
}

/// Whether the type begins a group.
pub(super) fn begins_group(event_type: i32) -> bool {
    matches!(event_type, CONJUNCTION | DISJUNCTION | LOGICAL_AND)
}
