use super::*;
use crate::clock::monotonic_ns;
use std::thread;

fn pair(capacity: usize) -> (Duplex, Duplex, OwnedFd) {
    let (maker, file) = Duplex::create(capacity).expect("the host has memory");
    let opener = Duplex::open(&file, capacity).expect("it was made so");
    (maker, opener, file)
}

fn send(duplex: &mut Duplex, bytes: &[u8]) -> usize {
    let sent = duplex.sender.send(&[IoSlice::new(bytes)]);
    sent.expect("an honest peer")
}

#[test]
fn bytes_come_out_of_the_other_end_in_their_order_and_only_there() {
    let (mut maker, mut opener, _file) = pair(CAPACITY_MIN);
    let parts = [b"ab".as_slice(), b"", b"cde"].map(IoSlice::new);
    assert_eq!(maker.sender.send(&parts), Ok(5));
    assert_eq!(send(&mut opener, b"xyz"), 3);
    let mut room = [0; 4];
    assert_eq!(opener.receiver.receive(&mut room), Ok(4));
    assert_eq!(&room, b"abcd");
    let mut behind = Vec::with_capacity(8);
    behind.push(b'-');
    assert_eq!(opener.receiver.receive_behind(&mut behind, 9), Ok(1));
    assert_eq!(behind, b"-e");
    assert_eq!(opener.receiver.receive(&mut room), Ok(0));
    assert_eq!(maker.receiver.receive(&mut room), Ok(3));
    assert_eq!(&room[..3], b"xyz");
}

#[test]
fn a_ring_takes_its_capacity_and_wraps_at_its_end() {
    let (mut maker, mut opener, _file) = pair(CAPACITY_MIN);
    let (mut next_sent, mut next_received) = (0u8, 0u8);
    let mut room = vec![0; CAPACITY_MIN];
    // The lengths have no common factor with the capacity, so that every offset is met.
    for round in 0..5000 {
        let bytes: Vec<u8> = (0..CAPACITY_MIN + 1)
            .map(|step| next_sent.wrapping_add(step as u8))
            .collect();
        let sent = send(&mut maker, &bytes[..(round * 13) % (CAPACITY_MIN + 2)]);
        next_sent = next_sent.wrapping_add(sent as u8);
        let length = (round * 7) % CAPACITY_MIN;
        let received = opener
            .receiver
            .receive(&mut room[..length])
            .expect("honest");
        for byte in &room[..received] {
            assert_eq!(*byte, next_received);
            next_received = next_received.wrapping_add(1);
        }
    }
    opener.receiver.discard().expect("honest");
    assert_eq!(send(&mut maker, &vec![1; CAPACITY_MIN + 1]), CAPACITY_MIN);
    assert_eq!(send(&mut maker, &[1]), 0);
}

#[test]
fn threads_of_both_ends_wait_for_each_other_and_lose_no_byte() {
    const BYTES: usize = 8 << 20;
    let (mut maker, mut opener, _file) = pair(CAPACITY_MIN);
    let wait = |rings: &ByteRings, awaited| {
        // All waits together may last long on a busy host.
        let deadline_ns = monotonic_ns() + 30_000_000_000;
        rings.announce(awaited, Place::Word);
        if !rings.is_ready(awaited).expect("honest") {
            rings.sleep(awaited, Some(deadline_ns));
        }
        rings.withdraw(awaited);
        assert!(
            monotonic_ns() < deadline_ns,
            "a wake-up was lost: {awaited:?}"
        );
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let bytes: Vec<u8> = (0..BYTES).map(|index| (index % 251) as u8).collect();
            let mut sent = 0;
            while sent < BYTES {
                let until = BYTES.min(sent + 1 + sent % 5000);
                match send(&mut maker, &bytes[sent..until]) {
                    0 => wait(&maker.rings, Awaited::Room),
                    count => sent += count,
                }
                assert!(!maker.rings.call_peer(Awaited::Bytes), "it has no doorbell");
            }
        });
        let mut received = 0;
        let mut room = [0; 999];
        while received < BYTES {
            let count = opener.receiver.receive(&mut room).expect("honest");
            if opener.rings.has_made_room() {
                assert!(!opener.rings.call_peer(Awaited::Room), "it has no doorbell");
            }
            for (offset, byte) in room[..count].iter().enumerate() {
                assert_eq!(*byte, ((received + offset) % 251) as u8);
            }
            received += count;
            if count == 0 {
                wait(&opener.rings, Awaited::Bytes);
            }
        }
    });
}

#[test]
fn the_end_of_a_peer_is_seen_and_wakes_a_sleeper() {
    let (maker, opener, _file) = pair(CAPACITY_MIN);
    thread::scope(|scope| {
        scope.spawn(|| {
            opener.rings.announce(Awaited::Bytes, Place::Word);
            if !opener.rings.has_peer_ended(Awaited::Bytes) {
                opener.rings.sleep(Awaited::Bytes, None);
            }
        });
        maker.rings.end(Awaited::Room);
    });
    assert!(opener.rings.has_peer_ended(Awaited::Bytes));
    assert!(!opener.rings.has_peer_ended(Awaited::Room));
    drop(maker);
    assert!(opener.rings.has_peer_ended(Awaited::Room));
}

