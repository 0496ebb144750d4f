//! Cubits as objects of an ORB: activated in a server, found by a client.

use rtorb::{Orb, OrbBuilder, PoaPolicies};

use super::Cuber;
use super::idl::Cubit;
use crate::contestants::CALL_TIMEOUT;
use crate::contestants::real_time::as_this_thread;

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

/// Builds a client's ORB, and narrows the references.
///
/// # Errors
/// What the ORB said.
pub(in crate::contestants) fn open_client(
    builder: OrbBuilder,
    references: &[&str],
) -> Result<Vec<Cubit>, String> {
    let orb = builder
        .watchdog_thread(as_this_thread())
        .round_trip_timeout(Some(CALL_TIMEOUT))
        .build()
        .map_err(|error| error.to_string())?;
    let cubit = |reference: &&str| {
        orb.string_to_object(reference)
            .and_then(|object| Cubit::narrow(&object))
            .map_err(|exception| exception.to_string())
    };
    references.iter().map(cubit).collect()
}
