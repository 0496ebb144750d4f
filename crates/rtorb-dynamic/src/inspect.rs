//! The contents of a reference, whether its object replies, and the response times of calls.

use rtorb::ior::{Component, Ior};

pub mod ior;
pub mod ping;
pub mod repeat;

/// Returns true if a server built of TAO made the reference.
#[must_use]
pub fn is_of_tao(ior: &Ior) -> bool {
    const TAO: u32 = 0x5441_4f00;
    let mut components = ior.iiop_profiles().flat_map(|profile| profile.components);
    components.any(|component| {
        matches!(Component::from_tagged(&component), Ok(Component::OrbType(orb)) if orb == TAO)
    })
}
