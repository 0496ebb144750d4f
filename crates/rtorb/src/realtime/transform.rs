//! Changing the priority of a call on its way (RTCORBA::PriorityTransform).

use super::priority::Priority;
use crate::exception::{ExceptionKind, SystemException};
use core::fmt;
use std::sync::Arc;

/// Changes the CORBA priority of a call (RTCORBA::PriorityTransform).
///
/// Chosen at the builder: *inbound*, in a server before the servant runs; *outbound*, in a client before a request is sent.
/// It is called for every call with a priority, so it neither waits nor allocates. The threads of lanes keep their lane's
/// priority, whatever a transform says: a client chooses its lane by the outbound one.
pub trait PriorityTransform: fmt::Debug + Send + Sync {
    /// The priority that the call has from here on; `None` refuses the call with DATA_CONVERSION 2.
    ///
    /// `object` is the object's id in its adapter for an inbound transform, and its key, which is its server's own affair,
    /// for an outbound one.
    fn transform_priority(&self, priority: Priority, object: &[u8]) -> Option<Priority>;
}

/// The transforms of one ORB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transforms {
    pub(crate) inbound: Option<Arc<dyn PriorityTransform>>,
    pub(crate) outbound: Option<Arc<dyn PriorityTransform>>,
}

/// What `transform` makes of a priority, if there is one.
#[inline]
pub(crate) fn transformed(
    transform: Option<&Arc<dyn PriorityTransform>>,
    priority: Priority,
    object: &[u8],
) -> Result<Priority, SystemException> {
    match transform {
        None => Ok(priority),
        Some(transform) => transform
            .transform_priority(priority, object)
            .ok_or_else(|| SystemException::omg(ExceptionKind::DataConversion, 2)),
    }
}
