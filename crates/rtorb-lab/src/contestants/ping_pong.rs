//! The physical limit: two processes that hand each other the octets of a request and its reply, and nothing else.
//!
//! Each way is a file here: [`tcp`] and [`unix`] with one `send` and as few `recv` a message, which std's streams call, as the ORB
//! does (`write` and `read` of a socket take 0.15 us more a round trip), [`futex`] with words in
//! shared memory, for which both sides sleep or spin. [`memcpy`] copies the octets in one process. The first octets of a request say how
//! long it is and how long its reply shall be; a reply of
//! length 0 is none, as for a oneway.

use std::io::{self, Read, Write};
use std::path::Path;

use crate::contestants::burst::{self, Burst, Samples};
use futex::{FutexClient, Wait};

use crate::processes::child::{NOT_ITS_ARGUMENTS, Role, end_with_input, ready};

pub mod futex;
pub mod memcpy;
pub(super) mod spinning;
pub mod tcp;
pub mod unix;

/// Both ends over each transport.
pub(crate) const ROLES: &[Role] = &[
    Role::here("raw-server", |words| {
        end_with_input()?;
        let served = match *words {
            ["tcp", address] => tcp::serve(address, ready),
            ["unix", path] => unix::serve(Path::new(path), ready),
            ["futex", path] => futex::serve(Path::new(path), Wait::Sleep, ready),
            ["spin", path] => futex::serve(Path::new(path), Wait::Spin, ready),
            ["memcpy", _] => memcpy::serve(ready),
            _ => return Err(NOT_ITS_ARGUMENTS.to_owned()),
        };
        served.map_err(|error| error.to_string())
    })
    .on_agent(|words| matches!(words, ["tcp", _])),
    Role::here("raw-client", |words| {
        let failed = |error: io::Error| error.to_string();
        let by_futex = |path: &str, wait: Wait| {
            let mut client = FutexClient::connect(Path::new(path), wait).map_err(failed)?;
            burst::answer(|burst| client.burst(burst))
        };
        match *words {
            ["tcp", address] => {
                let mut client = tcp::connect(address).map_err(failed)?;
                burst::answer(|burst| client.burst(burst))
            }
            ["unix", path] => {
                let mut client = unix::connect(Path::new(path)).map_err(failed)?;
                burst::answer(|burst| client.burst(burst))
            }
            ["futex", path] => by_futex(path, Wait::Sleep),
            ["spin", path] => by_futex(path, Wait::Spin),
            ["memcpy", ..] => {
                let mut copies = memcpy::Copies::new();
                burst::answer(|burst| copies.burst(burst))
            }
            _ => Err(NOT_ITS_ARGUMENTS.to_owned()),
        }
    }),
];

/// Answers requests on a stream until its other end closes it.
///
/// # Errors
/// What the stream said, or that a request announces more than this server takes.
pub fn serve_stream(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let mut incoming = vec![0; BUFFER_BYTES];
    let mut outgoing = vec![0; BUFFER_BYTES];
    let mut begin = 0;
    let mut end = 0;
    loop {
        while let Some(header) = Header::read(&incoming[begin..end]) {
            let request_bytes = header.request_bytes as usize;
            let reply_bytes = header.reply_bytes as usize;
            if request_bytes.max(reply_bytes) > BUFFER_BYTES || request_bytes < HEADER_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if end - begin < request_bytes {
                break;
            }
            begin += request_bytes;
            if reply_bytes > 0 {
                header.write(&mut outgoing);
                stream.write_all(&outgoing[..reply_bytes])?;
            }
        }
        if begin == end {
            (begin, end) = (0, 0);
        } else if begin > 0 {
            incoming.copy_within(begin..end, 0);
            (begin, end) = (0, end - begin);
        }
        match stream.read(&mut incoming[end..])? {
            0 => return Ok(()),
            count => end += count,
        }
    }
}

/// The calling end of a stream.
#[derive(Debug)]
pub struct StreamClient<S> {
    stream: S,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    sequence: u32,
}

