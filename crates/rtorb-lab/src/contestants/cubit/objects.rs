//! Cubits as objects of a server's ORB.

use rtorb::{Orb, PoaPolicies};

use super::Cuber;
use super::idl::Cubit;

/// Activates the servant in an adapter of its own, and answers the reference.
///
/// # Errors
/// What the ORB said.
pub(in crate::contestants) fn activate(
    orb: &Orb,
    adapter: &str,
    policies: PoaPolicies,
    servant: Cuber,
) -> Result<String, String> {
    let root = orb.root_poa().map_err(|exception| exception.to_string())?;
    let poa = root
        .create_poa(adapter, policies)
        .map_err(|error| error.to_string())?;
    let cubit: Cubit = poa.activate(servant).map_err(|error| error.to_string())?;
    Ok(orb.object_to_string(cubit.as_object()))
}
