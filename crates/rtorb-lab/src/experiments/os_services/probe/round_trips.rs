//! 64 octets from one thread to another of equal priority, and back.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use rtorb_os::clock::monotonic_ns;

use super::{MESSAGE_BYTES, Pauses, Question, Samples, Urgency, run};
use crate::processes::probe::Answer;

pub(super) fn over_pipes(question: &Question) -> Result<Answer, String> {
    let ends = || -> io::Result<_> {
        let (request_reader, request_writer) = pipe()?;
        let (reply_reader, reply_writer) = pipe()?;
        let client = PipeEnd {
            reader: reply_reader,
            writer: request_writer,
        };
        let server = PipeEnd {
            reader: request_reader,
            writer: reply_writer,
        };
        Ok((client, server))
    };
    time(question, "a pipe", ends())
}

pub(super) fn over_unix(question: &Question) -> Result<Answer, String> {
    time(question, "a pair of UNIX sockets", UnixStream::pair())
}

pub(super) fn over_tcp(question: &Question) -> Result<Answer, String> {
    let ends = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok((client, server))
    };
    time(question, "TCP on the loopback interface", ends())
}

fn time<S: Read + Write + Send + 'static>(
    question: &Question,
    what: &'static str,
    ends: io::Result<(S, S)>,
) -> Result<Answer, String> {
    let said = move |error: io::Error| format!("{what}: {error}");
    let (client, server) = ends.map_err(said)?;
    let (samples, pauses) = (Samples::of(question), Pauses::of(question));
    run(
        question,
        Box::new(move || call(client, samples, pauses).map(Some).map_err(said)),
        Some((
            Urgency::Same,
            Box::new(move || serve(server).map(|()| None).map_err(said)),
        )),
    )
}

/// Closes its end when it has its samples, or on an error: then the other thread ends too.
fn call(
    mut stream: impl Read + Write,
    mut samples: Samples,
    mut pauses: Pauses,
) -> io::Result<Samples> {
    let mut received = [0; MESSAGE_BYTES];
    for number in (0..=u8::MAX).cycle() {
        pauses.pause();
        let sent = [number; MESSAGE_BYTES];
        let begin_ns = monotonic_ns();
        stream.write_all(&sent)?;
        stream.read_exact(&mut received)?;
        let goes_on = samples.end(begin_ns);
        if received != sent {
            return Err(io::Error::other("what came back is not what was sent"));
        }
        if !goes_on {
            break;
        }
    }
    Ok(samples)
}

fn serve(mut stream: impl Read + Write) -> io::Result<()> {
    let mut octets = [0; MESSAGE_BYTES];
    loop {
        match stream.read_exact(&mut octets) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            received => received?,
        }
        stream.write_all(&octets)?;
    }
}

/// One end of two pipes.
#[derive(Debug)]
struct PipeEnd {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Read for PipeEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reader.read(into)
    }
}

impl Write for PipeEnd {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.writer.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