impl<S: Read + Write> StreamClient<S> {
    /// A client on a connected stream.
    #[must_use]
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            outgoing: vec![0; BUFFER_BYTES],
            incoming: vec![0; BUFFER_BYTES],
            sequence: 0,
        }
    }

    /// Times a burst of exchanges.
    ///
    /// # Errors
    /// What the stream said, in words.
    pub fn burst(&mut self, burst: &Burst) -> Result<Samples, String> {
        check_sizes(burst, BUFFER_BYTES)?;
        let mut samples = Samples::for_burst(burst);
        let one_way = burst.reply_bytes == 0;
        let begin_ns = rtorb_os::clock::monotonic_ns();
        samples.time(
            burst,
            || self.exchange(burst.request_bytes, burst.reply_bytes),
            |right| *right,
        )?;
        if one_way {
            // The requests are served in order, so this reply comes when all of them were.
            self.exchange(HEADER_BYTES, HEADER_BYTES)
                .map_err(|error| error.to_string())?;
            samples.elapsed_ns = rtorb_os::clock::monotonic_ns() - begin_ns;
        }
        Ok(samples)
    }

    /// Sends a request, waits for its reply if it has one, and answers whether it is the reply to this request.
    fn exchange(&mut self, request_bytes: usize, reply_bytes: usize) -> io::Result<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        let header = Header {
            request_bytes: request_bytes as u32,
            reply_bytes: reply_bytes as u32,
            sequence: self.sequence,
        };
        header.write(&mut self.outgoing);
        self.stream.write_all(&self.outgoing[..request_bytes])?;
        let mut received = 0;
        while received < reply_bytes {
            match self.stream.read(&mut self.incoming[received..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => received += count,
            }
        }
        Ok(reply_bytes == 0
            || Header::read(&self.incoming[..received]).is_some_and(|reply| reply == header))
    }
}

/// What the first octets of a message say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    request_bytes: u32,
    reply_bytes: u32,
    /// Comes back in the reply.
    sequence: u32,
}

impl Header {
    /// `None` when there are too few octets yet.
    fn read(bytes: &[u8]) -> Option<Self> {
        let words = bytes.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| {
            u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
        };
        Some(Self {
            request_bytes: word(0),
            reply_bytes: word(4),
            sequence: word(8),
        })
    }

    fn write(self, bytes: &mut [u8]) {
        bytes[0..4].copy_from_slice(&self.request_bytes.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.reply_bytes.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
    }
}

fn check_sizes(burst: &Burst, bytes_max: usize) -> Result<(), String> {
    let reply_fits =
        burst.reply_bytes == 0 || (HEADER_BYTES..=bytes_max).contains(&burst.reply_bytes);
    if reply_fits && (HEADER_BYTES..=bytes_max).contains(&burst.request_bytes) {
        return Ok(());
    }
    let (request, reply) = (burst.request_bytes, burst.reply_bytes);
    Err(format!(
        "cannot exchange {request} and {reply} octets: {HEADER_BYTES} to {bytes_max} fit"
    ))
}

/// Fewer than the octets of any GIOP request or reply.
const HEADER_BYTES: usize = 12;
/// The largest message of the experiments: a mebibyte of octets, with its headers.
const BUFFER_BYTES: usize = (1 << 20) + 4_096;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::contestants::burst::Verb;
    use crate::contestants::operations::Operation;

    fn burst(request_bytes: usize, reply_bytes: usize) -> Burst {
        Burst {
            verb: Verb::Call,
            operation: Operation::OctetSequence,
            len: 0,
            warm_up: 2,
            count: 20,
            // On a busy host, each wake-up of one of the two may take a time slice.
            budget_ns: 60_000_000_000,
            request_bytes,
            reply_bytes,
            period_ns: 0,
        }
    }

    #[test]
    fn requests_of_every_size_are_answered_and_oneways_are_not() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let config = rtorb_os::thread::ThreadConfig::default();
        let server =
            rtorb_os::thread::spawn("server", &config, move || serve_stream(&mut theirs)).unwrap();
        let mut client = StreamClient::new(ours);
        for (request_bytes, reply_bytes) in
            [(12, 12), (60, 28), (60, 0), (70_000, 70_000), (500_000, 12)]
        {
            let samples = client.burst(&burst(request_bytes, reply_bytes)).unwrap();
            assert_eq!((samples.times_ns.len(), samples.wrong), (20, 0));
        }
        assert!(client.burst(&burst(4, 4)).unwrap_err().contains("octets"));
        drop(client);
        server.join().unwrap().unwrap().unwrap();
    }

    #[test]
    fn a_request_that_announces_too_much_ends_the_server() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[0xff; 64]).unwrap();
        assert_eq!(
            serve_stream(&mut theirs).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
