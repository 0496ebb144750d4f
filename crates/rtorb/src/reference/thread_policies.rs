//! Policies of the calls of one thread (CORBA::PolicyCurrent).

use super::policies::check_policies;
use super::timeout::Timeout;
use super::{Inner, ObjectRef, SyncScope};
use crate::connection::{Client, ClientCore};
use crate::exception::SystemException;
use crate::realtime::Policy;
use crate::thread_state::{self, SpecialCalls};
use core::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The policies of the calls that the calling thread makes through an ORB (CORBA::PolicyCurrent).
///
/// A policy of the thread replaces that of the ORB, and a reference's own policy replaces both.
///
/// ```no_run
/// use rtorb::{Orb, PolicyOverrides};
/// use std::time::Duration;
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = Orb::builder().build()?;
/// let valve = orb.string_to_object("corbaloc:iiop:plant:2809/Valve")?;
/// let soon = PolicyOverrides::default().round_trip_timeout(Duration::from_millis(5));
/// let closed = orb.policy_current().with_overrides(soon, || {
///     valve.invoke("close", |_| Ok(()), |_| Ok(()))
/// })?;
/// # let _ = closed;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PolicyCurrent {
    client: Client,
}

/// Policies that replace those of an ORB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOverrides {
    timeout: Option<Option<Duration>>,
    sync_scope: Option<SyncScope>,
    policies: Vec<Policy>,
}

impl PolicyOverrides {
    /// Sets the timeout of calls, as [`ObjectRef::with_timeout`]; `None` for no timeout.
    #[must_use]
    pub fn round_trip_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// Sets when oneways return, as [`ObjectRef::with_sync_scope`].
    #[must_use]
    pub fn sync_scope(mut self, sync_scope: SyncScope) -> Self {
        self.sync_scope = Some(sync_scope);
        self
    }

    /// Adds a policy of RT-CORBA, as [`ObjectRef::set_policy_overrides`]. It replaces one of the same type.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policies.retain(|other| other.name() != policy.name());
        self.policies.push(policy);
        self
    }

    /// Returns the timeout of calls, if one is set; `Some(None)` for no timeout.
    pub(crate) fn timeout(&self) -> Option<Option<Duration>> {
        self.timeout
    }

    /// Returns these policies, and those `around` that they do not replace.
    fn within(self, around: &Self) -> Self {
        let around = around.clone();
        let policies = self.policies.into_iter();
        let mut both = policies.fold(around, Self::policy);
        both.timeout = self.timeout.or(both.timeout);
        both.sync_scope = self.sync_scope.or(both.sync_scope);
        both
    }
}

/// The policies of a thread for the calls through one ORB, until [`PolicyCurrent::with_overrides`] returns.
struct PolicyScope {
    core: Arc<ClientCore>,
    overrides: PolicyOverrides,
    /// Each called reference, with its copy that has the overrides.
    applied: Vec<(ObjectRef, ObjectRef)>,
}

/// The most references of a scope whose policies are applied once for all calls.
const APPLIED_MAX: usize = 16;

thread_local! {
    /// The scopes of this thread, the innermost last.
    static SCOPES: RefCell<Vec<PolicyScope>> = const { RefCell::new(Vec::new()) };
}

impl PolicyCurrent {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Runs an operation whose calls have these policies: all calls that the calling thread makes meanwhile through this ORB, also started
    /// ones, of references without own policies of these types. They are added to those of an operation around this one.
    ///
    /// The first call of a reference applies the policies, which calls the heap. A call of a servant of the same ORB that needs no request
    /// has no policies; with a timeout, a call that needs a request goes by a transport. [`ObjectRef::validate_connection`] does not
    /// regard them.
    ///
    /// # Errors
    /// As [`ObjectRef::set_policy_overrides`]; the operation is not run then.
    pub fn with_overrides<T>(
        &self,
        overrides: PolicyOverrides,
        operation: impl FnOnce() -> T,
    ) -> Result<T, SystemException> {
        check_policies(&overrides.policies)?;
        let overrides = overrides.within(&self.overrides());
        let _scope = RunningScope::enter(PolicyScope {
            core: Arc::clone(&self.client.core),
            overrides,
            applied: Vec::new(),
        });
        Ok(operation())
    }

