//! Components that interceptors add to references.

use super::Interceptors;
use crate::realtime::Policy;
use rtorb_wire::ior::TaggedComponent;

/// Adds components to the references that an ORB makes for its objects.
pub trait IorInterceptor: Send + Sync {
    /// Adds components to all references of an adapter. The ORB calls this once for each adapter that it makes: for the root adapter while
    /// the ORB is built.
    fn establish_components(&self, info: &mut IorInfo<'_>);
}

/// A new adapter, as an [`IorInterceptor`] sees it.
#[derive(Debug)]
pub struct IorInfo<'a> {
    adapter: &'a str,
    policies: &'a [Policy],
    components: Vec<TaggedComponent>,
}

impl IorInfo<'_> {
    /// Returns the path of the adapter from the root, as [`Poa::name`](crate::Poa::name).
    pub fn adapter(&self) -> &str {
        self.adapter
    }

    /// Returns the RT-CORBA policies of the adapter (`get_effective_policy`).
    pub fn policies(&self) -> &[Policy] {
        self.policies
    }

    /// Adds a component to each profile of a reference (`add_ior_component`).
    pub fn add_component(&mut self, tag: u32, data: &[u8]) {
        self.components.push(TaggedComponent {
            tag,
            data: data.to_vec(),
        });
    }
}

impl Interceptors {
    /// Returns the components of the references of an adapter.
    pub(crate) fn components(&self, adapter: &str, policies: &[Policy]) -> Vec<TaggedComponent> {
        let mut info = IorInfo {
            adapter,
            policies,
            components: Vec::new(),
        };
        for interceptor in &self.ior {
            interceptor.establish_components(&mut info);
        }
        info.components
    }
}
