//! What the emulator's observer wrote: the blocks that were executed last before the mark, oldest first.

use std::io::{Error, ErrorKind, Read, Result};

use super::block_end::BlockEnd;

/// A block of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The address of its first one.
    pub(crate) start: u64,
    /// What its last one does.
    pub(crate) end: BlockEnd,
    /// The octets of each.
    pub(crate) sizes: Box<[u8]>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The block with this index was executed.
    Executed(u32),
    /// The task with this index came, in the block before.
    SwitchedTo(u32),
}

/// What happened before the mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// In the order in which they were translated.
    pub(crate) blocks: Vec<Block>,
    /// The oldest first; the last one is what was executed right before the mark.
    pub(crate) events: Vec<Event>,
    /// How often the machine came to the marked address in all; too seldom for the mark, and nothing else is here.
    pub(crate) marks: u64,
}

impl Block {
    /// How many instructions it has.
    pub(crate) fn instructions(&self) -> u64 {
        self.sizes.len() as u64
    }

    /// The address behind its last instruction.
    pub(crate) fn next(&self) -> u64 {
        self.start + self.sizes.iter().map(|size| u64::from(*size)).sum::<u64>()
    }

    /// The emulator gives up an instruction that begins in one page and ends in the next, unless a block begins with it: it is told
    /// to observers as the last one of the block, and executed as the first one of another.
    fn without_what_it_gave_up(mut self) -> Self {
        let last = self.sizes.last().copied().unwrap_or(0);
        let end = self.next();
        let crosses = (end - u64::from(last)) / PAGE_BYTES != end.saturating_sub(1) / PAGE_BYTES;
        if crosses && self.sizes.len() > 1 {
            self.sizes = self.sizes[..self.sizes.len() - 1].into();
            self.end = BlockEnd::Other;
        }
        self
    }

    /// How many of its instructions are before the one at this address; `None` when none of them is there.
    pub(crate) fn instructions_before(&self, address: u64) -> Option<u64> {
        let mut at = self.start;
        for (index, size) in self.sizes.iter().enumerate() {
            if at == address {
                return Some(index as u64);
            }
            at += u64::from(*size);
        }
        None
    }
}

impl Trace {
    /// Reads the observer's file.
    ///
    /// # Errors
    /// That it is none, or ends too early.
    pub(crate) fn read(mut file: impl Read) -> Result<Self> {
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(invalid("is no trace"));
        }
        let mut blocks = Vec::new();
        for _ in 0..number(&mut file)? {
            blocks.push(block(&mut file)?);
        }
        // Their addresses tell tasks apart, which their indices do as well.
        let tasks = number(&mut file)?;
        for _ in 0..tasks {
            number(&mut file)?;
        }
        let _happened = number(&mut file)?;
        let mut events = Vec::new();
        for _ in 0..number(&mut file)? {
            let what = u32::from_le_bytes(octets(&mut file)?);
            let index = what & !IS_TASK;
            let (event, known) = match what & IS_TASK {
                0 => (Event::Executed(index), blocks.len() as u64),
                _ => (Event::SwitchedTo(index), tasks),
            };
            if u64::from(index) >= known {
                return Err(invalid("speaks of what it does not describe"));
            }
            events.push(event);
        }
        let marks = number(&mut file)?;
        Ok(Self {
            blocks,
            events,
            marks,
        })
    }
}

fn block(file: &mut impl Read) -> Result<Block> {
    let start = number(file)?;
    let [end] = octets(file)?;
    let end = BlockEnd::from_octet(end).ok_or_else(|| invalid("has a block of no known end"))?;
    let mut sizes = vec![0; usize::from(u16::from_le_bytes(octets(file)?))];
    file.read_exact(&mut sizes)?;
    let block = Block {
        start,
        end,
        sizes: sizes.into_boxed_slice(),
    };
    Ok(block.without_what_it_gave_up())
}

fn number(file: &mut impl Read) -> Result<u64> {
    octets(file).map(u64::from_le_bytes)
}

fn octets<const COUNT: usize>(file: &mut impl Read) -> Result<[u8; COUNT]> {
    let mut octets = [0; COUNT];
    file.read_exact(&mut octets)?;
    Ok(octets)
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// As in the observer.
const MAGIC: &[u8; 14] = b"rtorb trace 2\n";
const IS_TASK: u32 = 1 << 31;
/// Of x86-64, the smallest.
const PAGE_BYTES: u64 = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut octets = MAGIC.to_vec();
        octets.extend(1_u64.to_le_bytes());
        octets.extend(0x1000_u64.to_le_bytes());
        octets.extend([1, 2, 0, 3, 5]);
        octets.extend(1_u64.to_le_bytes());
        octets.extend(0xffff_8000_u64.to_le_bytes());
        octets.extend(7_u64.to_le_bytes());
        octets.extend(2_u64.to_le_bytes());
        octets.extend(0_u32.to_le_bytes());
        octets.extend(IS_TASK.to_le_bytes());
        octets.extend(9_u64.to_le_bytes());
        octets
    }

    #[test]
    fn a_trace_is_read() {
        let trace = Trace::read(written().as_slice()).unwrap();
        assert_eq!(trace.events, [Event::Executed(0), Event::SwitchedTo(0)]);
        assert_eq!(trace.marks, 9);
        let block = &trace.blocks[0];
        assert_eq!((block.start, block.end), (0x1000, BlockEnd::Call));
        assert_eq!((block.instructions(), block.next()), (2, 0x1008));
        assert_eq!(block.instructions_before(0x1003), Some(1));
        assert_eq!(block.instructions_before(0x1004), None);
    }

    #[test]
    fn an_instruction_that_crosses_a_page_is_not_of_the_block_before_it() {
        let block = |start, sizes: &[u8]| Block {
            start,
            end: BlockEnd::Call,
            sizes: sizes.into(),
        };
        let given_up = block(0x1ff7, &[4, 3, 5]).without_what_it_gave_up();
        assert_eq!(
            (given_up.instructions(), given_up.end),
            (2, BlockEnd::Other)
        );
        assert_eq!(given_up.next(), 0x1ffe);
        for kept in [block(0x1ffe, &[5]), block(0x1ff8, &[3, 5])] {
            assert_eq!(kept.clone().without_what_it_gave_up(), kept);
        }
    }

    #[test]
    fn a_trace_of_too_few_marks_is_empty_and_counts_them() {
        let mut octets = MAGIC.to_vec();
        octets.extend([0; 4 * size_of::<u64>()]);
        octets.extend(3_u64.to_le_bytes());
        let empty = Trace {
            marks: 3,
            ..Trace::default()
        };
        assert_eq!(Trace::read(octets.as_slice()).unwrap(), empty);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let whole = written();
        for length in 0..whole.len() {
            assert!(Trace::read(&whole[..length]).is_err(), "{length}");
        }
        let mut unknown = whole.clone();
        let last_event = unknown.len() - size_of::<u64>() - size_of::<u32>();
        unknown[last_event] = 9;
        assert!(Trace::read(unknown.as_slice()).is_err());
        assert!(Trace::read(&b"something else that is longer"[..]).is_err());
    }
}