    /// Returns the policies that calls of the calling thread have now, beside those of the ORB and of references.
    pub fn overrides(&self) -> PolicyOverrides {
        SCOPES
            .with_borrow_mut(|scopes| {
                let scope = scope_of(scopes, &self.client.core);
                scope.map(|scope| scope.overrides.clone())
            })
            .unwrap_or_default()
    }
}

/// The innermost scope. Dropping it ends the scope.
struct RunningScope;

impl RunningScope {
    fn enter(scope: PolicyScope) -> Self {
        SCOPES.with_borrow_mut(|scopes| scopes.push(scope));
        thread_state::set_special(SpecialCalls::WithPolicies, true);
        Self
    }
}

impl Drop for RunningScope {
    fn drop(&mut self) {
        let (ended, is_last) = SCOPES.with_borrow_mut(|scopes| (scopes.pop(), scopes.is_empty()));
        if is_last {
            thread_state::set_special(SpecialCalls::WithPolicies, false);
        }
        // Not before: the connections of its references may end with it.
        drop(ended);
    }
}

/// Returns the innermost scope for calls of this client.
fn scope_of<'s>(
    scopes: &'s mut [PolicyScope],
    core: &Arc<ClientCore>,
) -> Option<&'s mut PolicyScope> {
    let mut innermost = scopes.iter_mut().rev();
    innermost.find(|scope| Arc::ptr_eq(&scope.core, core))
}

impl ObjectRef {
    /// Returns the reference with the policies of the calling thread; `None` if it has them, or the thread has none.
    #[cold]
    pub(super) fn with_thread_policies(&self) -> Option<Self> {
        if self.inner.has_thread_policies {
            return None;
        }
        let applied = SCOPES.try_with(|scopes| {
            let scopes = &mut *scopes.borrow_mut();
            let scope = scope_of(scopes, &self.inner.client.core)?;
            let mut known = scope.applied.iter();
            if let Some((_, applied)) = known.find(|(it, _)| Arc::ptr_eq(&it.inner, &self.inner)) {
                return Some((applied.clone(), None));
            }
            let applied = self.with_overrides(&scope.overrides);
            let is_full = scope.applied.len() >= APPLIED_MAX;
            let oldest = is_full.then(|| scope.applied.remove(0));
            scope.applied.push((self.clone(), applied.clone()));
            Some((applied, oldest))
        });
        // The oldest is dropped here: its connections may end with it.
        applied.ok().flatten().map(|(applied, _oldest)| applied)
    }

    /// Returns the same reference, in which these policies replace those of the ORB.
    fn with_overrides(&self, thread: &PolicyOverrides) -> Self {
        let inner = &self.inner;
        let timeout = match (inner.timeout, thread.timeout) {
            (Timeout::OfOrb, Some(timeout)) => Timeout::Own(timeout),
            (own, _) => own,
        };
        let is_own = |policy: &Policy| {
            inner
                .overrides
                .iter()
                .any(|own| own.name() == policy.name())
        };
        let added = thread.policies.iter().filter(|policy| !is_own(policy));
        let overrides: Arc<[Policy]> = inner.overrides.iter().chain(added).cloned().collect();
        let mut made = if overrides.len() == inner.overrides.len() {
            Self::of(Inner {
                timeout,
                ..inner.copy()
            })
        } else {
            let (client, ior) = (inner.client.clone(), inner.ior.clone());
            Self::with_policies(client, ior, overrides, timeout, inner.operations)
        };
        if let Some(made) = Arc::get_mut(&mut made.inner) {
            made.sync_scope = inner.sync_scope.or(thread.sync_scope);
            made.has_thread_policies = true;
        }
        made
    }
}