#[test]
fn a_peer_that_waits_at_its_doorbell_is_to_be_rung_once() {
    let (maker, opener, _file) = pair(CAPACITY_MIN);
    assert!(!maker.rings.call_peer(Awaited::Bytes));
    opener.rings.announce(Awaited::Bytes, Place::Doorbell);
    assert!(maker.rings.call_peer(Awaited::Bytes));
    assert!(!maker.rings.call_peer(Awaited::Bytes));
    opener.rings.announce(Awaited::Bytes, Place::Doorbell);
    opener.rings.withdraw(Awaited::Bytes);
    assert!(!maker.rings.call_peer(Awaited::Bytes));
}

#[test]
fn a_segment_keeps_its_size_and_any_other_file_is_refused() {
    let (_maker, _opener, file) = pair(CAPACITY_MIN);
    for bytes in [0, 1 << 20] {
        assert_eq!(ftruncate(&file, bytes), Err(Errno::PERM));
    }
    let open = |file, capacity| Duplex::open(file, capacity).map(|_| ());
    assert_eq!(open(&file, 2 * CAPACITY_MIN), Err(Errno::INVAL));
    assert_eq!(open(&file, 0), Err(Errno::INVAL));
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let unsealed = memfd_create("unsealed", flags).expect("the host has memory");
    ftruncate(&unsealed, segment_bytes(CAPACITY_MIN) as u64).expect("it is not sealed");
    assert_eq!(open(&unsealed, CAPACITY_MIN), Err(Errno::PERM));
    for capacity in [0, 1, CAPACITY_MIN / 2, CAPACITY_MIN + 1, 2 * CAPACITY_MAX] {
        assert!(Duplex::create(capacity).is_err(), "{capacity}");
    }
}

/// Writes over the header of the segment, as a peer might.
fn scribble(rings: &ByteRings, mut random: u64, words: usize) {
    let header = rings.base.cast::<AtomicU64>();
    for _ in 0..words {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = (random >> 33) as usize % (size_of::<Header>() / 8);
        // Small numbers too: they are near what is right.
        let value = if random >> 60 < 8 {
            random >> 50
        } else {
            random
        };
        // SAFETY: the word is in the header.
        let place = unsafe { header.add(word) };
        // SAFETY: the header is mapped, and all of it is atomic.
        unsafe { place.as_ref() }.store(value, Ordering::Relaxed);
    }
}

#[test]
fn positions_that_cannot_be_are_an_error() {
    let (mut maker, mut opener, _file) = pair(CAPACITY_MIN);
    assert_eq!(send(&mut maker, &[7; 10]), 10);
    let position = |value| {
        maker
            .rings
            .outgoing()
            .sender
            .position
            .store(value, Ordering::SeqCst)
    };
    let mut room = [0; CAPACITY_MIN];
    for wrong in [CAPACITY_MIN as u64 + 1, u64::MAX, 1 << 63] {
        position(wrong);
        assert_eq!(
            opener.receiver.receive(&mut room),
            Err(BrokenRing),
            "{wrong}"
        );
        assert_eq!(opener.rings.is_ready(Awaited::Bytes), Err(BrokenRing));
    }
    position(10);
    assert_eq!(opener.receiver.receive(&mut room), Ok(10));
    // Backwards.
    position(9);
    assert_eq!(opener.receiver.receive(&mut room), Err(BrokenRing));
    opener
        .rings
        .incoming()
        .receiver
        .position
        .store(11, Ordering::SeqCst);
    assert_eq!(
        maker.sender.send(&[IoSlice::new(&room)]),
        Err(BrokenRing),
        "the peer has taken more than was sent"
    );
}

#[test]
fn a_peer_that_has_taken_bytes_before_the_first_leaves_less_room_and_causes_no_panic() {
    let (mut maker, _opener, _file) = pair(CAPACITY_MIN);
    assert_eq!(send(&mut maker, &[7; 10]), 10);
    let peer = &maker.rings.outgoing().receiver;
    peer.position.store(u64::MAX - 5, Ordering::SeqCst);
    let bytes = [7; CAPACITY_MIN];
    assert_eq!(send(&mut maker, &bytes), CAPACITY_MIN - 16);
    assert_eq!(send(&mut maker, &bytes), 0);
}

#[test]
fn a_peer_that_scribbles_while_it_is_read_causes_errors_and_nothing_worse() {
    for seed in 0..200 {
        let (maker, mut opener, _file) = pair(CAPACITY_MIN);
        let (failures, received) = thread::scope(|scope| {
            scope.spawn(|| scribble(&maker.rings, seed, 2000));
            let mut room = [0; 100];
            let (mut failures, mut received) = (0, 0);
            for _ in 0..500 {
                match opener.receiver.receive(&mut room) {
                    Ok(count) => received += count,
                    Err(BrokenRing) => failures += 1,
                }
                failures += usize::from(opener.sender.send(&[IoSlice::new(&room)]).is_err());
                opener.rings.call_peer(Awaited::Bytes);
                opener.rings.announce(Awaited::Room, Place::Word);
                opener.rings.sleep(Awaited::Room, Some(monotonic_ns()));
            }
            (failures, received)
        });
        assert!(
            failures <= 1000 && received <= 50_000,
            "{failures}, {received}"
        );
    }
}
