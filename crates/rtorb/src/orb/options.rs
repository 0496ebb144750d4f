//! The `-ORB...` options that every CORBA program takes on its command line (CORBA 3, 4.5.1).

use super::builder::{OrbBuilder, OrbError};

/// What the options are, for messages.
const KNOWN: &str = "-ORBInitRef NAME=REFERENCE, -ORBListenEndpoints ENDPOINT[;ENDPOINT...], \
                     -ORBDispatch thread_per_connection|reactive, -ORBid NAME";

/// Takes the options out of `arguments`, applies them and answers the builder with what is left.
pub(super) fn take(
    mut builder: OrbBuilder,
    arguments: impl IntoIterator<Item = String>,
) -> Result<(OrbBuilder, Vec<String>), OrbError> {
    let mut left = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix("-ORB") else {
            left.push(argument);
            continue;
        };
        let value = arguments
            .next()
            .ok_or_else(|| wrong(&argument, "its value is missing"))?;
        builder = apply(builder, option, &value)?;
    }
    Ok((builder, left))
}

fn apply(builder: OrbBuilder, option: &str, value: &str) -> Result<OrbBuilder, OrbError> {
    let name = format!("-ORB{option}");
    match option {
        "InitRef" => match value.split_once('=') {
            Some((id, reference)) if !id.is_empty() && !reference.is_empty() => {
                Ok(builder.initial_reference(id, reference))
            }
            _ => Err(wrong(&name, "its value is no NAME=REFERENCE")),
        },
        "ListenEndpoints" | "Endpoint" | "endPoint" => value
            .split(';')
            .filter(|endpoint| !endpoint.is_empty())
            .try_fold(builder, OrbBuilder::listen),
        "Dispatch" => Ok(
            builder.dispatch(value.parse().map_err(|error| OrbError::Option {
                option: name,
                reason: format!("{error}"),
            })?),
        ),
        // One process may have several ORBs; each is a value of its own here, so the name says nothing.
        "id" | "Id" => Ok(builder),
        _ => Err(wrong(
            &name,
            &format!("there is no such option; there are {KNOWN}"),
        )),
    }
}

fn wrong(option: &str, reason: &str) -> OrbError {
    OrbError::Option {
        option: option.to_owned(),
        reason: reason.to_owned(),
    }
}
