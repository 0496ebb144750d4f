//! Transforms of the priority of calls (RTCORBA::PriorityTransform).

use super::priority::Priority;
use crate::exception::{SystemException, local};
use core::fmt;
use std::sync::Arc;

/// Changes the CORBA priority of a call (RTCORBA::PriorityTransform).
///
/// The builder sets it: *inbound* runs in a server before the servant, *outbound* in a client before a request is sent. It runs for
/// every call with a priority, so it must neither wait nor allocate. The threads of lanes always keep their lane's priority, and no
/// inbound transform runs there; a client's lane is selected by the priority after the outbound transform. With
/// [`DispatchStrategy::FilterChain`](crate::DispatchStrategy::FilterChain), a lane is selected by the priority after the inbound one.
pub trait PriorityTransform: fmt::Debug + Send + Sync {
    /// Returns the new priority of the call; `None` refuses the call with DATA_CONVERSION 2.
    ///
    /// `object` is the object's id in its adapter for an inbound transform, and its opaque key for an
    /// outbound one.
    fn transform_priority(&self, priority: Priority, object: &[u8]) -> Option<Priority>;
}

/// The transforms of one ORB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transforms {
    pub(crate) inbound: Option<Arc<dyn PriorityTransform>>,
    pub(crate) outbound: Option<Arc<dyn PriorityTransform>>,
}

/// Applies `transform`, if there is one, to a priority.
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
            .ok_or(local::UNMAPPED_PRIORITY),
    }
}
