//! GIOP by hand, right or wrong as a test wants it: an opinion of the bytes that owes nothing to rtorb-wire.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use crate::recorder::message;
use crate::running::PATIENCE;

/// Request.
pub const REQUEST: u8 = 0;
/// Reply.
pub const REPLY: u8 = 1;
/// LocateRequest.
pub const LOCATE_REQUEST: u8 = 3;
/// CloseConnection.
pub const CLOSE_CONNECTION: u8 = 5;
/// MessageError.
pub const MESSAGE_ERROR: u8 = 6;
/// Fragment.
pub const FRAGMENT: u8 = 7;

/// A CDR stream that begins with a GIOP header.
#[derive(Clone, Debug)]
pub struct Stream {
    octets: Vec<u8>,
    big: bool,
}

impl Stream {
    /// A message of this kind; its size is written by [`Stream::message`].
    #[must_use]
    pub fn new(kind: u8, minor: u8, big: bool) -> Self {
        let octets = vec![
            b'G',
            b'I',
            b'O',
            b'P',
            1,
            minor,
            u8::from(!big),
            kind,
            0,
            0,
            0,
            0,
        ];
        Self { octets, big }
    }

    /// Pads to a multiple of `size`, counted from the start of the message.
    pub fn align(&mut self, size: usize) -> &mut Self {
        self.octets
            .resize(self.octets.len().next_multiple_of(size), 0);
        self
    }

    /// Octets as they are.
    pub fn raw(&mut self, octets: &[u8]) -> &mut Self {
        self.octets.extend_from_slice(octets);
        self
    }

    /// An unsigned short.
    pub fn ushort(&mut self, value: u16) -> &mut Self {
        let octets = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.align(2).raw(&octets)
    }

    /// An unsigned long.
    pub fn ulong(&mut self, value: u32) -> &mut Self {
        let octets = if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.align(4).raw(&octets)
    }

    /// A long.
    pub fn long(&mut self, value: i32) -> &mut Self {
        self.ulong(value.cast_unsigned())
    }

    /// A sequence of octets.
    ///
    /// # Panics
    ///
    /// It has 4 GiB or more.
    pub fn octets(&mut self, octets: &[u8]) -> &mut Self {
        self.ulong(u32::try_from(octets.len()).expect("a test's sequence is short"))
            .raw(octets)
    }

    /// A string.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.octets(&[text.as_bytes(), &[0]].concat())
    }

    /// The message with its size.
    ///
    /// # Panics
    ///
    /// It has 4 GiB or more.
    #[must_use]
    pub fn message(mut self) -> Vec<u8> {
        let size = u32::try_from(self.octets.len() - 12).expect("a test's message is short");
        self.octets[8..12].copy_from_slice(&if self.big {
            size.to_be_bytes()
        } else {
            size.to_le_bytes()
        });
        self.octets
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The minor version of GIOP.
    pub minor: u8,
    /// Big-endian if true.
    pub big: bool,
    /// The request id.
    pub id: u32,
    /// Two-way if true.
    pub reply: bool,
    /// The object key.
    pub key: &'a [u8],
    /// The operation.
    pub operation: &'a str,
}

impl<'a> Request<'a> {
    /// A two-way request with id 1, in GIOP 1.2, little-endian.
    #[must_use]
    pub fn two_way(key: &'a [u8], operation: &'a str) -> Self {
        Self {
            minor: 2,
            big: false,
            id: 1,
            reply: true,
            key,
            operation,
        }
    }

    /// The header; what is written after it is the body, which begins at a multiple of 8.
    #[must_use]
    pub fn head(&self) -> Stream {
        let mut stream = Stream::new(REQUEST, self.minor, self.big);
        if self.minor >= 2 {
            stream
                .ulong(self.id)
                .raw(&[if self.reply { 3 } else { 0 }, 0, 0, 0]);
            stream
                .ushort(0)
                .octets(self.key)
                .string(self.operation)
                .ulong(0);
        } else {
            stream.ulong(0).ulong(self.id).raw(&[u8::from(self.reply)]);
            if self.minor == 1 {
                stream.raw(&[0; 3]);
            }
            stream.octets(self.key).string(self.operation).octets(&[]);
        }
        stream
    }

    /// A request of one long.
    #[must_use]
    pub fn of_long(&self, value: i32) -> Vec<u8> {
        let mut stream = self.head();
        // Only 1.2 pads the body to 8; before that a long follows at the next multiple of 4.
        stream
            .align(if self.minor >= 2 { 8 } else { 4 })
            .long(value);
        stream.message()
    }

    /// A request without a body.
    #[must_use]
    pub fn empty(&self) -> Vec<u8> {
        self.head().message()
    }
}

