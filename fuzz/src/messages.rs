//! A mutator that knows GIOP messages: it changes one message of several and keeps the sizes right.

use std::ops::Range;

use rtorb_wire::giop::fragments;

/// Changes the messages in `data[..size]` and returns the new size. `mutate_bytes` is the mutator of bytes.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    mutate_bytes: impl Fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut draws = Draws::new(u64::from(seed));
    let bytes = &data[..size];
    let messages: Vec<Range<usize>> = messages(bytes).collect();
    if messages.is_empty() || draws.below(3) == 0 {
        return mutate_bytes(data, size, max_size);
    }
    let chosen = messages[draws.below(messages.len())].clone();
    let mut message = bytes[chosen.clone()].to_vec();
    let mut inserted = Vec::new();
    match draws.below(6) {
        0 => message.clear(),
        1 => inserted = bytes[messages[draws.below(messages.len())].clone()].to_vec(),
        2 => {
            let part_bytes = HEADER_BYTES + 8 * (1 + draws.below(16));
            message = fragments(&message, part_bytes).flatten().collect();
        }
        3 => replace_word(&mut message, &mut draws),
        _ => {
            let length = message.len();
            message.resize(length + BYTES_ADDED, 0);
            let room = message.len() - HEADER_BYTES;
            let body = &mut message[HEADER_BYTES..];
            let length = HEADER_BYTES + mutate_bytes(body, length - HEADER_BYTES, room);
            message.truncate(length);
        }
    }
    write_size(&mut message);
    let mutated = [
        &bytes[..chosen.start],
        &message,
        &inserted,
        &bytes[chosen.end..],
    ]
    .concat();
    let length = mutated.len().min(max_size);
    data[..length].copy_from_slice(&mutated[..length]);
    length
}

/// The places of the messages, which end where the bytes are no message.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(start..)?;
        let size = (body_size(rest)? as usize).min(rest.len() - HEADER_BYTES);
        let message = start..start + HEADER_BYTES + size;
        start = message.end;
        Some(message)
    })
}

/// The size in a message's header.
fn body_size(message: &[u8]) -> Option<u32> {
    let header = message.first_chunk::<HEADER_BYTES>()?;
    let &[b'G', b'I', b'O', b'P', _, _, flags, _, a, b, c, d] = header else {
        return None;
    };
    Some(if flags & 1 == 0 {
        u32::from_be_bytes([a, b, c, d])
    } else {
        u32::from_le_bytes([a, b, c, d])
    })
}

/// Has the header of a message say how long the message is. A message that was split keeps its sizes.
fn write_size(message: &mut [u8]) {
    if messages(message).count() > 1 {
        return;
    }
    let length = message.len();
    if let Some((header, body)) = message.split_first_chunk_mut::<HEADER_BYTES>() {
        let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let size = if header[6] & 1 == 0 {
            size.to_be_bytes()
        } else {
            size.to_le_bytes()
        };
        header[8..].copy_from_slice(&size);
        debug_assert_eq!(messages(message).next(), Some(0..length));
    }
}

/// Replaces a name of an operation or an object in a message by another one of [`WORDS`].
fn replace_word(message: &mut Vec<u8>, draws: &mut Draws) {
    let first = draws.below(WORDS.len());
    let known = (0..WORDS.len()).map(|number| WORDS[(first + number) % WORDS.len()].as_bytes());
    let found = known.filter_map(|word| {
        let at = message.windows(word.len()).position(|here| here == word)?;
        Some(at..at + word.len())
    });
    let new = WORDS[draws.below(WORDS.len())].as_bytes();
    if let Some(place) = found.max_by_key(|place| place.len())
        && place.start >= HEADER_BYTES + 4
    {
        // Padded as CDR would, if the old word was; otherwise the message is wrong, which is also of use.
        let count = u32::try_from(new.len() + 1).unwrap_or(0).to_le_bytes();
        message[place.start - 4..place.start].copy_from_slice(&count);
        let old = place.len().next_multiple_of(4);
        let padded = new.len().next_multiple_of(4);
        let end = (place.start + old).min(message.len());
        let mut word = new.to_vec();
        word.resize(padded, 0);
        message.splice(place.start..end, word);
    }
}

/// Names of operations and objects that [`server`](crate::server) has.
const WORDS: [&str; 32] = [
    "_is_a",
    "_non_existent",
    "_interface",
    "_component",
    "_repository_id",
    "NameService",
    "EventService",
    "ScheduleService",
    "INIT",
    "bind",
    "rebind",
    "resolve",
    "unbind",
    "list",
    "new_context",
    "bind_new_context",
    "destroy",
    "to_string",
    "to_name",
    "resolve_str",
    "for_consumers",
    "for_suppliers",
    "obtain_push_supplier",
    "obtain_push_consumer",
    "connect_push_consumer",
    "connect_push_supplier",
    "push",
    "create",
    "lookup",
    "set",
    "add_dependency",
    "compute_scheduling",
];

/// Numbers drawn from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// Begins the numbers of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// The length of a GIOP header.
const HEADER_BYTES: usize = 12;

/// The bytes by which a mutation may make a message longer.
const BYTES_ADDED: usize = 64;
