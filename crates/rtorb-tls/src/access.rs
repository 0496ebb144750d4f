//! Which clients may call an adapter.

use core::fmt;
use rtorb::exception::local;
use rtorb::interceptors::{Intervention, RequestPeer, ServerRequest, ServerRequestInterceptor};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Lets only clients with certain names call the objects of an adapter, and of the adapters below it.
///
/// The names are those in the certificate that a client has shown: its common name, and its alternative names. Whoever has none of them
/// gets NO_PERMISSION, and the rule reports that. Calls of the same ORB are let through.
///
/// ```
/// # fn main() -> Result<(), rtorb::OrbError> {
/// use rtorb_tls::AccessRule;
///
/// let rule = AccessRule::new("cranes", ["control-room", "maintenance"], |text| eprintln!("{text}"));
/// let orb = rtorb::Orb::builder().server_interceptor(rule).build()?;
/// # Ok(())
/// # }
/// ```
pub struct AccessRule {
    adapter: String,
    names: BTreeSet<String>,
    report: Arc<dyn Fn(&str) + Send + Sync>,
}

impl AccessRule {
    /// Makes a rule for an adapter, by its path from the root ([`Poa::name`](rtorb::Poa::name)); an empty path is for all adapters.
    /// `report` gets a text for each call that is refused, on the thread of the call: it should not wait.
    pub fn new<N: Into<String>>(
        adapter: &str,
        names: impl IntoIterator<Item = N>,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            adapter: adapter.to_owned(),
            names: names.into_iter().map(Into::into).collect(),
            report: Arc::new(report),
        }
    }

    /// Returns true if the rule is about that adapter.
    fn concerns(&self, adapter: &str) -> bool {
        let below = adapter.strip_prefix(&*self.adapter);
        self.adapter.is_empty()
            || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl ServerRequestInterceptor for AccessRule {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        if !self.concerns(request.adapter()) || request.peer() == RequestPeer::Collocated {
            return Ok(());
        }
        let identity = request.peer_identity();
        if identity.is_some_and(|peer| self.names.iter().any(|name| peer.is_named(name))) {
            return Ok(());
        }
        let who = identity.map_or("a client without a certificate".to_owned(), |peer| {
            format!("the client {peer}")
        });
        (self.report)(&format!(
            "access rule: {who} may not call {} of the adapter {:?}",
            request.operation(),
            request.adapter()
        ));
        Err(local::NAME_NOT_ALLOWED.into())
    }
}

impl fmt::Debug for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessRule")
            .field("adapter", &self.adapter)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
