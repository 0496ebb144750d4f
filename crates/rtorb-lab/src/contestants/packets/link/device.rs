//! An end of a link: the process that keeps its network namespace, and makes the device in it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};

use rtorb_instruments::network::{enter_new_network, show_own_network};
use rustix::io::Errno;

use super::Part;
use crate::processes::{questions, veth};

/// Makes a namespace for the calling thread, and [`Part`]s in it as it is asked, until standard input ends. The answer is what the host
/// refused, if it did. `words` may have the name of the device; the process that makes none has one of its own.
///
/// # Errors
/// What the host refused.
pub(in super::super) fn keep(words: &[&str]) -> Result<(), String> {
    let namespace = enter_new_network();
    let own = name(std::process::id());
    let device = words.first().copied().unwrap_or(&own);
    questions::serve(|part: Part| -> Result<Option<String>, String> {
        if let Err(errno) = namespace {
            return Ok(Some(format!("a network namespace: {errno}")));
        }
        match part.make(device) {
            Ok(()) => Ok(None),
            Err(error) => {
                let what = format!("{part:?} cannot be made: {error}");
                if is_refused(kind(&error)) {
                    Ok(Some(what))
                } else {
                    Err(what)
                }
            }
        }
    })
}

/// What an error is; a kernel without a device, a queue, a setting or a kind of socket says so in several ways.
pub(super) fn kind(error: &io::Error) -> ErrorKind {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::OPNOTSUPP | Errno::AFNOSUPPORT) => ErrorKind::Unsupported,
        _ => error.kind(),
    }
}

/// What the host does not do.
pub(super) fn refused(what: String) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, what)
}

/// Whether the host forbids something or does not have it. Any other error is a fault of the laboratory.
fn is_refused(kind: ErrorKind) -> bool {
    use ErrorKind::{NotFound, PermissionDenied, Unsupported};
    [NotFound, PermissionDenied, Unsupported].contains(&kind)
}

/// The name of the devices of a link whose server's end this process keeps. It is in the names of the kernel's threads too, which all
/// namespaces see, so no two links have the same.
pub(super) fn name(server: u32) -> String {
    format!("l{server:x}")
}

impl Part {
    fn make(self, device: &str) -> io::Result<()> {
        match self {
            Self::Devices { peer, queues } => {
                let kind = veth::DeviceKind {
                    segments_max: SEGMENTS_MAX,
                    queues,
                };
                veth::make(device, peer, kind)
            }
            Self::Address(end) => {
                let address = end.address().parse().map_err(io::Error::other)?;
                veth::set_up(device, address)
            }
            Self::Queue(discipline) => discipline.set_up(veth::interface(device)?),
            Self::SendingQueue { queue, cpu } => set(
                device,
                &format!("queues/tx-{queue}/xps_cpus"),
                &cpu_mask(cpu),
            ),
            Self::Receiving { receiving, cpu } => receiving.set_up(device, cpu),
        }
    }
}

/// Writes a setting of the device to its file in /sys, which shows the namespace of this process from the first time on.
pub(super) fn set(device: &str, file: &str, value: &str) -> io::Result<()> {
    let folder = format!("/sys/class/net/{device}");
    if !fs::exists(&folder)? {
        show_own_network().map_err(|errno| refused(format!("the network of /sys: {errno}")))?;
    }
    let path = format!("{folder}/{file}");
    // A file that is not there is to be missed, not made.
    let opened = File::options().write(true).open(&path);
    let written = opened.and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| io::Error::new(kind(&error), format!("{value} in {path}: {error}")))
}

/// A CPU as the kernel's files take it: 32 in a word, the last one first.
pub(super) fn cpu_mask(cpu: usize) -> String {
    format!("{:x}{}", 1 << (cpu % 32), ",0".repeat(cpu / 32))
}

/// Each segment is a packet. Otherwise TCP gives the device up to 64 KiB as one packet, and an urgent one waits for all of it.
const SEGMENTS_MAX: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_lacks_something_refuses_and_a_wrong_message_is_a_fault() {
        let of = |errno: Errno| is_refused(kind(&errno.into()));
        let refused = [Errno::PERM, Errno::ACCESS, Errno::OPNOTSUPP, Errno::NOENT];
        for refused in refused.into_iter().chain([Errno::AFNOSUPPORT]) {
            assert!(of(refused), "{refused}");
        }
        for fault in [Errno::INVAL, Errno::EXIST, Errno::NODEV, Errno::MSGSIZE] {
            assert!(!of(fault), "{fault}");
        }
    }

    #[test]
    fn a_cpu_is_a_bit_in_words_of_32() {
        let masks = [0, 5, 31, 32, 70].map(cpu_mask);
        assert_eq!(masks, ["1", "20", "80000000", "1,0", "40,0,0"]);
    }
}
