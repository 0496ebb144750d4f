//! Tells the supervisor of this process, such as systemd, that the service is ready, that it lives, and that it ends (sd_notify(3)).
//!
//! Each message is one datagram to the UNIX socket that NOTIFY_SOCKET names. That the service lives is known by a call of its own object, over
//! its own endpoint: a service whose threads all hang or wait is silent, and its supervisor starts it again.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::Duration;

use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::{ExceptionKind, ObjectRef, Orb, SystemException};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::thread::spawn;

use crate::output::warn;

/// Says that the ORB serves the object with that key, and from now on that it lives, if a supervisor wants to know.
pub(crate) fn tell_ready(orb: &Orb, key: &str) {
    let Some(supervisor) = Supervisor::of_environment() else {
        return;
    };
    supervisor.tell(READY);
    if let Some(within) = watchdog_time() {
        let begun = own_object(orb, key)
            .map_err(|exception| exception.to_string())
            .and_then(|object| {
                supervisor
                    .watch(&object, within)
                    .map_err(|refused| refused.to_string())
            });
        if let Err(reason) = begun {
            warn(format!(
                "the supervisor is not told that the service lives: {reason}"
            ));
        }
    }
}

/// Says that a service without an object of its own serves. The supervisor does not learn that it lives.
pub(crate) fn tell_started() {
    if let Some(supervisor) = Supervisor::of_environment() {
        supervisor.tell(READY);
    }
}

/// Says that the service begins to end.
pub(crate) fn tell_end() {
    if let Some(supervisor) = Supervisor::of_environment() {
        supervisor.tell("STOPPING=1");
    }
}

/// The socket of the supervisor.
struct Supervisor {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Supervisor {
    /// The one that started this process; `None` if it wants to be told nothing. Warns if it cannot be told.
    fn of_environment() -> Option<Self> {
        let name = env::var_os(SOCKET).filter(|name| !name.is_empty())?;
        let supervisor = Self::at(&name);
        if let Err(error) = &supervisor {
            warn(format!("{SOCKET} {}: {error}", name.display()));
        }
        supervisor.ok()
    }

    /// An absolute path, or `@` and the name of an abstract socket.
    fn at(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => {
                let reason = "it is neither an absolute path nor @ and a name";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
        };
        let socket = UnixDatagram::unbound()?;
        // A supervisor that takes nothing must not stop the service.
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self { socket, address })
    }

    /// Sends a message. If it does not arrive, the service goes on.
    fn tell(&self, message: &str) {
        if let Err(error) = self.socket.send_to_addr(message.as_bytes(), &self.address) {
            warn(format!("{SOCKET}: cannot send {message}: {error}"));
        }
    }

    /// Starts the thread that calls the object three times in each `within`, until its ORB ends, and says that the service lives whenever
    /// the object answers.
    fn watch(self, object: &ObjectRef, within: Duration) -> Result<(), rtorb::thread::Refused> {
        let interval = within / CALLS_EACH;
        let object = object.with_timeout(Some(interval));
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let work = move || {
            loop {
                let next_ns = monotonic_ns().saturating_add(interval_ns);
                match object.non_existent() {
                    Err(exception) if exception.kind == ExceptionKind::BadInvOrder => return,
                    answer if is_alive(&answer) => self.tell("WATCHDOG=1"),
                    _ => {}
                }
                sleep_until(next_ns);
            }
        };
        let config = ThreadConfig {
            policy: Some(SchedPolicy::Other),
            ..ThreadConfig::default()
        };
        // It ends with the ORB or with the process. No thread joins it.
        spawn("rtorb-liveness", &config, work).map(drop)
    }
}

/// True if the server has answered, also by an exception: it does not serve calls of this priority, or sheds load. An exception that this
/// process raised as the client, such as that of a TLS certificate, has a cause or a detail, and is no answer.
fn is_alive(answer: &Result<bool, SystemException>) -> bool {
    let is_reply = |it: &SystemException| it.cause.is_none() && it.detail().is_none();
    answer.as_ref().err().is_none_or(is_reply)
}

/// The object with that key at the first endpoint of the ORB, one without TLS if there is one: it needs no certificate. The address in a
/// reference may be one that only other hosts can reach.
fn own_object(orb: &Orb, key: &str) -> Result<ObjectRef, SystemException> {
    let endpoints = orb.endpoints().into_iter().map(|it| it.to_string());
    let endpoints: Vec<String> = endpoints.collect();
    let plain = endpoints.iter().find(|it| !it.starts_with("ssliop:"));
    let endpoint = plain.or(endpoints.first());
    orb.string_to_object(&location(endpoint.ok_or(ExceptionKind::Internal)?, key))
}

/// The `corbaloc:` of an endpoint: `iiop://HOST:PORT` or `uiop:///PATH`.
fn location(endpoint: &str, key: &str) -> String {
    let (protocol, place) = endpoint.split_once("://").unwrap_or(("iiop", endpoint));
    let delimiter = if place.starts_with('/') { '|' } else { '/' };
    let escapes = [('%', "%25"), (',', "%2c"), ('|', "%7c")];
    let place = escapes.iter().fold(place.to_owned(), |place, (from, to)| {
        place.replace(*from, to)
    });
    format!("corbaloc:{protocol}:1.2@{place}{delimiter}{key}")
}

