//! Listening sockets that a service manager passed to this process (sd_listen_fds(3)).
//!
//! The manager opens the sockets and keeps them. It starts the process with copies as the descriptors from 3 on, and describes them in the
//! environment: LISTEN_FDS is their number, LISTEN_PID the process that they are for, and LISTEN_FDNAMES their names, with `:` between two.

use crate::sync::Mutex;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use std::env;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::process;

/// Takes the sockets with that name, in their order; with an empty name, all that are not taken yet.
///
/// Each socket is taken once in the life of the process. Programs that this process starts later do not get it.
///
/// # Errors
/// [`InheritError`]; then no socket is taken.
pub fn take_sockets(name: &str) -> Result<Vec<OwnedFd>, InheritError> {
    let variables = Variables::of_environment();
    let names = variables.names(process::id())?;
    let mut taken = TAKEN.lock();
    let is_wanted =
        |(number, its): &(usize, &&str)| **its == name || name.is_empty() && !taken[*number];
    let wanted = names.iter().enumerate().filter(is_wanted);
    let wanted: Vec<usize> = wanted.map(|(number, _)| number).collect();
    if wanted.is_empty() {
        return Err(match name {
            "" => InheritError::Taken(FIRST),
            _ => InheritError::NoSuchName(names.join(", ")),
        });
    }
    for number in &wanted {
        if taken[*number] {
            return Err(InheritError::Taken(descriptor_of(*number)));
        }
        check(descriptor_of(*number))?;
    }
    for number in &wanted {
        taken[*number] = true;
    }
    wanted.into_iter().map(descriptor_of).map(adopt).collect()
}

/// Why a passed socket was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InheritError {
    /// The process was not started with sockets.
    #[error(
        "no socket was passed to this process, because LISTEN_FDS or LISTEN_PID is not set or 0"
    )]
    NotPassed,
    /// The sockets are for another process.
    #[error(
        "LISTEN_PID says that the sockets are for process {wanted}, and this is process {own}: the service manager must start this \
         program itself, or a shell must start it by `exec`"
    )]
    OtherProcess {
        /// The process in LISTEN_PID.
        wanted: u32,
        /// This process.
        own: u32,
    },
    /// A variable has a value that it cannot have.
    #[error("{variable} is `{value}`, which is no number of {of}")]
    NoNumber {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it counts or names.
        of: &'static str,
    },
    /// There are more sockets than any program needs.
    #[error("LISTEN_FDS is {0}, and at most {SOCKETS_MAX} sockets can be taken")]
    TooMany(usize),
    /// The numbers of sockets and of names differ.
    #[error("LISTEN_FDS is {sockets}, and LISTEN_FDNAMES has {names} names")]
    OtherCount {
        /// The number of sockets.
        sockets: usize,
        /// The number of names.
        names: usize,
    },
    /// No socket has the name.
    #[error("no socket with that name was passed; the names are {0}")]
    NoSuchName(String),
    /// The socket was taken before.
    #[error(
        "descriptor {0} was taken before, by another endpoint or by other code of this program"
    )]
    Taken(RawFd),
    /// The descriptor is something else.
    #[error("descriptor {0} is no listening stream socket")]
    NotListening(RawFd),
    /// The host refuses to change the descriptor.
    #[error("descriptor {descriptor} cannot be kept from other programs: {errno}")]
    Refused {
        /// The descriptor.
        descriptor: RawFd,
        /// The reason.
        errno: Errno,
    },
}

/// The variables by which a service manager describes the sockets.
#[derive(Debug, Default)]
struct Variables {
    process: Option<String>,
    count: Option<String>,
    names: Option<String>,
}

impl Variables {
    fn of_environment() -> Self {
        let text = |variable| {
            let value = env::var_os(variable)?;
            Some(value.to_string_lossy().into_owned())
        };
        Self {
            process: text(PROCESS),
            count: text(COUNT),
            names: text(NAMES),
        }
    }

    /// Returns the name of each socket that was passed to the process `own`.
    fn names(&self, own: u32) -> Result<Vec<&str>, InheritError> {
        let (Some(process), Some(count)) = (&self.process, &self.count) else {
            return Err(InheritError::NotPassed);
        };
        let no_number = |variable, value: &String, of| InheritError::NoNumber {
            variable,
            value: value.clone(),
            of,
        };
        let wanted = process
            .parse()
            .map_err(|_| no_number(PROCESS, process, "a process"))?;
        if wanted != own {
            return Err(InheritError::OtherProcess { wanted, own });
        }
        let sockets = count
            .parse()
            .map_err(|_| no_number(COUNT, count, "sockets"))?;
        match sockets {
            0 => return Err(InheritError::NotPassed),
            1..=SOCKETS_MAX => {}
            _ => return Err(InheritError::TooMany(sockets)),
        }
        let Some(names) = &self.names else {
            return Ok(vec![NO_NAME; sockets]);
        };
        let names: Vec<&str> = names.split(':').collect();
        if names.len() != sockets {
            return Err(InheritError::OtherCount {
                sockets,
                names: names.len(),
            });
        }
        Ok(names)
    }
}

