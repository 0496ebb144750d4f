use super::*;
use crate::poller::{Polled, Poller};
use crate::transport::Unsent;
use core::mem::MaybeUninit;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rustix::io::{pread, pwrite};
use rustix::net::Shutdown;
use rustix::thread::sched_yield;
use std::sync::Arc;

const RING_BYTES: usize = 4096;

/// Longer than any of these waits takes, in nanoseconds.
const LONG_NS: u64 = 20_000_000_000;

/// Where the word is by which a server waits for bytes: in the second ring, behind the sender's line and the position.
const RECEIVER_WORD: u64 = 2 * 64 + 64 + 8;

/// Both ends of a connection, as a server and a client have them.
fn pair() -> (Stream, Stream) {
    let (server, client, _) = pair_with_memory(SharedMemoryWait::Futex);
    (server, client)
}

/// As [`pair`], with a wait strategy, and the file of their memory.
fn pair_with_memory(wait: SharedMemoryWait) -> (Stream, Stream, OwnedFd) {
    let (server, client) = std::os::unix::net::UnixStream::pair().expect("the host has sockets");
    let settings = Settings {
        wait,
        ring_bytes: RING_BYTES,
        ..Settings::default()
    };
    let server = accept(server.into(), &settings).expect("the same user");
    let client: OwnedFd = client.into();
    let deadline_ns = monotonic_ns() + LONG_NS;
    let (greeting, memory) = receive_greeting(&client, deadline_ns).expect("it was sent");
    assert_eq!(capacity(&greeting), Ok(RING_BYTES));
    let duplex = Duplex::open(&memory, RING_BYTES).expect("it is sealed");
    let client = Stream::through(MemoryLink::new(duplex, settings.wait), client);
    (server, client, memory)
}

/// Does `work` on another thread.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<Option<T>> {
    spawn("test", &ThreadConfig::default(), work).expect("the host has threads")
}

/// The result of that thread.
fn ended<T>(thread: JoinHandle<Option<T>>) -> T {
    thread.join().ok().flatten().expect("it does not panic")
}

fn errno(sent: Result<(), Unsent>) -> Option<Errno> {
    sent.err().map(|unsent| unsent.errno)
}

fn is_readable(stream: &Stream) -> bool {
    let mut interest = [PollFd::new(stream, PollFlags::IN)];
    poll(&mut interest, Some(&timespec(0))) == Ok(1)
}

#[test]
fn the_descriptor_is_readable_when_bytes_come_and_not_once_they_were_received() {
    let (server, client) = pair();
    server.register_for_polling();
    let mut room = [0; 100];
    for byte in 0..200 {
        assert!(!is_readable(&server));
        assert_eq!(server.receive_now(&mut room), Err(Errno::AGAIN));
        client.send(&[byte; 3]).expect("there is room");
        assert!(is_readable(&server), "{byte}");
        client.send(&[byte; 2]).expect("there is room");
        assert_eq!(server.receive_now(&mut room), Ok(5));
        assert_eq!(room[..5], [byte; 5]);
    }
}

#[test]
fn the_doorbell_is_silent_while_a_thread_lingers_and_rings_after_that() {
    let (server, client, _) = pair_with_memory(SharedMemoryWait::Spin);
    server.register_for_polling();
    let server = Arc::new(server);
    let mut room = [0; 9];
    let mut rung = 0;
    for byte in 0..200 {
        let of_server = Arc::clone(&server);
        let lingering = beside(move || of_server.linger());
        client.send(&[byte]).expect("there is room");
        let has_seen = ended(lingering);
        let has_rung = is_readable(&server);
        assert!(has_seen || has_rung, "{byte} is lost");
        rung += u32::from(has_rung);
        assert_eq!(server.receive_now(&mut room), Ok(1));
        assert!(!server.linger(), "there is nothing more");
        client.send(&[byte]).expect("there is room");
        assert!(is_readable(&server), "{byte}: it lingers no more");
        assert_eq!(server.receive_now(&mut room), Ok(1));
    }
    println!("rung {rung} times of 200");
    let (server, _client, _) = pair_with_memory(SharedMemoryWait::Futex);
    assert!(!server.lingers(), "it sleeps at once");
}

#[test]
fn bytes_beyond_the_room_of_one_receipt_are_reported_as_left() {
    let (server, client) = pair();
    server.register_for_polling();
    client.send(&[1; 10]).expect("there is room");
    let mut room = [0; 6];
    assert_eq!(server.receive_now(&mut room), Ok(6));
    assert!(server.holds_unreported_bytes());
    assert_eq!(server.receive_now(&mut room), Ok(4));
    assert!(!server.holds_unreported_bytes());
}

