//! The bounds of everything that could grow.

use rtorb_wire::connection::ReceiveLimits;
use std::time::Duration;

/// The bounds of an ORB. Beyond a bound the caller gets an exception; nothing grows.
///
/// ```
/// use rtorb::Limits;
/// let limits = Limits::with(|limits| {
///     limits.connections_max = 64;
///     limits.message_octets_max = 1 << 20;
/// });
/// let builder = rtorb::Orb::builder().limits(limits);
/// # let _ = builder;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Octets of one GIOP message, header included, in and out. IMP_LIMIT going out, MessageError coming in.
    ///
    /// A connection keeps the memory that its largest messages and their fragments needed, a serving thread that of its
    /// replies and sequences: what clients can make a server hold is a few times this for each of both.
    pub message_octets_max: usize,
    /// Connections that a server serves at a time, and each lane of a thread pool.
    ///
    /// When another client connects, the connection gives way from which nothing has come for the longest time: it is closed
    /// with CloseConnection, after which its client connects again when it has something to call. A connection with a request
    /// in progress or an unread reply does not give way; half a message is no request. If none gives way, the new client is
    /// refused with CloseConnection, which our clients report as TRANSIENT with advice. The same holds when the process has no
    /// file descriptor left.
    pub connections_max: usize,
    /// Objects active at a time in all adapters: NO_RESOURCES.
    pub objects_max: usize,
    /// Object adapters: NO_RESOURCES.
    pub adapters_max: usize,
    /// Object keys that the application chooses and binds (`Orb::bind_object_key`).
    pub bound_keys_max: usize,
    /// Connections that one client thread keeps; the one unused longest is closed for another.
    pub thread_connections_max: usize,
    /// Connections that the client threads of an ORB share, with the connection strategies that have them do so; one that
    /// nobody waits on is closed for another: NO_RESOURCES.
    pub shared_connections_max: usize,
    /// Fragmented messages in progress on one connection; one more closes it.
    pub fragment_chains_max: usize,
    /// Threads of all thread pools that the application makes, dynamic ones included: NO_RESOURCES.
    pub pool_threads_max: usize,
    /// How long a dynamic thread of a pool waits for a request before it ends.
    pub idle_thread_time: Duration,
    /// Requests that wait in a queue for a thread to serve them, where a thread pool's bounds are not closer; one more gets
    /// TRANSIENT 1, and so does one with which they would be larger than four messages of `message_octets_max` together.
    /// A queue has memory for 512 octets of each of them from the beginning, and keeps up to 64 KiB. From 1 to 65,536: of
    /// other numbers the nearer of these is taken.
    pub queued_requests_max: usize,
    /// LOCATION_FORWARD replies followed in one call: TRANSIENT.
    pub forwards_max: usize,
    /// How long a client may take to receive what its socket did not take at once; then the server closes the connection.
    ///
    /// No thread waits meanwhile, except the one that `thread_per_connection` has for that client alone: the server keeps the
    /// unsent bytes, reads nothing more from that client, and sends the rest when the socket takes it. If the replies to
    /// requests that had been read by then add up to four messages of `message_octets_max`, the next one closes the connection.
    /// From 1 ms to a day; the builder sees to that.
    pub send_timeout: Duration,
}

impl Limits {
    /// The default limits, changed by `change`.
    #[must_use]
    pub fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut limits = Self::default();
        change(&mut limits);
        limits
    }

    /// The limits of each connection's receiver.
    pub(crate) fn receive(&self) -> ReceiveLimits {
        ReceiveLimits {
            message_bytes_max: self.message_octets_max,
            fragmented_messages_max: self.fragment_chains_max,
        }
    }

    /// Requests that wait in a queue, as many as one can be made for.
    pub(crate) fn queued_requests(&self) -> u32 {
        u32::try_from(self.queued_requests_max).map_or(QUEUED_MAX, |max| max.clamp(1, QUEUED_MAX))
    }

    /// Bytes of replies that one client has not taken: with as many, its connection is closed at the next reply.
    pub(crate) fn unsent_octets_max(&self) -> usize {
        self.queued_octets_max()
    }

    /// Octets of the requests that wait in a queue.
    pub(crate) fn queued_octets_max(&self) -> usize {
        self.message_octets_max.saturating_mul(LARGEST_QUEUED_MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_octets_max: 16 << 20,
            connections_max: 1024,
            objects_max: 1 << 21,
            adapters_max: 256,
            bound_keys_max: 1024,
            thread_connections_max: 64,
            shared_connections_max: 256,
            fragment_chains_max: 4,
            pool_threads_max: 1024,
            idle_thread_time: Duration::from_secs(10),
            queued_requests_max: 1024,
            forwards_max: 8,
            send_timeout: Duration::from_secs(5),
        }
    }
}

/// Messages of the largest size that may wait in a queue; smaller ones are bounded by their number.
const LARGEST_QUEUED_MAX: usize = 4;

/// A queue's memory is there from the beginning; this is 32 MiB of it.
const QUEUED_MAX: u32 = 1 << 16;
