//! The operations that every object has: `_is_a`, `_non_existent` and the like (CORBA 3, 15.4.2.2).

use super::call::ServerCall;
use super::target::Target;
use crate::exception::{SystemException, local};
use rtorb_core::unknown_operation;
use rtorb_wire::Encode;
use rtorb_wire::giop::{RequestHeader, contexts};

/// Serves an operation that every object has; `None` for one that the interface defines.
pub(super) fn invoke(
    request: &RequestHeader<'_>,
    target: Target<'_>,
    call: &mut ServerCall<'_>,
) -> Option<Result<(), SystemException>> {
    match request.operation {
        b"_is_a" | b"_non_existent" | b"_not_existent" | b"_repository_id" | b"_interface"
        | b"_component" | b"_domain_managers"
            if target.is_proxy() =>
        {
            None
        }
        b"_is_a" => Some(is_a(target, call)),
        b"_non_existent" | b"_not_existent" => Some(
            target
                .exists()
                .and_then(|exists| call.reply(|w| w.primitive(u8::from(!exists)))),
        ),
        b"_repository_id" => Some(target.present().and_then(|object| {
            let id = object.servant.repository_id();
            call.reply(|w| id.encode(w))
        })),
        b"_bind_priority_band" => Some(bind_band(request, call)),
        b"_interface" => Some(target.present().and_then(|object| {
            let definition = object.servant.interface_definition();
            let definition = definition.ok_or(local::NO_REPOSITORY)?;
            call.reply(|w| definition.encode(w))
        })),
        b"_component" | b"_domain_managers" => Some(Err(unknown_operation())),
        _ => None,
    }
}

fn is_a(target: Target<'_>, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
    let object = target.present()?;
    let is_a = {
        let id = call.arguments().str()?;
        object.servant.is_a(&id)
    };
    call.reply(|w| w.primitive(u8::from(is_a)))
}

/// Confirms a connection for a band of priorities (RT-CORBA 1.x, 4.12.3). The server does not depend on the band.
//= RT-CORBA 1.2 §Priority Banded Connections
//# The request _bind_priority_band binds a connection to a band; the server confirms it by a reply.
fn bind_band(
    request: &RequestHeader<'_>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    if let Some(data) = request.contexts.find(contexts::RT_CORBA_PRIORITY_RANGE) {
        let (min, max) = contexts::decode_priority_range(data)?;
        if min < 0 || min > max {
            return Err(local::WRONG_BAND_OF_CLIENT);
        }
    }
    call.reply(|_| Ok(()))
}
