//! What is called: the operations, with the lengths of the sequences.

use std::fmt;

use crate::contestants::operations::Operation;
use crate::experiment::Effort;

/// One operation with one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) operation: Operation,
    /// Elements; 0 when it is no sequence.
    pub(super) len: usize,
}

impl Cell {
    /// The plain call.
    pub(super) const LONG: Self = Self {
        operation: Operation::Long,
        len: 0,
    };

    /// Whether copying the octets takes longer than handing them over.
    pub(super) fn is_large(&self) -> bool {
        self.operation.payload_bytes(self.len) > LARGE_BYTES
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation.is_sequence() {
            true => write!(formatter, "{} of {}", self.operation, self.len),
            false => self.operation.fmt(formatter),
        }
    }
}

/// The simple operations, then the sequences from short to long: the original benchmark's lengths, and 64 KiB.
pub(super) fn cells(effort: Effort) -> Vec<Cell> {
    let simple = Operation::ALL
        .into_iter()
        .filter(|operation| !operation.is_sequence());
    let mut cells: Vec<Cell> = simple.map(|operation| Cell { operation, len: 0 }).collect();
    let sequences: [(Operation, &[usize]); 3] = match effort {
        Effort::Glance => [
            (Operation::OctetSequence, &[16]),
            (Operation::LongSequence, &[4]),
            (Operation::ManySequence, &[4]),
        ],
        Effort::Emulated { .. } => [
            (Operation::OctetSequence, &[16, 1024]),
            (Operation::LongSequence, &[4, 1024]),
            (Operation::ManySequence, &[4]),
        ],
        Effort::Quick => [
            (Operation::OctetSequence, &[16, 1024, 4096, 65_536]),
            (Operation::LongSequence, &[4, 1024, 4096]),
            (Operation::ManySequence, &[4, 1024, 4096]),
        ],
        Effort::Full => [
            (
                Operation::OctetSequence,
                &[16, 256, 1024, 4096, 16_384, 65_536, 262_144],
            ),
            (
                Operation::LongSequence,
                &[4, 256, 1024, 4096, 16_384, 65_536],
            ),
            (Operation::ManySequence, &[4, 256, 1024, 4096, 16_384]),
        ],
    };
    for (operation, lengths) in sequences {
        cells.extend(lengths.iter().map(|&len| Cell { operation, len }));
    }
    cells
}

const LARGE_BYTES: usize = 8192;