/// The time within which the supervisor wants to hear that the service lives, if it does.
fn watchdog_time() -> Option<Duration> {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let is_other = number(WATCHDOG_PROCESS).is_some_and(|id| id != u64::from(process::id()));
    let time = number(WATCHDOG_TIME).filter(|us| *us > 0 && !is_other);
    time.map(Duration::from_micros)
}

const SOCKET: &str = "NOTIFY_SOCKET";
const READY: &str = "READY=1";
/// The time of the watchdog in microseconds, and the process that it is meant for.
const WATCHDOG_TIME: &str = "WATCHDOG_USEC";
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// One call may fail, and one may come late.
const CALLS_EACH: u32 = 3;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use rtorb::skeleton::{OperationTable, ServedBy, ServerCall, unknown_operation};
    use rtorb::{DispatchStrategy, Interface};

    use super::*;

    /// A reference to an object whose one operation hangs until the test ends it.
    #[derive(Clone)]
    struct Hanging(ObjectRef);

    impl Interface for Hanging {
        type Object = ObjectRef;
        const REPOSITORY_ID: &'static str = "IDL:Hanging:1.0";
        const ANCESTORS: &'static [&'static str] = &[];

        fn unchecked_narrow(object: ObjectRef) -> Self {
            Self(object)
        }

        fn as_object(&self) -> &ObjectRef {
            &self.0
        }
    }

    /// What ends the calls.
    struct Released(Mutex<Receiver<()>>);

    impl ServedBy<Released> for Hanging {
        fn find_operation(name: &[u8]) -> Option<usize> {
            static TABLE: OperationTable<1, 1, 4> = OperationTable::new(["hang"]);
            TABLE.find(name)
        }

        fn dispatch(
            servant: &Released,
            operation: usize,
            call: &mut ServerCall<'_>,
        ) -> Result<(), SystemException> {
            if operation != 0 {
                return Err(unknown_operation());
            }
            servant.0.lock().unwrap().recv().unwrap();
            call.reply(|_| Ok(()))
        }
    }

    fn listening(name: &str) -> UnixDatagram {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_read_timeout(Some(LONGEST)).unwrap();
        socket
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).expect("a message comes");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_service_that_hangs_does_not_say_that_it_lives() {
        let name = format!("rtorb-supervisor-{}", process::id());
        let socket = listening(&name);
        let orb = Orb::builder()
            .dispatch(DispatchStrategy::Reactive)
            .build()
            .unwrap();
        let (release, released) = channel();
        let poa = orb.root_poa().unwrap();
        let object: Hanging = poa.activate(Released(Mutex::new(released))).unwrap();
        orb.bind_object_key("Hanging", object.as_object()).unwrap();
        poa.manager().activate();
        let (server, (begun, is_serving)) = (orb.clone(), channel());
        let serving = thread::spawn(move || {
            server.run_with(|| {
                begun.send(()).unwrap();
                Ok::<(), rtorb::OrbError>(())
            })
        });
        is_serving.recv().unwrap();
        let supervisor = Supervisor::at(format!("@{name}").as_ref()).unwrap();
        supervisor.tell("READY=1");
        let own = own_object(&orb, "Hanging").unwrap();
        supervisor.watch(&own, INTERVAL * CALLS_EACH).unwrap();
        assert_eq!(heard(&socket), "READY=1");
        for _ in 0..3 {
            assert_eq!(heard(&socket), "WATCHDOG=1");
        }

        let client = Orb::builder().build().unwrap();
        let there = client
            .string_to_object(&object.as_object().to_string())
            .unwrap();
        let hang = move || there.invoke("hang", |_| Ok(()), |_| Ok(()));
        let hanging = thread::spawn(hang);
        // What the service said before it hung.
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        let said = (0..MESSAGES_MAX).take_while(|_| socket.recv(&mut [0; 64]).is_ok());
        let count = said.count();
        assert!(count < MESSAGES_MAX, "it says that it lives while it hangs");
        assert!(!hanging.is_finished());

        release.send(()).unwrap();
        hanging.join().unwrap().unwrap();
        socket.set_read_timeout(Some(LONGEST)).unwrap();
        assert_eq!(heard(&socket), "WATCHDOG=1");
        orb.shutdown();
        serving.join().unwrap().unwrap();
    }

    #[test]
    fn every_endpoint_has_a_location() {
        let orb = Orb::builder().build().unwrap();
        for (endpoint, expected) in [
            ("iiop://[::1]:2809", "corbaloc:iiop:1.2@[::1]:2809/K"),
            ("uiop:///run/a,b", "corbaloc:uiop:1.2@/run/a%2cb|K"),
            ("shmiop:///run/100%", "corbaloc:shmiop:1.2@/run/100%25|K"),
        ] {
            assert_eq!(location(endpoint, "K"), expected);
            let object = orb.string_to_object(expected).unwrap();
            let there = object.endpoints().next().unwrap();
            assert_eq!(there.to_string(), endpoint);
        }
    }

    #[test]
    fn a_name_that_is_no_socket_is_refused() {
        assert!(Supervisor::at("relative".as_ref()).is_err());
        assert!(Supervisor::at("/run/systemd/notify".as_ref()).is_ok());
    }

    const INTERVAL: Duration = Duration::from_millis(50);
    /// Longer than several intervals: nothing comes in it.
    const SILENCE: Duration = Duration::from_millis(400);
    const LONGEST: Duration = Duration::from_secs(60);
    /// More than a service says until a busy host lets its client call it.
    const MESSAGES_MAX: usize = 1_000;
}
