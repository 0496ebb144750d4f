//! Events for the crate `tracing`, with the feature of that name.

/// Emits an event: a level, fields and a text, as `tracing::event!` takes them. Without the feature `tracing` it is nothing.
///
/// Nothing on the call path emits events: connections and listeners do, when they open, fail and close.
macro_rules! trace_event {
    ($level:ident, $($event:tt)+) => {
        {
            #[cfg(feature = "tracing")]
            tracing::event!(tracing::Level::$level, $($event)+);
        }
    };
}

pub(crate) use trace_event;
