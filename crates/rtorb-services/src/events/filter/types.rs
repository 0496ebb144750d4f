//! The event types below 16, which have special meanings in a subscription (as in TAO's event service).

/// Any type; as a source, any source.
pub const ANY: i32 = 0;
/// A timeout that comes once.
pub const TIMEOUT: i32 = 4;
/// A timeout that comes every period, independent of events.
pub const INTERVAL_TIMEOUT: i32 = 5;
/// A timeout that comes when nothing was delivered for a period.
pub const DEADLINE_TIMEOUT: i32 = 6;
/// Ends a group: the next entries belong to none.
pub const GLOBAL: i32 = 7;
/// All children must come.
pub const CONJUNCTION: i32 = 8;
/// One child must come.
pub const DISJUNCTION: i32 = 9;
/// The child must not match.
pub const NEGATION: i32 = 10;
/// All children must match one event.
pub const LOGICAL_AND: i32 = 11;
/// The next entry has masks; the child after it must match too.
pub const BITMASK: i32 = 12;
/// The next two entries have masks and values.
pub const MASKED_TYPE: i32 = 13;
/// Any event.
pub const NULL: i32 = 14;
/// The first type that an application may use.
pub const UNDEFINED: i32 = 16;

/// The name of the type.
#[cfg(feature = "event-channel")]
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

/// True if the type begins a group.
#[cfg(feature = "event-channel")]
pub(super) fn begins_group(event_type: i32) -> bool {
    matches!(event_type, CONJUNCTION | DISJUNCTION | LOGICAL_AND)
}
