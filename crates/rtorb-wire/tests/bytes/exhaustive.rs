//! All short inputs, and all extreme counts of recorded messages: what a decoder takes from a stranger as a number.

use crate::decoders;
use crate::recorded::messages;

#[test]
fn no_short_input_makes_a_decoder_panic() {
    for length in 0..=LENGTH_MAX {
        let count = BYTES.len().pow(length);
        for mut number in 0..count {
            let mut input = Vec::with_capacity(length as usize);
            for _ in 0..length {
                input.push(BYTES[number % BYTES.len()]);
                number /= BYTES.len();
            }
            decoders::any(&input);
            decoders::reference(&input);
            decoders::text(&input);
            decoders::values(&input);
        }
    }
}

#[test]
fn no_count_in_a_message_makes_a_decoder_panic() {
    for message in messages() {
        let length = u32::try_from(message.len()).unwrap();
        let near = [length - 12, length - 1, length, length + 1];
        for at in (0..message.len().saturating_sub(3).min(PLACES_MAX)).step_by(4) {
            for count in COUNTS.into_iter().chain(near) {
                for bytes in [count.to_le_bytes(), count.to_be_bytes()] {
                    let mut changed = message.clone();
                    changed[at..at + 4].copy_from_slice(&bytes);
                    decoders::giop(&changed);
                    decoders::stream(&changed);
                }
            }
        }
    }
}

/// The longest of the short inputs: a byte order, a count, and one byte more.
const LENGTH_MAX: u32 = 6;

/// Bytes that make different numbers: as counts, kinds of types, tags and text.
const BYTES: [u8; 6] = [0, 1, 2, 20, 0x7f, 0xff];

/// Counts at which arithmetic overflows or turns negative, for elements of 1 to 16 bytes.
const COUNTS: [u32; 9] = [
    0,
    1,
    (1 << 28) - 1,
    1 << 28,
    i32::MAX as u32,
    1 << 31,
    u32::MAX - 16,
    u32::MAX - 1,
    u32::MAX,
];

/// Places of a message that are counts of its headers and first values.
const PLACES_MAX: usize = 256;
