//! A target that sends and receives through shared memory whose peer writes anything anywhere.

use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;

use rtorb_os::byte_rings::{BrokenRing, CAPACITY_MIN, Duplex};

/// Takes steps of 12 bytes: the action, the end, an amount or place, and a value that the peer writes there.
pub(crate) fn run(input: &[u8]) {
    let (maker, file) = Duplex::create(CAPACITY_MIN).expect("memory for a ring");
    let opener = Duplex::open(&file, CAPACITY_MIN).expect("the maker's segment");
    let segment = File::from(file);
    let mut ends = [maker, opener];
    let mut is_honest = true;
    // Bytes under way to each end.
    let mut under_way = [0_usize; 2];
    for step in input.as_chunks::<12>().0.iter().take(STEPS_MAX) {
        let [action, end, low, high, value @ ..] = *step;
        let end = usize::from(end & 1);
        let amount = usize::from(u16::from_le_bytes([low, high]));
        match action % 4 {
            0 => {
                let sent = send(&mut ends[end], amount);
                under_way[1 - end] += check(sent, is_honest);
            }
            1 => {
                let mut room = vec![0; amount % (2 * CAPACITY_MIN)];
                let received = check(ends[end].receiver.receive(&mut room), is_honest);
                under_way[end] = left(under_way[end], received, is_honest);
            }
            2 => {
                check(ends[end].receiver.discard().map(|()| 0), is_honest);
                under_way[end] = 0;
            }
            _ => {
                let place = (amount & !7) % HEADER_BYTES;
                segment
                    .write_all_at(&value, place as u64)
                    .expect("the segment is larger");
                is_honest = false;
            }
        }
    }
}

fn send(end: &mut Duplex, amount: usize) -> Result<usize, BrokenRing> {
    let bytes = vec![7; amount % (2 * CAPACITY_MIN)];
    let (first, second) = bytes.split_at(bytes.len() / 2);
    end.sender
        .send(&[IoSlice::new(first), IoSlice::new(second)])
}

/// The count, which is at most the capacity. An honest peer breaks no ring.
fn check(count: Result<usize, BrokenRing>, is_honest: bool) -> usize {
    if is_honest {
        assert!(count.is_ok(), "the peer is honest");
    }
    let count = count.unwrap_or(0);
    assert!(count <= CAPACITY_MIN, "more than the ring has: {count}");
    count
}

/// The bytes that are still under way after some were received.
fn left(under_way: usize, received: usize, is_honest: bool) -> usize {
    if is_honest {
        assert!(received <= under_way, "more than was sent");
    }
    under_way.saturating_sub(received)
}

/// The bytes of the segment that decide what the other end does: positions, and the words of waiting threads.
const HEADER_BYTES: usize = 256;

/// Steps of one input.
const STEPS_MAX: usize = 256;
