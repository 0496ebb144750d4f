//! The bounds of an ORB.

use rtorb_wire::connection::ReceiveLimits;
use std::time::Duration;

/// The bounds of an ORB. Beyond a bound, the caller gets an exception; nothing grows.
///
/// A count is 1 or more, unless its text says what 0 does. [`OrbBuilder::build`](crate::OrbBuilder::build) refuses a limit that is out of
/// range.
///
/// ```
/// use rtorb::Limits;
/// let limits = Limits::with(|limits| {
///     limits.connections_max = 64;
///     limits.message_bytes_max = 1 << 20;
/// });
/// let builder = rtorb::Orb::builder().limits(limits);
/// # let _ = builder;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one GIOP message with its header, in both directions. Beyond it: IMP_LIMIT when sending. A server answers a larger
    /// request with MessageError, and its client gets COMM_FAILURE 0x72746001; for a larger reply a client gets MARSHAL 0x7274600c.
    ///
    /// A connection keeps the memory of its largest messages and their fragments, and a serving thread keeps that of its replies
    /// and sequences. So clients can make a server hold a few times this size for each connection and each thread.
    pub message_bytes_max: usize,
    /// Connections that a server serves at a time, and each lane of a thread pool.
    ///
    /// When another client connects, the connection that has been silent for the longest time gives way: it is closed with
    /// CloseConnection, and its client connects again at its next call. A connection with a request in progress or an unread
    /// reply does not give way; half a message is not a request. If no connection gives way, the new client is refused with
    /// CloseConnection, which our clients report as TRANSIENT with advice. It is also refused while 64 connections give way and have not
    /// ended yet: so many more may be open. The same rule applies when the process has no file descriptor left. With 0, every client is
    /// refused.
    pub connections_max: usize,
    /// Connections of one IP address that a server serves at a time, and each lane of a thread pool. By default more than
    /// `connections_max`, because many clients may share an address. Beyond it, the rule of `connections_max` applies to the connections
    /// of that address. With 0, every client with an IP address is refused.
    pub connections_per_address_max: usize,
    /// Active objects in all adapters. Beyond it: NO_RESOURCES.
    pub objects_max: usize,
    /// Object adapters. Beyond it: NO_RESOURCES.
    pub adapters_max: usize,
    /// Object keys that the application binds (`Orb::bind_object_key`). With 0, it can bind none.
    pub bound_keys_max: usize,
    /// Connections that one client thread keeps. Beyond it, the least recently used one is closed.
    pub thread_connections_max: usize,
    /// Connections that the client threads of an ORB share, with `multiplexed` and `banded`. Beyond it, a connection on which no
    /// thread waits is closed; if there is none, NO_RESOURCES.
    pub shared_connections_max: usize,
    /// Calls that were started and have not ended, or whose results have not been taken (`Call`). One more ends at once
    /// with NO_RESOURCES, or waits (`-ORBFullCallTable wait`). Each place that was used once keeps the memory of its largest request and
    /// reply, at least 8 KiB. With 0, every one ends with NO_RESOURCES.
    pub started_calls_max: usize,
    /// Replies that the servants of an ORB have deferred and not sent (`Responder`). One more call gets TRANSIENT, and
    /// `Orb::requests_refused` counts it. Each place that was used once keeps the memory of its largest reply, up to 64 KiB.
    /// With 0, no reply can be deferred.
    pub deferred_replies_max: usize,
    /// Replies of one connection that the servants of an ORB have deferred and not sent: so one connection cannot take all places of
    /// `deferred_replies_max`. One more call gets TRANSIENT, and `Orb::requests_refused` counts it. With 0, no reply can be deferred that
    /// goes over a connection.
    pub deferred_replies_per_connection_max: usize,
    /// Fragmented messages in progress on one connection. One more closes the connection. With 0, the first one does.
    pub fragment_chains_max: usize,
    /// Static and dynamic threads of all thread pools that the application makes. Beyond it: NO_RESOURCES. An ORB with more threads
    /// of `worker_pool` or `leader_followers`, or more static threads of its lanes, is not built. With 0, the application can make no pool.
    pub pool_threads_max: usize,
    /// How long a dynamic thread of a pool waits for a request before it ends. From 0; more than a day counts as a day.
    pub idle_thread_time: Duration,
    /// Requests that wait in a queue for a thread, unless a thread pool has closer bounds. One more gets TRANSIENT 1. So does a
    /// request that would make the queue larger than four messages of `message_bytes_max`. A queue allocates 512 bytes for each
    /// request at the start, and keeps up to 64 KiB of each. From 1 to 65,536. With `thread_per_request`, as many requests have threads.
    ///
    /// The same bounds apply to the requests of a client that wait for a connection's own thread (wait strategy
    /// `connection_thread`). One more waits until its timeout; then it gets TIMEOUT, COMPLETED_NO.
    pub queued_requests_max: usize,
    /// Operations with a `@period` that one client may have called less than their periods ago, where each connection has a period of
    /// its own (`-ORBPeriodScope connection`). Beyond it: TRANSIENT, unless early calls are only counted. Each takes 32 bytes of the
    /// connection.
    pub client_periods_max: usize,
    /// LOCATION_FORWARD replies that one call follows, within its timeout. Beyond it: TRANSIENT. With 0, it follows none.
    pub forwards_max: usize,
    /// Collocated calls within each other on one thread: each needs room on that thread's stack. One more gets IMP_LIMIT.
    pub collocated_depth_max: usize,
    /// How long a connection may be silent and keep its receive buffer. Then the buffer goes to the pool of `spare_buffers_max`, and
    /// comes from there with the next request; a new connection has none until its first request. Without its buffer, a connection
    /// costs less than 2 KiB, and with `thread_per_connection` its thread's stack and, at a TCP or UNIX socket, 1 KiB: messages of up to
    /// 1 KiB need no other buffer there. Over TLS it keeps the state of its session too, in all
    /// about 4 KiB. It is taken away when the connection has been silent for this time, and not within the first quarter of it; later by as
    /// long as servants occupy all threads of the lane, or the reactive thread. A look at the connections takes a millisecond for each 64 of
    /// them. From 10 ms to a day.
    pub idle_buffer_time: Duration,
    /// Receive buffers of 8 KiB that a server keeps for connections that have none. Others are freed. When 256 connections were
    /// freed, a thread without real-time priority that looks at connections returns the memory to the system. A thread with a real-time
    /// priority never does this. With 0, all are freed.
    pub spare_buffers_max: usize,
    /// How long a client may take to send a message whose first bytes have arrived, or the rest of one in fragments. Then the server ends the
    /// connection with CloseConnection. This happens by the end of this time, and not within the first quarter of it; later by as long as
    /// servants occupy all threads of the lane, or the reactive thread; not while another request of the client is in progress. A look at
    /// the connections takes a millisecond for each 64 of them. From 10 ms to a day.
    pub receive_timeout: Duration,
    /// How long an ORB or a thread pool that ends waits for replies that its servants have deferred (`Responder`). Calls without a reply
    /// then get NO_RESPONSE. From 0 to a day.
    pub deferred_reply_time: Duration,
    /// How long a client may take to receive what its socket did not take at once; then the server closes the connection, later by as
    /// long as servants occupy all threads of the lane, or the reactive thread.
    ///
    /// No thread waits meanwhile, except the one that `thread_per_connection` has for that client alone: the server keeps the
    /// unsent bytes, reads nothing more from that client, and sends the rest when the socket takes it. If the replies to
    /// requests that had been read by then add up to four messages of `message_bytes_max`, the next one closes the connection. So does, with
    /// `thread_per_connection`, the TIMEOUT of a deferred call of which the socket takes only a part: no thread waits for the rest.
    /// From 1 ms to a day.
    pub send_timeout: Duration,
    /// Turns of strangers in each `stranger_period`, in each lane of a thread pool. A stranger is a client that connects, or one that is
    /// connected and of which no message has been served yet. A turn accepts a connection, or begins to read one. Beyond it, strangers
    /// wait for the next period, in their order, and connected clients are served meanwhile: so a flood takes no more of a lane's time.
    /// A new client needs two turns, and waits for at most one turn of each other stranger before each. At least 1.
    ///
    /// With `thread_per_connection`, it bounds the accepted clients in each period, and, counted apart, the turns of reading. A stranger
    /// whose connection gives way needs no turn: what has come from it is read, and its thread ends.
    pub stranger_turns_max: usize,
    /// The period of `stranger_turns_max`. From 1 ms to a second.
    pub stranger_period: Duration,
}

