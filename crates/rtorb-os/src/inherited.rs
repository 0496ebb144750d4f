//! Listening sockets that a service manager passed to this process (sd_listen_fds(3)).
//!
//! The manager opens the sockets and keeps them. It starts the process with copies as the descriptors from 3 on, and describes them in the
//! environment: LISTEN_FDS is their number, LISTEN_PID the process that they are for, and LISTEN_FDNAMES their names, with `:` between two.

use crate::sync::Mutex;
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use std::env;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::process;

/// A passed socket that is taken.
#[derive(Debug)]
pub struct TakenSocket {
    /// A copy of its descriptor.
    pub socket: OwnedFd,
    /// Keeps it taken.
    pub claim: SocketClaim,
}

/// Keeps a passed socket taken. Once it is dropped, the socket can be taken again.
#[derive(Debug)]
pub struct SocketClaim {
    number: usize,
    marks: &'static Marks,
}

impl Drop for SocketClaim {
    fn drop(&mut self) {
        self.marks.lock()[self.number] = Mark::Free;
    }
}

/// Takes the sockets with that name, in their order; with an empty name, all that nobody has.
///
/// The first call keeps all passed sockets from programs that this process starts later, also those that it does not take.
///
/// # Errors
/// [`InheritError`]; then no socket is taken.
pub fn take_sockets(name: &str) -> Result<Vec<TakenSocket>, InheritError> {
    let variables = Variables::of_environment();
    let names = variables.names(process::id())?;
    take(name, &names, FIRST, &MARKS)
}

/// Takes the sockets with that name among those with these names, the first of which is the descriptor `first`.
fn take(
    name: &str,
    names: &[&str],
    first: RawFd,
    all_marks: &'static Marks,
) -> Result<Vec<TakenSocket>, InheritError> {
    let mut marks = all_marks.lock();
    let marks = &mut marks[..names.len()];
    let looks: Vec<_> = marks
        .iter_mut()
        .zip(first..)
        .map(|(mark, descriptor)| look(mark, descriptor))
        .collect();
    let is_wanted = |number: &usize| match name {
        "" => marks[*number] != Mark::Taken,
        _ => names[*number] == name,
    };
    let wanted: Vec<usize> = (0..names.len()).filter(is_wanted).collect();
    if wanted.is_empty() {
        return Err(match name {
            "" => InheritError::NothingLeft,
            _ => InheritError::NoSuchName(names.join(", ")),
        });
    }
    let copies = wanted.iter().map(|number| {
        let free = looks[*number].clone()?;
        fcntl_dupfd_cloexec(free, FIRST).map_err(|errno| refused(first, *number, errno))
    });
    let copies = copies.collect::<Result<Vec<_>, _>>()?;
    let taken = wanted.into_iter().zip(copies).map(|(number, socket)| {
        marks[number] = Mark::Taken;
        let claim = SocketClaim {
            number,
            marks: all_marks,
        };
        TakenSocket { socket, claim }
    });
    Ok(taken.collect())
}

/// Why a passed socket was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InheritError {
    /// The process was not started with sockets.
    #[error(
        "no socket was passed to this process, because LISTEN_FDS or LISTEN_PID is not set, or LISTEN_FDS is 0"
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
    /// All sockets are taken.
    #[error("all sockets that were passed to this process are taken")]
    NothingLeft,
    /// The socket is taken.
    #[error("descriptor {0} is taken, by another endpoint or by other code of this program")]
    Taken(RawFd),
    /// The descriptor is something else.
    #[error("descriptor {0} is no listening stream socket")]
    NotListening(RawFd),
    /// The host refuses to change or to copy the descriptor.
    #[error("descriptor {descriptor} cannot be taken: {errno}")]
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

/// Returns a socket that nobody has. One that was not seen before is kept from other programs.
fn look(mark: &mut Mark, descriptor: RawFd) -> Result<BorrowedFd<'static>, InheritError> {
    match mark {
        Mark::Taken => return Err(InheritError::Taken(descriptor)),
        // SAFETY: it was passed to this process, no other code of the process owns it (`check`), and this module never closes it.
        Mark::Free => return Ok(unsafe { BorrowedFd::borrow_raw(descriptor) }),
        Mark::Unseen => {}
    }
    let socket = check(descriptor)?;
    fcntl_setfd(socket, FdFlags::CLOEXEC)
        .map_err(|errno| InheritError::Refused { descriptor, errno })?;
    *mark = Mark::Free;
    Ok(socket)
}