/// Checks that the descriptor is a listening stream socket that was there when this program began.
fn check(descriptor: RawFd) -> Result<(), InheritError> {
    // SAFETY: it reads a flag of the descriptor, and fails if the descriptor is not open.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    if flags < 0 {
        return Err(InheritError::NotListening(descriptor));
    }
    // What has this flag did not come from the program before: this process has opened it, or has taken it.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(InheritError::Taken(descriptor));
    }
    // SAFETY: it is open, and no code of this process owns it that could close it: see the flag above.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let is_stream = socket_type(socket) == Ok(SocketType::STREAM);
    if !is_stream || socket_acceptconn(socket) != Ok(true) {
        return Err(InheritError::NotListening(descriptor));
    }
    Ok(())
}

/// Makes this process the owner of a descriptor that [`check`] has accepted and that nobody has taken.
fn adopt(descriptor: RawFd) -> Result<OwnedFd, InheritError> {
    // SAFETY: the manager passed it to this process, no other code of the process owns it (`check`), and it is given away once (`TAKEN`).
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC)
        .map_err(|errno| InheritError::Refused { descriptor, errno })?;
    Ok(socket)
}

fn descriptor_of(number: usize) -> RawFd {
    FIRST + number as RawFd
}

const COUNT: &str = "LISTEN_FDS";
const PROCESS: &str = "LISTEN_PID";
const NAMES: &str = "LISTEN_FDNAMES";
/// The name of sockets without names, as in sd_listen_fds_with_names(3).
const NO_NAME: &str = "unknown";
/// The descriptor of the first socket.
const FIRST: RawFd = 3;
const SOCKETS_MAX: usize = 256;

/// Which sockets are taken.
static TAKEN: Mutex<[bool; SOCKETS_MAX]> = Mutex::new([false; SOCKETS_MAX]);

#[cfg(test)]
mod tests {
    use super::*;

    fn names(process: &str, count: &str, names: Option<&str>) -> Result<String, String> {
        let variables = Variables {
            process: Some(process.to_owned()),
            count: Some(count.to_owned()),
            names: names.map(str::to_owned),
        };
        let names = variables.names(7);
        names
            .map(|names| names.join(" "))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_socket_has_a_name() {
        assert_eq!(names("7", "2", None), Ok("unknown unknown".to_owned()));
        assert_eq!(names("7", "1", Some("")), Ok(String::new()));
        assert_eq!(names("7", "3", Some("a:b:a")), Ok("a b a".to_owned()));
    }

    #[test]
    fn variables_that_describe_no_socket_of_this_process_say_why() {
        let none = Variables::default();
        assert_eq!(none.names(7), Err(InheritError::NotPassed));
        for (process, count, given, reason) in [
            ("7", "0", None, "LISTEN_FDS or LISTEN_PID is not set or 0"),
            ("8", "1", None, "for process 8, and this is process 7"),
            ("", "1", None, "LISTEN_PID is ``"),
            ("7", "-1", None, "LISTEN_FDS is `-1`"),
            ("7", "257", None, "at most 256"),
            ("7", "2", Some("a"), "LISTEN_FDNAMES has 1 names"),
        ] {
            let error = names(process, count, given).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_descriptor_that_this_program_has_opened_is_left_alone() {
        use std::os::fd::AsRawFd as _;

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let descriptor = listener.as_raw_fd();
        assert_eq!(check(descriptor), Err(InheritError::Taken(descriptor)));
        fcntl_setfd(&listener, FdFlags::empty()).expect("it is open");
        assert_eq!(check(descriptor), Ok(()));
    }

    #[test]
    fn only_a_listening_stream_socket_is_taken() {
        use std::os::fd::AsRawFd as _;

        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (connected, _peer) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let (pipe, _writer) = std::io::pipe().expect("a pipe");
        fcntl_setfd(&datagrams, FdFlags::empty()).expect("it is open");
        fcntl_setfd(&connected, FdFlags::empty()).expect("it is open");
        fcntl_setfd(&pipe, FdFlags::empty()).expect("it is open");
        let others = [
            datagrams.as_raw_fd(),
            connected.as_raw_fd(),
            pipe.as_raw_fd(),
            RawFd::MAX,
        ];
        for descriptor in others {
            assert_eq!(
                check(descriptor),
                Err(InheritError::NotListening(descriptor))
            );
        }
    }
}