#[test]
fn an_event_loop_that_sends_too_much_is_told_when_there_is_room() {
    let (server, client) = pair();
    server.register_for_polling();
    let message = vec![7; 3 * RING_BYTES];
    assert_eq!(server.send_message_now(&message, &[]), Ok(RING_BYTES));
    assert!(!is_readable(&server));
    let mut room = vec![0; RING_BYTES];
    assert_eq!(client.receive(&mut room[..100]), Ok(100));
    assert!(!is_readable(&server), "it is not worth while yet");
    assert_eq!(client.receive(&mut room), Ok(RING_BYTES - 100));
    assert!(is_readable(&server));
    server.note_room_event();
    assert!(!is_readable(&server));
    assert_eq!(server.send_message_now(&message, &[]), Ok(RING_BYTES));
}

#[test]
fn a_sender_without_room_gives_up_at_its_deadline_and_at_the_end() {
    let (server, client) = pair();
    let message = vec![7; 2 * RING_BYTES];
    let soon_ns = monotonic_ns() + 1_000_000;
    let late = client.send_message_by(&message, &[], Some(soon_ns));
    assert!(matches!(
        late,
        Err(Unsent {
            errno: Errno::AGAIN,
            has_begun: true
        })
    ));
    let sender = beside(move || client.send(&message));
    server.shut();
    assert_eq!(errno(ended(sender)), Some(Errno::PIPE));
}

#[test]
fn what_was_sent_before_the_end_is_received_before_it() {
    let (server, client) = pair();
    client.send(b"last").expect("there is room");
    drop(client);
    let mut room = [0; 9];
    assert_eq!(server.receive(&mut room), Ok(4));
    assert_eq!(server.receive(&mut room), Ok(0));
    assert_eq!(errno(server.send(b"reply")), Some(Errno::PIPE));
}

#[test]
fn bytes_that_the_peer_may_still_take_count_as_sent_although_its_doorbell_is_gone() {
    type StreamSend = fn(&Stream) -> Result<(), Errno>;
    let sends: [StreamSend; 2] = [
        |client| client.send(b"call").map_err(|unsent| unsent.errno),
        |client| client.send_message_now(b"call", &[]).map(|_| ()),
    ];
    for send in sends {
        let (server, client) = pair();
        server.register_for_polling();
        // A peer that ends receiving says so in the memory before; here the bytes come between the two.
        rustix::net::shutdown(&server, Shutdown::Read).expect("it is connected");
        assert_eq!(send(&client), Ok(()));
        assert_eq!(send(&client), Err(Errno::PIPE), "it takes no more");
        let mut room = [0; 9];
        assert_eq!(server.receive(&mut room), Ok(4));
        server.send(b"reply").expect("its client still receives");
        assert_eq!(client.receive(&mut room), Ok(5));
    }
}

#[test]
fn a_thread_that_sleeps_is_woken_by_the_end_of_either_side() {
    type StreamEnd = fn(&Stream, &Stream);
    let ends: [StreamEnd; 4] = [
        |own, _| own.shut(),
        |own, _| own.end_receiving(),
        |_, peer| peer.shut(),
        |_, peer| peer.end_sending(),
    ];
    for end in ends {
        let (server, client) = pair();
        let server = Arc::new(server);
        let of_reader = Arc::clone(&server);
        let reader = beside(move || of_reader.receive(&mut [0; 9]));
        end(&server, &client);
        assert_eq!(ended(reader), Ok(0));
    }
}

#[test]
fn the_end_of_a_peer_that_could_not_say_so_is_found() {
    let (server, client) = pair();
    // A process that is killed closes its socket, and writes nothing into the memory.
    rustix::net::shutdown(&client, Shutdown::Both).expect("it is connected");
    assert_eq!(server.receive(&mut [0; 9]), Ok(0));
    let message = vec![7; 2 * RING_BYTES];
    assert_eq!(errno(server.send(&message)), Some(Errno::PIPE));
}

#[test]
fn a_look_at_an_idle_stream_finds_the_end_of_its_peer() {
    let (server, client) = pair();
    assert!(!client.has_ended() && !server.has_ended());
    // A process that is killed closes its socket, and writes nothing into the memory.
    rustix::net::shutdown(&server, Shutdown::Both).expect("it is connected");
    assert!(client.has_ended());
    let (server, client) = pair();
    server.end_sending();
    assert!(client.has_ended());
}

