//! Finds an operation's number by its name, in constant time for interfaces of any size.

/// A perfect hash table of operation names, built by the compiler. Each name has a slot of its own, so that a lookup needs one
/// comparison (P2 section 2, perfect hashing).
///
/// The hash of a name selects a bucket, and the displacement of the bucket selects the slot. The compiler finds the displacements
/// and the seed of the hash.
#[derive(Debug)]
pub struct OperationTable<const OPERATIONS: usize, const BUCKETS: usize, const SLOTS: usize> {
    names: [&'static str; OPERATIONS],
    seed: u64,
    displacements: [u16; BUCKETS],
    /// The number of the operation plus one; 0 for an empty slot.
    slots: [u16; SLOTS],
}

impl<const OPERATIONS: usize, const BUCKETS: usize, const SLOTS: usize>
    OperationTable<OPERATIONS, BUCKETS, SLOTS>
{
    /// A table of `names`. The number of a name is its position.
    ///
    /// # Panics
    /// At compile time, if a name occurs twice, or if `BUCKETS` and `SLOTS` are not powers of two or are too small.
    pub const fn new(names: [&'static str; OPERATIONS]) -> Self {
        assert!(OPERATIONS < u16::MAX as usize && SLOTS <= 1 << 16);
        assert!(BUCKETS.is_power_of_two() && SLOTS.is_power_of_two() && SLOTS > OPERATIONS);
        let mut seed = 0;
        while seed < SEEDS_MAX {
            if let Some(table) = Self::with(names, seed) {
                return table;
            }
            seed += 1;
        }
        panic!("no seed gives each name a slot of its own: does one occur twice?")
    }

    /// The table with this seed; `None` if no displacement gives the names of a bucket different empty slots.
    const fn with(names: [&'static str; OPERATIONS], seed: u64) -> Option<Self> {
        let mut table = Self {
            names,
            seed,
            displacements: [0; BUCKETS],
            slots: [0; SLOTS],
        };
        let mut hashes = [0; OPERATIONS];
        // The names of a bucket are a linked list: `last` has its last name, and `before` the name before each. Both are numbers
        // plus one; 0 is no name.
        let (mut last, mut before) = ([0; BUCKETS], [0; OPERATIONS]);
        let mut number = 0;
        while number < OPERATIONS {
            hashes[number] = hash(seed, names[number].as_bytes());
            let bucket = Self::bucket(hashes[number]);
            before[number] = last[bucket];
            number += 1;
            last[bucket] = number;
        }
        let mut bucket = 0;
        while bucket < BUCKETS {
            let mut displacement = 0;
            while !table.place(&hashes, &before, last[bucket], displacement) {
                displacement += 1;
                if displacement == SLOTS {
                    return None;
                }
            }
            table.displacements[bucket] = displacement as u16;
            bucket += 1;
        }
        Some(table)
    }

    /// Gives each name of a bucket its slot. Returns false and changes nothing if a slot is taken.
    const fn place(
        &mut self,
        hashes: &[u64; OPERATIONS],
        before: &[usize; OPERATIONS],
        last: usize,
        displacement: usize,
    ) -> bool {
        let mut name = last;
        while name != 0 {
            let slot = Self::slot(hashes[name - 1], displacement);
            if self.slots[slot] != 0 {
                let taken = name;
                name = last;
                while name != taken {
                    self.slots[Self::slot(hashes[name - 1], displacement)] = 0;
                    name = before[name - 1];
                }
                return false;
            }
            self.slots[slot] = name as u16;
            name = before[name - 1];
        }
        true
    }

    /// The number of the operation with that name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let hash = hash(self.seed, name);
        let displacement = self.displacements[Self::bucket(hash)];
        let slot = self.slots[Self::slot(hash, displacement as usize)];
        let number = usize::from(slot).checked_sub(1)?;
        (self.names[number].as_bytes() == name).then_some(number)
    }

    const fn bucket(hash: u64) -> usize {
        hash as usize & (BUCKETS - 1)
    }

    /// The slot of a hash. Uses the highest bits, which depend on every byte of the name.
    const fn slot(hash: u64, displacement: usize) -> usize {
        ((hash >> 48) as usize ^ displacement) & (SLOTS - 1)
    }
}

/// Hashes a name, eight bytes at a time, by multiplying and folding.
#[inline]
const fn hash(seed: u64, name: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed ^ name.len() as u64;
    let mut rest = name;
    while let Some((chunk, left)) = rest.split_first_chunk::<8>() {
        state = fold((state ^ u64::from_le_bytes(*chunk)).wrapping_mul(ODD));
        rest = left;
    }
    let mut tail = 0;
    while let Some((byte, left)) = rest.split_first() {
        tail = tail << 8 | *byte as u64;
        rest = left;
    }
    fold((state ^ tail).wrapping_mul(ODD))
}

const fn fold(product: u64) -> u64 {
    product ^ product >> 32
}

/// The most seeds to try. Different names need far fewer.
const SEEDS_MAX: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_name_and_no_other() {
        static TABLE: OperationTable<3, 1, 16> =
            OperationTable::new(["cube_long", "a", "a_rather_long_operation_name"]);
        assert_eq!(TABLE.find(b"cube_long"), Some(0));
        assert_eq!(TABLE.find(b"a"), Some(1));
        assert_eq!(TABLE.find(b"a_rather_long_operation_name"), Some(2));
        for unknown in [
            &b""[..],
            b"b",
            b"cube_lon",
            b"cube_long_",
            b"a_rather_long_operation_nam",
        ] {
            assert_eq!(TABLE.find(unknown), None);
        }
    }

    #[test]
    fn an_interface_without_operations_finds_nothing() {
        static TABLE: OperationTable<0, 1, 1> = OperationTable::new([]);
        assert_eq!(TABLE.find(b"cube_long"), None);
    }

    #[test]
    fn each_of_many_names_is_in_its_slot() {
        let all: Vec<String> = (0..300).map(|n| format!("operation_{n}")).collect();
        let names: [&'static str; 300] = std::array::from_fn(|n| &*all[n].clone().leak());
        let table = OperationTable::<300, 128, 2_048>::new(names);
        for (number, name) in all.iter().enumerate() {
            assert_eq!(table.find(name.as_bytes()), Some(number), "{name}");
            assert_eq!(table.find(format!("{name}_").as_bytes()), None);
        }
    }

    #[test]
    fn names_that_differ_in_one_byte_have_slots_of_their_own() {
        let table = OperationTable::<4, 1, 16>::new(["aoolean", "boolean", "coolean", "doolean"]);
        assert_eq!(table.find(b"coolean"), Some(2));
        assert_eq!(table.find(b"eoolean"), None);
    }

    #[test]
    #[should_panic(expected = "does one occur twice?")]
    fn a_name_that_is_there_twice_is_refused() {
        OperationTable::<2, 1, 8>::new(["stop", "stop"]);
    }
}