/// Checks that the descriptor is a listening stream socket that was there when this program began.
fn check(descriptor: RawFd) -> Result<BorrowedFd<'static>, InheritError> {
    // SAFETY: it reads a flag of the descriptor, and fails if the descriptor is not open.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    if flags < 0 {
        return Err(InheritError::NotListening(descriptor));
    }
    // What has this flag did not come from the program before: other code of this process has opened it, or has taken it.
    if flags & libc::FD_CLOEXEC != 0 {
        return Err(InheritError::Taken(descriptor));
    }
    // SAFETY: it is open, and no code of this process owns it that could close it: see the flag above.
    let socket = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let is_stream = socket_type(socket) == Ok(SocketType::STREAM);
    if !is_stream || socket_acceptconn(socket) != Ok(true) {
        return Err(InheritError::NotListening(descriptor));
    }
    Ok(socket)
}

fn refused(first: RawFd, number: usize, errno: Errno) -> InheritError {
    let descriptor = first + number as RawFd;
    InheritError::Refused { descriptor, errno }
}

const COUNT: &str = "LISTEN_FDS";
const PROCESS: &str = "LISTEN_PID";
const NAMES: &str = "LISTEN_FDNAMES";
/// The name of sockets without names, as in sd_listen_fds_with_names(3).
const NO_NAME: &str = "unknown";
/// The descriptor of the first socket.
const FIRST: RawFd = 3;
const SOCKETS_MAX: usize = 256;

/// What is known of a passed socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nothing yet.
    Unseen,
    /// It is kept from other programs, and nobody has it.
    Free,
    Taken,
}

/// The marks of all sockets that can be passed.
type Marks = Mutex<[Mark; SOCKETS_MAX]>;

/// The marks of the sockets that were passed to this process.
static MARKS: Marks = Mutex::new([Mark::Unseen; SOCKETS_MAX]);

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::fcntl_getfd;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;

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
            ("7", "0", None, "LISTEN_FDS is 0"),
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
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let descriptor = listener.as_raw_fd();
        let refused = check(descriptor).expect_err("it has the flag");
        assert_eq!(refused, InheritError::Taken(descriptor));
        fcntl_setfd(&listener, FdFlags::empty()).expect("it is open");
        check(descriptor).expect("it listens");
    }

    #[test]
    fn a_socket_has_one_taker_at_a_time_and_is_free_after_an_error() {
        static OWN: Marks = Mutex::new([Mark::Unseen; SOCKETS_MAX]);
        let [listener, other, datagrams] = three_passed();
        let first = listener.as_raw_fd();
        let take = |name, names: &[&str]| take(name, names, first, &OWN);
        let names = ["a", "b", "b"];
        let refused = take("b", &names).expect_err("one is of UDP");
        assert_eq!(refused, InheritError::NotListening(datagrams.as_raw_fd()));
        for socket in [&listener, &other] {
            assert_eq!(fcntl_getfd(socket), Ok(FdFlags::CLOEXEC));
        }

        let two = &names[..2];
        let all = take("", two).expect("nobody has them");
        assert_eq!(all.len(), 2);
        assert_ne!(all[0].socket.as_raw_fd(), first, "a copy");
        let refused = take("a", two).expect_err("it is taken");
        assert_eq!(refused, InheritError::Taken(first));
        let refused = take("", two).expect_err("all are taken");
        assert_eq!(refused, InheritError::NothingLeft);
        drop(all);
        let one = take("a", two).expect("it is free again");
        let rest = take("", two).expect("the other one is free");
        assert_eq!((one.len(), rest.len()), (1, 1));
        assert_eq!(rest[0].claim.number, 1);
    }

    /// Two listening sockets and another one, as if a manager had passed them: consecutive descriptors without CLOEXEC.
    fn three_passed() -> [OwnedFd; 3] {
        let listener = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let sockets: [OwnedFd; 3] = [listener().into(), listener().into(), datagrams.into()];
        let passed = sockets.map(|socket| {
            let copy = fcntl_dupfd_cloexec(&socket, UNUSED).expect("a descriptor");
            fcntl_setfd(&copy, FdFlags::empty()).expect("it is open");
            copy
        });
        let descriptors = passed.each_ref().map(AsRawFd::as_raw_fd);
        assert_eq!(descriptors, [UNUSED, UNUSED + 1, UNUSED + 2]);
        passed
    }

    /// The tests of this crate open no descriptors from here on.
    const UNUSED: RawFd = 800;

    #[test]
    fn only_a_listening_stream_socket_is_taken() {
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port");
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
            let refused = check(descriptor).expect_err("it does not listen");
            assert_eq!(refused, InheritError::NotListening(descriptor));
        }
    }
}