/// A watch of the peer of one stream, and its poller.
fn watch(stream: &Stream) -> (PeerWatch, Poller) {
    let (watch, poller) = (PeerWatch::new(), Poller::new().expect("the host has epoll"));
    let link = stream.memory().expect("its bytes go through memory");
    watch
        .add(link, stream, &poller)
        .expect("the host has memory");
    (watch, poller)
}

/// Wakes threads until `is_over`, as the watchdog does.
fn wake_until((watch, poller): &(PeerWatch, Poller), is_over: impl Fn() -> bool) {
    let deadline_ns = monotonic_ns() + LONG_NS;
    while !is_over() {
        assert!(monotonic_ns() < deadline_ns, "nobody was woken");
        let wait_ns = if watch.wake_threads() {
            1_000_000
        } else {
            50_000_000
        };
        for event in poller.wait(&mut [MaybeUninit::uninit(); 4], Some(wait_ns)) {
            if let Polled::Entry(token, flags) = Polled::of(event) {
                watch.note_end(token, flags);
            }
        }
    }
}

#[test]
fn threads_whose_peer_is_watched_sleep_without_a_timer_and_are_woken_by_its_end() {
    let (server, client) = pair();
    let watch = watch(&server);
    let server = Arc::new(server);
    let of_reader = Arc::clone(&server);
    let reader = beside(move || of_reader.receive(&mut [0; 9]));
    let of_sender = Arc::clone(&server);
    let sender = beside(move || of_sender.send(&[7; 2 * RING_BYTES]));
    assert!(!watch.0.wake_threads(), "nobody has to be woken");
    rustix::net::shutdown(&client, Shutdown::Both).expect("it is connected");
    wake_until(&watch, || reader.is_finished() && sender.is_finished());
    assert_eq!(ended(reader), Ok(0));
    assert_eq!(errno(ended(sender)), Some(Errno::PIPE));
    assert!(!watch.0.wake_threads(), "nobody sleeps");
}

#[test]
fn a_peer_that_says_that_nobody_sleeps_does_not_hinder_the_wake_up_at_its_end() {
    let (server, client, memory) = pair_with_memory(SharedMemoryWait::Futex);
    let watch = watch(&server);
    let reader = beside(move || server.receive(&mut [0; 9]));
    let deadline_ns = monotonic_ns() + LONG_NS;
    let word = || {
        let mut word = [0; 4];
        pread(&memory, &mut word, RECEIVER_WORD).expect("it is sealed");
        u32::from_ne_bytes(word)
    };
    while word() == 0 {
        assert!(monotonic_ns() < deadline_ns, "nobody sleeps");
        sched_yield();
    }
    pwrite(&memory, &[0; 4], RECEIVER_WORD).expect("it may be written");
    drop(client);
    wake_until(&watch, || reader.is_finished());
    assert_eq!(ended(reader), Ok(0));
}

#[test]
fn no_two_users_share_memory_unless_a_group_is_trusted() {
    let (server, _client) = std::os::unix::net::UnixStream::pair().expect("the host has sockets");
    // Both ends of a pair are of this process.
    assert_eq!(check_peer(&server, &Settings::default()), Ok(()));
    let group = socket_peercred(&server)
        .expect("it has a peer")
        .gid
        .as_raw();
    let with_group = |group| Settings {
        group: Some(group),
        ..Settings::default()
    };
    assert!(is_trusted(u32::MAX - 1, group, &with_group(group)));
    assert!(!is_trusted(u32::MAX - 1, group, &with_group(group + 1)));
    assert!(!is_trusted(u32::MAX - 1, group, &Settings::default()));
}

#[test]
fn threads_that_send_at_once_send_one_after_the_other_or_not_at_all() {
    let (server, client) = pair();
    let client = Arc::new(client);
    let threads: Vec<_> = (0..4u8)
        .map(|number| {
            let client = Arc::clone(&client);
            beside(move || {
                let message = vec![number; if number == 0 { 3 * RING_BYTES } else { 64 }];
                let sent = (0..20_000).map(|_| client.send_message_now(&message, &[]));
                sent.filter_map(|sent| match sent {
                    Err(Errno::BUSY) => None,
                    sent => Some(sent.expect("the peer is honest")),
                })
                .max()
            })
        })
        .collect();
    let mut room = vec![0; RING_BYTES];
    while !threads.iter().all(JoinHandle::is_finished) {
        match server.receive_now(&mut room) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(errno) => panic!("{errno}"),
        }
    }
    for thread in threads {
        assert!(ended(thread).is_none_or(|most| most <= RING_BYTES));
    }
}