/// Cuts a GIOP 1.2 message into a first part of `first` octets (a multiple of 8) and fragments of at most `rest`.
///
/// # Panics
///
/// The sizes are no multiples of 8 or leave no room for the headers.
#[must_use]
pub fn fragments(message: &[u8], first: usize, rest: usize) -> Vec<Vec<u8>> {
    assert!(
        first.is_multiple_of(8) && rest.is_multiple_of(8) && first >= 16 && rest > 16,
        "sizes that GIOP allows"
    );
    let big = message[6] & 1 == 0;
    let part = |kind: u8, more: bool, body: &[u8]| {
        let mut stream = Stream::new(kind, message[5], big);
        stream.octets[6] |= if more { 2 } else { 0 };
        stream.raw(body);
        stream.message()
    };
    let id = &message[12..16];
    let first = first.min(message.len());
    let mut parts = vec![part(message[7], first < message.len(), &message[12..first])];
    let chunks = message[first..]
        .chunks(rest - 16)
        .map(|chunk| [id, chunk].concat());
    let chunks: Vec<_> = chunks.collect();
    let last = chunks.len();
    parts.extend(
        chunks
            .iter()
            .enumerate()
            .map(|(at, chunk)| part(FRAGMENT, at + 1 < last, chunk)),
    );
    parts
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The kind of the message.
    pub kind: u8,
    /// The minor version of GIOP.
    pub minor: u8,
    /// The request id, of a reply or a locate reply.
    pub id: u32,
    /// The status, of a reply or a locate reply.
    pub status: u32,
    /// What follows.
    pub body: Vec<u8>,
    big: bool,
}

impl Answer {
    /// Reads one, in the layouts of section 15.4 of the standard.
    fn of(octets: &[u8]) -> Self {
        let (minor, kind, big) = (octets[5], octets[7], octets[6] & 1 == 0);
        let ulong = |at: usize| octets.get(at..at + 4).map_or(0, |four| number(four, big));
        let contexts_first = kind == REPLY && minor < 2;
        let (id, status) = if contexts_first {
            (ulong(16), ulong(20))
        } else {
            (ulong(12), ulong(16))
        };
        if contexts_first {
            assert_eq!(
                ulong(12),
                0,
                "the server sends no contexts in GIOP before 1.2"
            );
        }
        // 1.2 has the contexts behind the status and pads the body to 8; these tests meet empty lists only.
        let start = if kind == REPLY { 24 } else { 20 };
        Self {
            kind,
            minor,
            id,
            status,
            body: octets.get(start..).unwrap_or_default().to_vec(),
            big,
        }
    }

    /// The body as one long.
    ///
    /// # Panics
    ///
    /// It is shorter.
    #[must_use]
    pub fn long(&self) -> i32 {
        number(&self.body[..4], self.big).cast_signed()
    }

    /// The system exception in it: repository id, minor code, completion status.
    ///
    /// # Panics
    ///
    /// It is none.
    #[must_use]
    pub fn exception(&self) -> (String, u32, u32) {
        assert_eq!(
            (self.kind, self.status),
            (REPLY, 2),
            "a system exception: {self:?}"
        );
        let length = usize::try_from(number(&self.body[..4], self.big)).expect("a short text");
        let text = String::from_utf8_lossy(&self.body[4..4 + length - 1]).into_owned();
        let after = (4 + length).next_multiple_of(4);
        let minor = number(&self.body[after..after + 4], self.big);
        (
            text,
            minor,
            number(&self.body[after + 4..after + 8], self.big),
        )
    }
}

fn number(octets: &[u8], big: bool) -> u32 {
    let octets = octets.try_into().expect("four octets");
    if big {
        u32::from_be_bytes(octets)
    } else {
        u32::from_le_bytes(octets)
    }
}

/// A connection to a server, without an ORB.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    ///
    /// Nobody listens.
    #[must_use]
    pub fn to(server: SocketAddr) -> Self {
        Self::over(TcpStream::connect(server).expect("the server listens"))
    }

    /// Uses a connection that there is.
    ///
    /// # Panics
    ///
    /// It is no connection of TCP.
    #[must_use]
    pub fn over(socket: TcpStream) -> Self {
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("the bound is not zero");
        socket
            .set_nodelay(true)
            .expect("a socket of TCP has this option");
        Self { socket }
    }

    /// Sends octets. A server that has closed the connection already is no error: that is one of its answers.
    pub fn send(&mut self, octets: &[u8]) {
        let _ = self.socket.write_all(octets);
    }

    /// What the server answers next, or none if it closed the connection.
    ///
    /// # Panics
    ///
    /// It does neither within [`PATIENCE`].
    pub fn answer(&mut self) -> Option<Answer> {
        match message(&mut self.socket) {
            Ok(octets) => Some(Answer::of(&octets)),
            Err(e) => {
                let waited = matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                assert!(
                    !waited,
                    "the server neither answered nor closed the connection"
                );
                None
            }
        }
    }

    /// Sends octets and answers what comes back, or none if the connection was closed.
    ///
    /// # Panics
    ///
    /// As [`Connection::answer`].
    pub fn ask(&mut self, octets: &[u8]) -> Option<Answer> {
        self.send(octets);
        self.answer()
    }

    /// Says that nothing more comes.
    pub fn finish(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }
}