impl Limits {
    /// Returns the default limits, changed by `change`.
    #[must_use]
    pub fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut limits = Self::default();
        change(&mut limits);
        limits
    }

    /// Returns the limits of a connection's receiver.
    pub(crate) fn receive(&self) -> ReceiveLimits {
        ReceiveLimits {
            message_bytes_max: self.message_bytes_max,
            fragmented_messages_max: self.fragment_chains_max,
        }
    }

    /// Returns true if the connections of one address have a bound of their own.
    pub(crate) fn bounds_addresses(&self) -> bool {
        self.connections_per_address_max < self.connections_max
    }

    /// Returns the bound on the requests in a queue. Limits of an ORB are in the range that a queue supports.
    pub(crate) fn queued_requests(&self) -> u32 {
        u32::try_from(self.queued_requests_max).unwrap_or(QUEUED_REQUESTS_MOST)
    }

    /// Returns the bound on the unsent bytes of one client. Beyond it, the next reply closes the connection.
    pub(crate) fn unsent_bytes_max(&self) -> usize {
        self.queued_bytes_max()
    }

    /// Returns the bound on the bytes of the requests in a queue.
    pub(crate) fn queued_bytes_max(&self) -> usize {
        self.message_bytes_max.saturating_mul(LARGEST_QUEUED_MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 16 << 20,
            connections_max: 1024,
            connections_per_address_max: 1 << 20,
            objects_max: 1 << 21,
            adapters_max: 256,
            bound_keys_max: 1024,
            thread_connections_max: 64,
            shared_connections_max: 256,
            started_calls_max: 1024,
            deferred_replies_max: 1024,
            deferred_replies_per_connection_max: 512,
            fragment_chains_max: 4,
            pool_threads_max: 1024,
            idle_thread_time: Duration::from_secs(10),
            queued_requests_max: 1024,
            client_periods_max: 64,
            forwards_max: 8,
            collocated_depth_max: 32,
            idle_buffer_time: Duration::from_secs(300),
            spare_buffers_max: 64,
            receive_timeout: Duration::from_secs(60),
            deferred_reply_time: Duration::from_secs(5),
            send_timeout: Duration::from_secs(5),
            stranger_turns_max: 25,
            stranger_period: Duration::from_millis(10),
        }
    }
}

/// The most messages of the largest size that may wait in a queue. The number of smaller ones is bounded.
const LARGEST_QUEUED_MAX: usize = 4;

/// The largest [`Limits::queued_requests_max`]: a queue allocates its memory at the start, 32 MiB for that many requests.
pub(crate) const QUEUED_REQUESTS_MOST: u32 = 1 << 16;
