//! The description of a servant: its interface, and whether it is a proxy.

use rtorb_wire::Ior;

/// The description of a servant, for the operations that every object has.
pub trait Described {
    /// Returns the repository id of its interface.
    fn repository_id(&self) -> &str;

    /// Returns true if the object has that interface.
    fn is_a(&self, repository_id: &str) -> bool;

    /// Returns the definition of its interface in an interface repository.
    #[doc(hidden)]
    fn interface_definition(&self) -> Option<Ior> {
        None
    }

    /// Returns true if it forwards requests to another object unchanged: also implicit operations, and text in code sets that this
    /// ORB does not have.
    #[doc(hidden)]
    fn is_proxy(&self) -> bool {
        false
    }
}
