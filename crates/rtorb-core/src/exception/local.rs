//! The system exceptions that this ORB and the services raise: each cause has a minor code and a text.
//!
//! A minor code has the same text on both sides, so a client of rtorb shows the reason of a server of rtorb.

use super::{CompletionStatus, ExceptionKind, OMG, RTORB, SystemException};
use rtorb_wire::exception;

macro_rules! local {
    ($($kind:ident { $($(#[$doc:meta])* $name:ident = $minor:expr, $words:literal;)* })*) => {
        $($(
            $(#[$doc])*
            pub const $name: SystemException =
                SystemException::new(ExceptionKind::$kind, $minor, CompletionStatus::No);
        )*)*

        /// Each minor code, with what is wrong and what to do.
        #[doc(hidden)]
        pub const ALL: &[(ExceptionKind, u32, &str)] =
            &[$($((ExceptionKind::$kind, $minor, $words),)*)*];
    };
}

// Numbers below 0x10 belong to the codes that stand beside the code that raises them.
local! {
    BadParam {
        /// An object of another interface is narrowed.
        WRONG_INTERFACE = exception::WRONG_INTERFACE,
            "the object does not have that interface: narrow it to the one that it has, or get the reference of the right object";
        /// A CORBA priority is negative.
        PRIORITY_OUT_OF_RANGE = RTORB | 0x11, "a CORBA priority is 0 to 32767";
        /// An object's own priority has no lane, or is in no band.
        PRIORITY_UNSERVED = RTORB | 0x12,
            "no lane or band of the adapter has the object's priority: choose the priority of a lane, or one within a band";
        /// The lanes of a pool are not possible.
        WRONG_LANES = RTORB | 0x13,
            "a pool has at least one lane and one static thread in each, and its lanes have different priorities";
        /// The bands of a policy are not possible.
        WRONG_BANDS = RTORB | 0x14, "the `low` of a band is 0 or more, and at most its `high`";
        /// A reference is nil.
        NIL_ARGUMENT = RTORB | 0x15, "an argument is a nil reference: give that of an object";
        /// An iterator is asked for nothing.
        NOTHING_WANTED = RTORB | 0x16, "`how_many` is 0: ask for at least 1";
        /// The name of an operation is not possible.
        WRONG_NAME = RTORB | 0x17, "the name is empty or too long, or contains control characters";
        /// A number of the description of an operation is not possible.
        WRONG_NUMBER = RTORB | 0x18, "a time, a count or a number of threads is negative, 0 or too large";
        /// A file of a reference cannot be read.
        UNREADABLE_FILE = RTORB | 0x19, "name a file that contains a reference and that this program may read";
        /// Names and files refer to each other.
        REFERENCES_IN_CIRCLE = RTORB | 0x1a,
            "the reference leads through more than 8 names and files: find out whether they lead to each other";
        /// A name of a `corbaname:` is not bound.
        NOT_BOUND = RTORB | 0x1b,
            "the name is not bound: `rtorb naming list --recursive --name-service REF` prints those that are; REF is corbaloc::HOST:PORT/NameService \
             for the part before #";
        /// A segment is ended by another name.
        OTHER_SEGMENT = RTORB | 0x1c, "the innermost scheduling segment has another name: end the segments in the reverse order";
        /// A segment cannot have that name.
        WRONG_SEGMENT_NAME = RTORB | 0x1d, "the name of a scheduling segment has at most 255 bytes, and none of them is zero";
        /// An adapter shall have the manager of an adapter of another ORB.
        FOREIGN_MANAGER = RTORB | 0x1e, "the manager is that of adapters of another ORB: make one by an adapter of this ORB";
        /// A request without a stub has another number of values than its operation has parameters.
        WRONG_COUNT = RTORB | 0x1f, "the operation has another number of `in` and `inout` parameters: give a value for each";
    }
    ThreadCancelled {
        /// A distributable thread was cancelled.
        THREAD_CANCELLED = RTORB | 0x10, "the distributable thread was cancelled: undo what is begun, and return to where it began";
        /// The client has cancelled the call that a servant serves.
        CALL_CANCELLED = RTORB | 0x11, "the client has given up the call: undo what you have begun, and return";
    }
    InvObjref {
        /// An initial reference is not there.
        NO_INITIAL_REFERENCE = RTORB | 0x10,
            "give it with --init-ref NAME=REF of the command, with -ORBInitRef NAME=REFERENCE of a program or in a configuration file, \
             or register it in the program";
        /// A text is the nil reference.
        NIL_REFERENCE = RTORB | 0x11, "it is the nil reference, which leads to no object: get that of an object";
    }
    Initialize {
        /// RTCurrent is read before it is set.
        CURRENT_UNSET = RTORB | 0x10,
            "this thread has no CORBA priority yet: call RTCurrent's set_the_priority first, or ask in a servant";
        /// An endpoint needs TLS, and the ORB has none.
        NO_TLS = RTORB | 0x11,
            "an endpoint ssliop:// needs TLS: give -ORBTlsCertificate and -ORBTlsKey to a program that is built with rtorb-tls, or \
             OrbBuilder::secure_transport";
        /// An endpoint needs a certificate.
        NO_SERVER_CERTIFICATE = RTORB | 0x12,
            "a server over TLS needs a certificate with its key: give -ORBTlsCertificate and -ORBTlsKey (`rtorb keys server` makes both)";
        /// An endpoint has no socket of a service manager.
        NO_INHERITED_SOCKET = RTORB | 0x13,
            "an endpoint inherited://NAME takes listening TCP and UNIX sockets that a service manager passes: have a .socket unit with \
             Accept=no and FileDescriptorName=NAME start the program, and write inherited://NAME once";
    }
    ObjAdapter {
        /// The adapter's manager is inactive (the standard's code 1).
        INACTIVE = OMG | 1, "the manager of the adapter is inactive, which is final: make another adapter";
        /// The adapter is destroyed.
        ADAPTER_DESTROYED = RTORB | 0x10, "the adapter is destroyed, by itself or with its ORB: make another";
        /// A service could not make an object.
        NOT_ACTIVATED = RTORB | 0x11, "the adapter of the service does not make the object: its ORB may end";
    }
    BadInvOrder {
        /// A thread would wait for itself (the standard's code 3).
        WOULD_DEADLOCK = OMG | 3,
            "a thread would wait for itself: a servant of a reactive server that calls its own server needs thread_per_connection; \
             a servant leaves it to another thread to destroy its ORB or pool, or to wait for the calls of a manager";
        /// The ORB is shut down (the standard's code 4).
        SHUT_DOWN = OMG | 4, "the ORB is shut down: keep it until the last call, or build another";
        /// A locator is placed too late (the standard's code 6).
        HAS_OBJECTS = OMG | 6,
            "the adapter has a locator, a default servant or an activator already, or it has objects: place one of them, and a locator \
             before any object";
        /// An object has another priority (the standard's code 18).
        PRIORITY_SETTLED = OMG | 18, "the object has another priority already, which its references contain: keep that";
        /// An adapter uses the pool.
        POOL_IN_USE = RTORB | 0x10, "an adapter uses the thread pool: destroy the adapter first";
        /// A proxy has no client yet.
        NOT_CONNECTED = RTORB | 0x11, "nothing is connected to the proxy yet: connect first";
        /// A scheduler has no schedule yet.
        NOT_SCHEDULED = RTORB | 0x12, "the service has no schedule yet: let it compute one first";
        /// The result of a started call is taken twice.
        RESULT_TAKEN = RTORB | 0x14, "the call has ended and its result was taken: poll it no more";
        /// A distributable thread starts a call.
        START_IN_THREAD = RTORB | 0x15,
            "a distributable thread is at one place at a time: within a scheduling segment, call without `start`";
        /// A thread ends or changes a segment that it did not begin.
        NO_SEGMENT = RTORB | 0x13, "this thread is in no scheduling segment of its own: call begin_scheduling_segment first";
        /// An interceptor does what is not permitted at its point (the standard's code 14).
        WRONG_POINT = OMG | 14,
            "an interceptor does what is not permitted at this point: the methods of its request say at which they work";
        /// An interceptor adds a service context twice (the standard's code 15).
        ADDED_BEFORE = OMG | 15, "a service context with this id was added to the message already: choose another id";
        /// An ORB shall be shut down on signals twice.
        SIGNALS_TAKEN = RTORB | 0x16,
            "signals shut this ORB down already: call `shutdown_on_signals` once, and do all that comes before in its closure";
    }
    NoResources {
        /// `Limits::objects_max` is reached.
        OBJECTS_FULL = RTORB | 0x10, "the ORB has as many objects as it may: deactivate some, or raise `Limits::objects_max`";
        /// `Limits::adapters_max` is reached.
        ADAPTERS_FULL = RTORB | 0x11, "the ORB has as many adapters as it may: destroy some, or raise `Limits::adapters_max`";
        /// `Limits::pool_threads_max` is reached.
        POOL_THREADS_FULL = RTORB | 0x12,
            "the thread pools would have more threads than they may: take fewer, or raise `Limits::pool_threads_max`";
        /// `Limits::shared_connections_max` is reached.
        CONNECTIONS_FULL = RTORB | 0x13,
            "all shared connections are in use: let calls end, or raise `Limits::shared_connections_max`";
        /// A bound of a service is reached.
        SERVICE_FULL = RTORB | 0x14, "the service has as many of these as its settings allow: remove some, or raise its maximum";
        /// The host refuses a thread.
        THREAD_REFUSED = RTORB | 0x15, "the host refuses a thread: lower their number or their stacks, or raise `ulimit -u`";
        /// The host refuses a file descriptor or memory.
        DESCRIPTOR_REFUSED = RTORB | 0x16, "the host refuses a file descriptor or memory: raise `ulimit -n`, or free memory";
        /// Too many host names are looked up.
        NAMES_FULL = RTORB | 0x17,
            "64 other host names wait for the name servers: check whether these reply, or use a numeric address in the reference";
        /// `Limits::started_calls_max` is reached.
        CALLS_FULL = RTORB | 0x18,
            "as many started calls are in flight as may be: take the result of one or drop it, or raise `Limits::started_calls_max`";
        /// `Limits::connections_max` is reached, and a bidirectional connection is opened.
        SERVED_FULL = RTORB | 0x19,
            "the ORB serves as many connections as it may, and none is idle: let calls end, or raise `Limits::connections_max`";
        /// A deadline that is proven to hold would be missed.
        NOT_ADMITTED = RTORB | 0x20,
            "a deadline that is proven to hold would be missed: `last_refusal` of the scheduling service (RtorbScheduling) names it \
             and says what would help";
    }
    NoPermission {
        /// The host refuses a thread its priority.
        PRIORITY_REFUSED = RTORB | 0x10,
            "the process needs the right to the priority (CAP_SYS_NICE or RLIMIT_RTPRIO; `rtorb check` says more), or continues without \
             real-time scheduling: -ORBBestEffort yes, or `--best-effort` of the command";
        /// A policy belongs to adapters.
        POLICY_OF_ADAPTER = RTORB | 0x11,
            "PriorityModel, Threadpool and ServerProtocol are policies of adapters: give them to `create_poa`";
        /// A context may not be destroyed.
        ROOT_CONTEXT = RTORB | 0x12, "the root context of a naming service cannot be destroyed";
        /// A reference requires TLS, and this ORB has none.
        NEEDS_TLS = RTORB | 0x20,
            "the object is reached over TLS only, and this ORB has no TLS: give -ORBTlsCa FILE (and -ORBTlsCertificate and -ORBTlsKey if \
             the server wants a certificate) to a program that is built with rtorb-tls, or OrbBuilder::secure_transport";
        /// A server's certificate is of another time.
        CERTIFICATE_EXPIRED = RTORB | 0x21,
            "the peer's certificate is not valid at this time: make a new one for the peer (`rtorb keys server`), or set the clock of this host";
        /// A server's certificate has another name.
        CERTIFICATE_OF_OTHER_NAME = RTORB | 0x22,
            "the server's certificate is for other names than the host of the reference: make one with that name (`rtorb keys server \
             DIR HOST...`), or have the server publish a name that its certificate has";
        /// A certificate is on a list of revoked ones.
        CERTIFICATE_REVOKED = RTORB | 0x23,
            "the peer's certificate has been revoked by its authority: do not trust this peer, or make a new certificate for it";
        /// No trusted authority has signed a certificate.
        CERTIFICATE_UNTRUSTED = RTORB | 0x24,
            "no authority that this ORB trusts has signed the peer's certificate: add the certificate of its authority to -ORBTlsCa, or \
             have this authority sign it";
        /// A certificate cannot be used for another reason.
        CERTIFICATE_UNUSABLE = RTORB | 0x25,
            "the peer's certificate cannot be used: look at it with `openssl x509 -text -in FILE`, and make another (`rtorb keys`)";
        /// The peer refuses the own certificate, or the lack of one.
        OWN_CERTIFICATE_REFUSED = RTORB | 0x26,
            "the peer does not accept this ORB's certificate or wants one that is not there: look at the peer's log for the reason, and give a \
             certificate that it trusts with -ORBTlsCertificate and -ORBTlsKey";
        /// The peer does not speak TLS.
        PEER_IS_PLAIN = RTORB | 0x27,
            "the peer does not speak TLS at this address, as a plain IIOP port: check the port, and whether the server listens at ssliop://";
        /// The handshake failed for another reason.
        HANDSHAKE_FAILED = RTORB | 0x28,
            "the peers agree on no TLS connection: compare their versions of TLS (1.2 and 1.3 here) and their cipher suites";
        /// A name may not call an adapter.
        NAME_NOT_ALLOWED = RTORB | 0x29,
            "the names of the client's certificate may not call this adapter: call with a certificate that may, or add its name to the \
             server's access rule";
        /// This ORB makes no plain connection, and the reference offers no other.
        PLAIN_REFUSED = RTORB | 0x2a,
            "this ORB makes no connection without TLS (-ORBTlsRequired), and the reference offers none with it: have the server listen at \
             ssliop:// and take the reference that it has then, or write corbaloc:ssliop:HOST:PORT/KEY; on the same host, a UNIX socket does too";
        /// A list of revoked certificates is out of date.
        REVOCATIONS_EXPIRED = RTORB | 0x2b,
            "a list of revoked certificates of this ORB is out of date, so it is not known whether the peer's certificate is revoked: put the newest \
             list of its authority into the file of -ORBTlsCrl, set the clock of this host, or accept such lists (-ORBTlsExpiredCrl yes)";
    }
    InvPolicy {
        /// A client asks for an impossible band.
        WRONG_BAND_OF_CLIENT = RTORB | 0x10, "the band of the client's connection is not possible: its `low` is 0 or more, and at most its `high`";
        /// A call is started where calls do not share a connection.
        START_UNSHARED = RTORB | 0x11,
            "calls are started on connections that many share at once: build the ORB with connection strategy multiplexed or banded, and \
             wait strategy leader_followers, reactor or connection_thread";
        /// Early calls cannot wait on the threads of an adapter.
        NO_THREAD_TO_WAIT = RTORB | 0x18,
            "early calls are delayed only by threads that serve one client: choose dispatch thread_per_connection and no thread pool, or let \
             early calls be refused or counted";
    }
    Transient {
        /// A queue is full, or an adapter discards its requests (the standard's code 1).
        NO_ROOM = OMG | 1, "the server's queue is full, or its adapter discards requests at present: try again later";
        /// An object is called again before its last servant has ended.
        BEING_ETHEREALIZED = RTORB | 0x12,
            "the object was deactivated, and its servant has not ended yet: try again, and the server makes another one";
        /// A service has too many changes in progress.
        SERVICE_BUSY = RTORB | 0x10, "the service has as many changes in progress as it may: try again later";
        /// The store that naming services share does not answer.
        STORE_UNAVAILABLE = RTORB | 0x1d,
            "the store that the naming service shares with others does not answer: try again later, and see that the store (etcd) runs; \
             after COMPLETED_MAYBE, look whether the change has happened";
        /// A service is not connected yet.
        SERVICE_STARTING = RTORB | 0x11, "the service is about to connect: try again";
        /// A call came before the `@period` of its operation was over.
        CALLED_TOO_SOON = RTORB | 0x18,
            "the operation is called more often than its @period allows: call it at most once in a period, or let the server delay or \
             only count early calls (-ORBEarlyCalls)";
        /// A client has called more operations with periods than its connection tracks.
        TOO_MANY_PERIODS = RTORB | 0x1a,
            "the client has called more operations within their @period than the server tracks for a connection: call fewer, or raise \
             the server's limit client_periods_max";
        /// As many requests of an operation wait as its `@queue` allows.
        QUEUE_FULL = RTORB | 0x1b,
            "as many calls of the operation wait at the server as its @queue allows: try again later, or call less often";
        /// `Limits::deferred_replies_max` is reached.
        REPLIES_FULL = RTORB | 0x1c,
            "the server has deferred as many replies as it may: try again later, or raise its `Limits::deferred_replies_max`";
        /// `Limits::deferred_replies_per_connection_max` is reached.
        CONNECTION_REPLIES_FULL = RTORB | 0x1e,
            "the server has deferred as many replies of the connection as it may: call again when some have come, or raise its \
             `Limits::deferred_replies_per_connection_max`";
        /// A waiting request gave its place in a full queue to a more critical one.
        SHED = RTORB | 0x19,
            "the server is overloaded, and served more critical requests (@criticality) instead: try again later, or call less often";
    }
    BadOperation {
        /// A poller is asked for the reply of another operation.
        OTHER_OPERATION = RTORB | 0x10, "the poller is that of another operation: ask it by the method of the one that was sent";
    }
    NoResponse {
        /// A poller that does not wait has no reply (the standard's code 1).
        NO_REPLY_YET = OMG | 1, "the reply is not there yet: ask the poller later, or with a timeout that is not 0";
        /// A servant dropped a responder, or its ORB ended before it answered.
        NOT_ANSWERED = RTORB | 0x10,
            "the servant has deferred its reply, and dropped its responder or did not answer before its server ended: find out in the \
             server why it gave the call up";
    }
    Timeout {
        /// A poller got no reply in time (the standard's code 1).
        NO_REPLY_IN_TIME = OMG | 1, "the reply did not come in the time for which the poller was asked; the call goes on, so ask again";
        /// A change did not begin in time.
        CHANGE_NOT_BEGUN = RTORB | 0x10, "the change waited for others until its time was over: try again, or raise the service's time for changes";
        /// A change may have happened.
        CHANGE_NOT_CONFIRMED = RTORB | 0x11, "the time was over while the change was written: look whether it has happened";
        /// A request expired before a servant was called.
        EXPIRED = RTORB | 0x12,
            "the deadline of the call passed before the server called the servant: find out what the request waited for, or allow more \
             time";
        /// A deferred call was not answered by its deadline.
        NOT_ANSWERED_IN_TIME = RTORB | 0x13,
            "the servant has deferred its reply, and nobody answered by the deadline of the call: find out in the server what the answer \
             waits for, or allow more time";
        /// The calls of the adapters of a manager have not ended in time.
        CALLS_IN_PROGRESS = RTORB | 0x14,
            "calls of the manager's adapters were in progress until the timeout: wait again, or find out what holds their servants";
        /// A servant has executed longer than its `@worst_case_time`, and stopped when it was asked to.
        STOPPED_BY_BUDGET = RTORB | 0x18,
            "the servant executed longer than its @worst_case_time, and was stopped: measure its execution and correct the annotation, \
             or shorten its work";
    }
    DataConversion {
        /// A priority has no counterpart (the standard's code 2).
        UNMAPPED_PRIORITY = OMG | 2,
            "the priority mapping or transform has nothing for that priority: choose one that it has, or another mapping \
             (`native` has 0 to 99, `continuous` 0 to 98, `linear` 0 to 32767)";
    }
    ImpLimit {
        /// A name is too long for a service.
        NAME_TOO_LONG = RTORB | 0x10, "the name has more components than the service allows, or longer ones";
        /// A reference is too long for a service.
        REFERENCE_TOO_LONG = RTORB | 0x11, "the reference is larger than the service allows";
        /// A list is too long for a service.
        TOO_MANY_ENTRIES = RTORB | 0x12, "the subscription or publication has more entries than the service allows";
        /// Scheduling segments are nested too deep.
        TOO_MANY_SEGMENTS = RTORB | 0x13, "the thread is in 64 scheduling segments: end those that are over";
        /// The service contexts of a message are too large.
        CONTEXTS_FULL = RTORB | 0x15, "interceptors have added more service contexts to the message than it may have: add fewer, or shorter ones";
        /// A message is larger than its operation states.
        BEYOND_LARGEST = exception::BEYOND_LARGEST,
            "the request or the reply is larger than the @largest_message of its operation: send less at a time, or state more";
    }
    NoImplement {
        /// The pull model of events.
        PULL_MODEL = RTORB | 0x10, "the pull model of events is not implemented: use the push model";
    }
    ObjectNotExist {
        /// The server has no adapter of that name (the standard's code 2).
        NO_ADAPTER = OMG | 2,
            "the server has no object adapter for the key of the reference: see that it makes its adapters before it is called, or get a new \
             reference";
        /// The reply of a poller was taken before (the standard's code 5).
        REPLY_TAKEN = OMG | 5, "the poller has given its reply before: keep what it returned";
        /// The server has no such object.
        OBJECT_GONE = RTORB | 0x10, "the server has no such object: get a new reference";
        /// A proxy is disconnected.
        PROXY_GONE = RTORB | 0x11, "the proxy is disconnected or destroyed: get another from the channel";
        /// A distributable thread is not here.
        THREAD_UNKNOWN = RTORB | 0x12,
            "the distributable thread is not in this process: it has ended, or cancel it in a process where it runs";
    }
    IntfRepos {
        /// No interface repository (the standard's code 1).
        NO_REPOSITORY = OMG | 1, "the server has no interface repository: use the IDL";
    }
    Unknown {
        /// The servant panicked.
        SERVANT_PANICKED = RTORB | 0x10, "the servant panicked: read the server's standard error";
        /// A transform of priorities panicked.
        TRANSFORM_PANICKED = RTORB | 0x11, "the server's priority transform panicked: read its standard error";
        /// A request filter panicked.
        FILTER_PANICKED = RTORB | 0x12, "a request filter of the server panicked: read its standard error";
        /// A locator panicked.
        LOCATOR_PANICKED = RTORB | 0x13, "the server's locator of objects panicked: read its standard error";
        /// A servant activator panicked.
        ACTIVATOR_PANICKED = RTORB | 0x14, "the server's servant activator panicked: read its standard error";
        /// A thread of a scheduling segment panicked.
        THREAD_PANICKED = RTORB | 0x15, "the thread panicked: read the standard error of this program";
    }
    Internal {
        /// A state that cannot be.
        CONTRADICTION = RTORB | 0x10, "this cannot happen: please report it, with this text";
        /// A service contradicts itself.
        ANSWERS_CONTRADICT = RTORB | 0x11, "the answers of the service contradict each other: it may have changed meanwhile, so ask again";
        /// The host gives no random numbers.
        NO_RANDOM_NUMBERS = RTORB | 0x12, "the host gives no random numbers: see that a filter of system calls allows getrandom(2)";
        /// A process cannot read its own recorder.
        RECORDER_UNREADABLE = RTORB | 0x13,
            "the process cannot read its own recorder: it needs /proc, and files that it may open (`ulimit -n`)";
    }
}

/// The words of an exception with one of these minor codes.
#[cfg(feature = "std")]
pub(super) fn words(kind: ExceptionKind, minor: u32) -> Option<&'static str> {
    let known = ALL
        .iter()
        .find(|(of, code, _)| (*of, *code) == (kind, minor));
    known.map(|(.., words)| *words)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use std::collections::HashSet;

    #[test]
    fn each_cause_has_a_code_of_its_own() {
        let codes: HashSet<_> = ALL
            .iter()
            .map(|(kind, minor, _)| (kind.name(), minor))
            .collect();
        assert_eq!(codes.len(), ALL.len());
        for (kind, minor, _) in ALL {
            assert!(*minor >= OMG, "{kind} {minor:#x}");
        }
    }

    #[test]
    fn a_detail_stands_before_the_words_and_makes_no_exception_larger() {
        let exception = NIL_ARGUMENT.with_detail("argument 2");
        assert_eq!(exception.detail(), Some("argument 2"));
        assert_eq!(
            exception.to_string(),
            "BAD_PARAM (minor 0x72746015, COMPLETED_NO): argument 2; an argument is a nil reference: give that of an object"
        );
        assert_eq!(size_of::<SystemException>(), 56);
        assert_eq!(size_of::<Result<(), SystemException>>(), 56);
    }
}
