//! The configuration of a naming service.

use super::error::NamingError;
use std::path::PathBuf;
use std::time::Duration;

/// The configuration of a naming service. Every bound has a range, and a caller that exceeds it gets an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamingConfig {
    /// The file of the store. The service makes it if it does not exist, but not its directory. `None` keeps names in memory
    /// only: they, and references to contexts, end with the process. If the disk fails, changes raise PERSIST_STORE until the
    /// service starts again, with the reason in [`StoreFailure`](super::StoreFailure); names are still resolved.
    pub store: Option<PathBuf>,
    /// Bindings in all contexts: NO_RESOURCES. The table is reserved at the start, so it never grows while clients wait. 1 to
    /// 10,000,000; 250,000.
    pub bindings_max: usize,
    /// Contexts with or without a name: NO_RESOURCES. 1 to 1,000,000; 65,536.
    pub contexts_max: usize,
    /// Bytes of all names and references: NO_RESOURCES. 1 KiB to 64 GiB; 256 MiB.
    pub bytes_max: usize,
    /// Components of a name: IMP_LIMIT. It limits federation too: each server takes at least one component. 1 to 1,024; 32.
    pub name_components_max: usize,
    /// Bytes of an id and of a kind: IMP_LIMIT. 1 to 65,536; 1,024.
    pub component_bytes_max: usize,
    /// Bytes of a bound reference: IMP_LIMIT. 64 bytes to 1 MiB; 16 KiB.
    pub reference_bytes_max: usize,
    /// Bindings in the result of one `list` or `next_n`. The iterator has the rest. 1 to 10,000; 1,000.
    pub list_max: usize,
    /// Open iterators. Beyond it, the least recently used iterator ends and its owner gets OBJECT_NOT_EXIST. 1 to 10,000; 100.
    pub iterators_max: usize,
    /// Changes that wait for the disk: TRANSIENT. 1 to 65,536; 1,024.
    pub changes_waiting_max: usize,
    /// The time to wait for a change to be on the disk: TIMEOUT, COMPLETED_MAYBE if its commit had begun. The thread that makes a
    /// commit waits as long as the disk takes, and for a store that services share a fifth of this time, after which its clients get
    /// TRANSIENT. 1 ms to an hour; 10 s.
    pub change_timeout: Duration,
    /// The timeout of a call to another server: CannotProceed, or TIMEOUT with COMPLETED_MAYBE for a change that the other server may
    /// have made. The ORB's `connect_timeout` limits connecting to it. 1 ms to an hour; 2 s.
    pub forward_timeout: Duration,
    /// Concurrent calls to other servers, each of which holds a serving thread: CannotProceed. 1 to 1,024; 8.
    pub forwards_max: usize,
}

impl NamingConfig {
    /// The default bounds with a store in this file.
    pub fn stored_at(store: impl Into<PathBuf>) -> Self {
        Self {
            store: Some(store.into()),
            ..Self::default()
        }
    }

    /// Checks that each bound is in its range.
    pub(super) fn check(&self) -> Result<(), NamingError> {
        let counts = [
            ("bindings_max", self.bindings_max, 1, 10_000_000),
            ("contexts_max", self.contexts_max, 1, 1_000_000),
            ("bytes_max", self.bytes_max, 1 << 10, 64 << 30),
            ("name_components_max", self.name_components_max, 1, 1_024),
            ("component_bytes_max", self.component_bytes_max, 1, 65_536),
            ("reference_bytes_max", self.reference_bytes_max, 64, 1 << 20),
            ("list_max", self.list_max, 1, 10_000),
            ("iterators_max", self.iterators_max, 1, 10_000),
            ("changes_waiting_max", self.changes_waiting_max, 1, 65_536),
            ("forwards_max", self.forwards_max, 1, 1_024),
        ];
        for (bound, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(NamingError::Bound {
                    bound,
                    value: value.to_string(),
                    range: format!("{least} to {most}"),
                });
            }
        }
        let times = [
            ("change_timeout", self.change_timeout),
            ("forward_timeout", self.forward_timeout),
        ];
        for (bound, value) in times {
            if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&value) {
                return Err(NamingError::Bound {
                    bound,
                    value: format!("{value:?}"),
                    range: format!("{TIMEOUT_MIN:?} to {TIMEOUT_MAX:?}"),
                });
            }
        }
        Ok(())
    }
}

impl Default for NamingConfig {
    /// Names in memory only.
    fn default() -> Self {
        Self {
            store: None,
            bindings_max: 250_000,
            contexts_max: 65_536,
            bytes_max: 256 << 20,
            name_components_max: 32,
            component_bytes_max: 1_024,
            reference_bytes_max: 16 << 10,
            list_max: 1_000,
            iterators_max: 100,
            changes_waiting_max: 1_024,
            change_timeout: Duration::from_secs(10),
            forward_timeout: Duration::from_secs(2),
            forwards_max: 8,
        }
    }
}

const TIMEOUT_MIN: Duration = Duration::from_millis(1);
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_out_of_range_is_refused() {
        assert!(NamingConfig::default().check().is_ok());
        let wrong = [
            NamingConfig {
                bindings_max: 0,
                ..NamingConfig::default()
            },
            NamingConfig {
                list_max: 10_001,
                ..NamingConfig::default()
            },
            NamingConfig {
                forward_timeout: Duration::ZERO,
                ..NamingConfig::default()
            },
        ];
        for (config, bound) in wrong
            .iter()
            .zip(["bindings_max", "list_max", "forward_timeout"])
        {
            let told = config.check().expect_err(bound).to_string();
            assert!(told.starts_with(bound), "{told}");
        }
    }
}
