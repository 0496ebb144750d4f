//! The admission of servants whose operations have times in IDL.

use super::adapters::Adapters;
use crate::exception::{SystemException, local};
use crate::timing::OperationTiming;
use core::any::Any;
use core::fmt;

/// Decides whether a servant with times in IDL may be activated. The ORB asks before the servant is called for the first time.
///
/// `rtorb_services::scheduling::ServantSchedule` admits the servants of a system that it analyses.
pub trait ServantAdmission: fmt::Debug + Send + Sync {
    /// Admits the annotated operations of a servant, of which there is at least one. The ORB drops the result when the servant is no
    /// longer active, or was not activated for another reason.
    ///
    /// # Errors
    /// The deadline that would be missed first, and what would help.
    fn admit(&self, operations: &'static [OperationTiming]) -> Result<AdmittedServant, String>;
}

/// What an admission keeps for a servant while it is active.
pub type AdmittedServant = Box<dyn Any + Send + Sync>;

impl Adapters {
    /// Admits a servant.
    ///
    /// # Errors
    /// NO_RESOURCES with the reason.
    pub(super) fn admit(
        &self,
        operations: &'static [OperationTiming],
    ) -> Result<Option<AdmittedServant>, SystemException> {
        let Some(admission) = self.admission.as_ref().filter(|_| !operations.is_empty()) else {
            return Ok(None);
        };
        let admitted = admission.admit(operations);
        admitted
            .map(Some)
            .map_err(|reason| local::NOT_ADMITTED.with_detail(reason))
    }
}
