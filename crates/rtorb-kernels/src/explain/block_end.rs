//! How a block of x86-64 instructions ends, by the octets of its last one. The emulator's observer includes this file.

/// What hands the CPU on when a block is done. As an octet, it is in the observer's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockEnd {
    /// The next instruction, or a jump: no stack of calls is changed.
    Other = 0,
    /// Calls a function; the instruction behind it is where that returns to.
    Call = 1,
    /// Returns from a function.
    Return = 2,
    /// Enters the kernel.
    SystemCall = 3,
    /// Goes back to a program.
    SystemReturn = 4,
    /// Goes back to what was interrupted.
    InterruptReturn = 5,
    /// Waits for an interrupt: the CPU sleeps, and time goes on without instructions.
    Halt = 6,
}

impl BlockEnd {
    /// By the last instruction of the block.
    #[allow(dead_code, reason = "only the observer decodes")]
    pub(crate) fn of(instruction: &[u8]) -> Self {
        match without_prefixes(instruction) {
            [0xe8, ..] => Self::Call,
            // The second operand field of FF says what it does: 2 calls near, 3 calls far.
            [0xff, operand, ..] if matches!(operand >> 3 & 7, 2 | 3) => Self::Call,
            [0xc2 | 0xc3 | 0xca | 0xcb, ..] => Self::Return,
            [0xcf, ..] => Self::InterruptReturn,
            [0x0f, 0x05 | 0x34, ..] => Self::SystemCall,
            [0x0f, 0x07 | 0x35, ..] => Self::SystemReturn,
            [0xf4, ..] => Self::Halt,
            _ => Self::Other,
        }
    }

    /// The end that this octet stands for.
    #[allow(dead_code, reason = "the observer writes them and does not read them")]
    pub(crate) fn from_octet(octet: u8) -> Option<Self> {
        ALL.into_iter().find(|end| *end as u8 == octet)
    }
}

/// Whether the instruction loads the stack pointer from memory at a register and a displacement: what a kernel does once when it
/// switches from one task to another.
#[allow(dead_code, reason = "only the observer asks")]
pub(crate) fn loads_stack_pointer(instruction: &[u8]) -> bool {
    match instruction {
        // A 64-bit move to a register; mode 1 or 2 is a displacement, register 4 the stack pointer.
        [0x48 | 0x49, 0x8b, operand, ..] => matches!(operand >> 6, 1 | 2) && operand >> 3 & 7 == 4,
        _ => false,
    }
}

/// Operand size, address size, repetition, segment, lock, and the 64-bit extension.
fn without_prefixes(mut instruction: &[u8]) -> &[u8] {
    while let [
        0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x40..=0x4f,
        rest @ ..,
    ] = instruction
    {
        instruction = rest;
    }
    instruction
}

const ALL: [BlockEnd; 7] = [
    BlockEnd::Other,
    BlockEnd::Call,
    BlockEnd::Return,
    BlockEnd::SystemCall,
    BlockEnd::SystemReturn,
    BlockEnd::InterruptReturn,
    BlockEnd::Halt,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_instruction_says_how_a_block_ends() {
        let ends: [(&[u8], BlockEnd); 19] = [
            (&[0xe8, 1, 2, 3, 4], BlockEnd::Call),
            // call *%rax; call *0x10(%rdx); call *%r11; call *0x0(%rip) with the segment prefix that the kernel pads with.
            (&[0xff, 0xd0], BlockEnd::Call),
            (&[0xff, 0x52, 0x10], BlockEnd::Call),
            (&[0x41, 0xff, 0xd3], BlockEnd::Call),
            (&[0x2e, 0xff, 0x15, 0, 0, 0, 0], BlockEnd::Call),
            (&[0xff, 0x5d, 0x10], BlockEnd::Call),
            // jmp *%rax, push 0x8(%rax), inc (%rax).
            (&[0xff, 0xe0], BlockEnd::Other),
            (&[0xff, 0x70, 0x08], BlockEnd::Other),
            (&[0xff, 0x00], BlockEnd::Other),
            (&[0xc3], BlockEnd::Return),
            (&[0xf3, 0xc3], BlockEnd::Return),
            (&[0xc2, 8, 0], BlockEnd::Return),
            (&[0x48, 0xcf], BlockEnd::InterruptReturn),
            (&[0x0f, 0x05], BlockEnd::SystemCall),
            (&[0x48, 0x0f, 0x07], BlockEnd::SystemReturn),
            (&[0xf4], BlockEnd::Halt),
            // jmp, je with a long displacement, nothing at all.
            (&[0xe9, 1, 2, 3, 4], BlockEnd::Other),
            (&[0x0f, 0x84, 1, 2, 3, 4], BlockEnd::Other),
            (&[], BlockEnd::Other),
        ];
        for (instruction, end) in ends {
            assert_eq!(BlockEnd::of(instruction), end, "{instruction:x?}");
        }
    }

    #[test]
    fn an_end_is_the_same_after_it_was_written() {
        for end in ALL {
            assert_eq!(BlockEnd::from_octet(end as u8), Some(end));
        }
        assert_eq!(BlockEnd::from_octet(7), None);
    }

    #[test]
    fn the_load_of_another_tasks_stack_pointer_is_found() {
        // mov 0x1518(%rsi),%rsp and mov 0x18(%rsi),%rsp; not the store before it, a register, nor another register's load.
        assert!(loads_stack_pointer(&[0x48, 0x8b, 0xa6, 0x18, 0x15, 0, 0]));
        assert!(loads_stack_pointer(&[0x48, 0x8b, 0x66, 0x18]));
        assert!(!loads_stack_pointer(&[0x48, 0x89, 0xa7, 0x18, 0x15, 0, 0]));
        assert!(!loads_stack_pointer(&[0x48, 0x8b, 0xe0]));
        assert!(!loads_stack_pointer(&[0x48, 0x8b, 0x9e, 0x88, 9, 0, 0]));
    }
}
