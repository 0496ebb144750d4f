//! Finds an operation's number by its name, in constant time for interfaces of any size.

/// A hash table of operation names, built by the compiler.
///
/// `SLOTS` is a power of two of at least four times `OPERATIONS`, so that a name is nearly always in its first slot.
#[derive(Debug)]
pub struct OperationTable<const OPERATIONS: usize, const SLOTS: usize> {
    names: [&'static str; OPERATIONS],
    /// Number of the operation plus one; 0 is vacant.
    slots: [u16; SLOTS],
}

impl<const OPERATIONS: usize, const SLOTS: usize> OperationTable<OPERATIONS, SLOTS> {
    /// A table in which each name has its position as its number.
    ///
    /// # Panics
    /// While compiling, if `SLOTS` is no power of two or too small.
    pub const fn new(names: [&'static str; OPERATIONS]) -> Self {
        assert!(SLOTS.is_power_of_two() && SLOTS > OPERATIONS && OPERATIONS < u16::MAX as usize);
        let mut slots = [0; SLOTS];
        let mut number = 0;
        while number < OPERATIONS {
            let mut slot = hash(names[number].as_bytes()) & (SLOTS - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (SLOTS - 1);
            }
            number += 1;
            slots[slot] = number as u16;
        }
        Self { names, slots }
    }

    /// The number of the operation with that name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let mut slot = hash(name) & (SLOTS - 1);
        loop {
            let number = usize::from(self.slots[slot]).checked_sub(1)?;
            if self.names[number].as_bytes() == name {
                return Some(number);
            }
            slot = (slot + 1) & (SLOTS - 1);
        }
    }
}

/// Hashes eight bytes at a time: multiplies and folds.
#[inline]
const fn hash(name: &[u8]) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = name.len() as u64;
    let mut rest = name;
    while let Some((chunk, left)) = rest.split_first_chunk::<8>() {
        state = fold((state ^ u64::from_le_bytes(*chunk)).wrapping_mul(ODD));
        rest = left;
    }
    let mut tail = 0;
    while let Some((octet, left)) = rest.split_first() {
        tail = tail << 8 | *octet as u64;
        rest = left;
    }
    fold((state ^ tail).wrapping_mul(ODD)) as usize
}

const fn fold(product: u64) -> u64 {
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_name_and_no_other() {
        static TABLE: OperationTable<3, 16> =
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
        static TABLE: OperationTable<0, 1> = OperationTable::new([]);
        assert_eq!(TABLE.find(b"cube_long"), None);
    }
}
