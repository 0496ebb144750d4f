//! The roles of the processes that are measured: what the hidden subcommand `child` can be told to be.
//!
//! Each stands beside the code that it runs. A new one is added here to the list.

use std::process::ExitCode;

use crate::contestants::{
    cubit, demux, event_channel, packets, ping_pong, rates, rt_policies, square_wave, whitebox,
};
use crate::experiments::{
    orb_footprint, orb_switches, os_clock_overhead, os_interruptions, os_interval_jitter,
    os_operations, os_ready_queue, os_services, os_wakeup, own_program,
};
use crate::model;
use crate::processes::child::{self, Role};
use crate::processes::{load, probe};

const ROLES: &[&[Role]] = &[
    child::ROLES,
    ping_pong::ROLES,
    cubit::roles::ROLES,
    demux::ROLES,
    rates::roles::ROLES,
    packets::roles::ROLES,
    rt_policies::roles::ROLES,
    square_wave::roles::ROLES,
    event_channel::roles::ROLES,
    #[cfg(feature = "iceoryx2")]
    crate::contestants::iceoryx2::ROLES,
    whitebox::roles::ROLES,
    orb_footprint::clients::ROLES,
    model::roles::ROLES,
    load::own::ROLES,
    &[
        own_program::ROLE,
        probe::role::<orb_switches::probe::Question>(),
        probe::role::<os_clock_overhead::probe::Question>(),
        probe::role::<os_interruptions::probe::Question>(),
        probe::role::<os_interval_jitter::probe::Question>(),
        probe::role::<os_operations::probe::Question>(),
        probe::role::<os_ready_queue::probe::Question>(),
        probe::role::<os_services::probe::Question>(),
        probe::role::<os_wakeup::Question>(),
    ],
];

/// Plays the role that the arguments after `child` name. Errors go to the laboratory on standard output.
#[must_use]
pub fn play(arguments: &[String]) -> ExitCode {
    child::run(all(), arguments)
}

/// Refuses every role but those that an agent starts for any laboratory. These are the measured servers, which listen over TCP only,
/// and P4's load. They run no program and leave no file.
///
/// # Errors
/// Why not.
pub fn allow_on_agent(role: &[String]) -> Result<(), String> {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    let is_allowed = words.split_first().is_some_and(|(name, arguments)| {
        all().any(|role| role.name == *name && (role.on_agent)(arguments))
    });
    if is_allowed {
        Ok(())
    } else {
        Err(format!(
            "an agent starts the laboratory's servers over TCP and P4's load, and not {:?}",
            words.join(" ")
        ))
    }
}

fn all() -> impl Iterator<Item = &'static Role> {
    ROLES.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn asked(text: &str) -> Result<(), String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        allow_on_agent(&words)
    }

    #[test]
    fn no_two_roles_have_one_name() {
        let names: BTreeSet<&str> = all().map(|role| role.name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn servers_over_tcp_are_started() {
        for role in [
            "raw-server tcp 10.0.0.1:0",
            "cubit-server iiop://10.0.0.1:0",
            "declared-lane-server iiop://10.0.0.1:0 50",
            "propagated-lane-server iiop://10.0.0.1:0 0",
            "demux-server iiop://10.0.0.1:0 300 1000000",
            "rate-server iiop://10.0.0.1:0 tao 60 10w",
            r#"put-receiver iiop://10.0.0.1:0 60 "Timer" none 1"#,
            r#"put-receiver iiop://10.0.0.1:0 60 {"Datagram":4000} IOR:00 1"#,
            r#"event-channel iiop://10.0.0.1:0 {"lanes":[60],"queue_events":64,"wait_ms":null,"counts":false}"#,
            "agent-load disk 900",
        ] {
            assert_eq!(asked(role), Ok(()), "{role}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for role in [
            "exec sh -c true",
            "exec true",
            "cubit-server uiop:///tmp/x",
            "raw-server unix /tmp/x",
            "raw-server futex /dev/shm/x",
            "demux-server iiop://10.0.0.1:0 1 1000001",
            "demux-server iiop://10.0.0.1:0 7 1",
            "demux-server uiop:///tmp/x 1 1",
            "declared-lane-server iiop://10.0.0.1:0 100",
            "rate-server uiop:///tmp/x tao",
            r#"put-receiver iiop://10.0.0.1:0 60 {"Gpio":{"chip":"/dev/gpiochip0","input":1,"output":2,"monitor":null}} none 1"#,
            r#"put-receiver uiop:///tmp/x 60 "Timer" none 1"#,
            r#"put-receiver iiop://10.0.0.1:0 60 "Timer" corbaloc::x/y 1"#,
            r#"event-channel iiop://10.0.0.1:0 {"lanes":[60],"queue_events":99999999,"wait_ms":null,"counts":false}"#,
            "agent-load fork 900",
            "agent-load disk 99999999",
            "load disk /tmp 900",
            "oscilloscope 10.0.0.1",
            "probe",
            "cubit-client IOR:00",
            "",
        ] {
            let why = asked(role).unwrap_err();
            assert!(why.contains("not"), "{role}: {why}");
        }
    }
}
