//! The emulator's observer: a plugin of QEMU that keeps the blocks of instructions that were executed last, and writes them down
//! when the guest has come to one address so many times. It sees, and changes nothing: the guest's run is the same without it.
//!
//! The build script of rtorb-kernels compiles this file by itself, without any dependency, for the host that the emulator runs on.
//! What it writes, `src/explain/trace.rs` reads. The functions of QEMU that are called here are those of its plugin interface,
//! docs/devel/tcg-plugins; the emulator has one CPU, so that it never calls back twice at a time.

#[path = "../src/explain/block_end.rs"]
mod block_end;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use block_end::{BlockEnd, loads_stack_pointer};

/// The version of the interface that QEMU checks before it loads this. Whoever hands the file out sets it to one that the QEMU at
/// hand has: what is used here is the same in all of them, except [`bytes_of`].
#[unsafe(no_mangle)]
#[used]
#[allow(non_upper_case_globals, reason = "QEMU looks for this name")]
pub static qemu_plugin_version: c_int = 1;

/// QEMU's entry: begins to observe; an answer other than 0 makes QEMU end.
///
/// # Safety
/// QEMU calls it as its interface says: `info` points to its description of itself, and `arguments` to `count` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU's description lives during this call.
    let info = unsafe { &*info };
    let mut texts = Vec::new();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: there are `count` pointers.
        let argument = unsafe { *arguments.add(index) };
        // SAFETY: each is to a string that ends with a zero and that lives as long as this plugin.
        texts.push(unsafe { CStr::from_ptr(argument) }.to_string_lossy());
    }
    let observer = match Observer::new(info, texts.iter().map(AsRef::as_ref)) {
        Ok(observer) => observer,
        Err(why) => {
            eprintln!("rtorb observer: {why}");
            return 1;
        }
    };
    if OBSERVER.set(observer).is_err() {
        eprintln!("rtorb observer: is loaded twice");
        return 1;
    }
    // SAFETY: `translated` has the form of such a callback, and is there as long as this plugin.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
    // SAFETY: so does `ended`, and it uses no data.
    unsafe { qemu_plugin_register_atexit_cb(id, ended, std::ptr::null_mut()) };
    0
}

/// A block was translated: it is described once, and asks to be told whenever it is executed.
extern "C" fn translated(_id: u64, block: *mut Block) {
    let Some(observer) = OBSERVER.get() else {
        return;
    };
    // SAFETY: QEMU hands over a block that lives during this call, here and below.
    let start = unsafe { qemu_plugin_tb_vaddr(block) };
    // SAFETY: as above.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    if start == observer.address {
        return await_mark(block, count);
    }
    let mut sizes = Vec::with_capacity(count);
    let mut end = BlockEnd::Other;
    for index in 0..count {
        // SAFETY: there are `count` instructions in the block.
        let instruction = unsafe { qemu_plugin_tb_get_insn(block, index) };
        let (octets, size) = bytes_of(instruction, observer.copies_bytes);
        let octets = &octets[..size];
        sizes.push(u8::try_from(size).unwrap_or(u8::MAX));
        end = BlockEnd::of(octets);
        if observer.is_switch(start) && loads_stack_pointer(octets) {
            // SAFETY: `switched` has the form of such a callback, and it uses no register.
            unsafe {
                qemu_plugin_register_vcpu_mem_cb(
                    instruction,
                    switched,
                    NO_REGISTERS,
                    ACCESSES,
                    std::ptr::null_mut(),
                );
            }
        }
    }
    let Some(index) = observer.describe(start, end, &sizes) else {
        return;
    };
    // SAFETY: `executed` has the form of such a callback, and what it is given is a number, which it does not follow.
    unsafe {
        qemu_plugin_register_vcpu_tb_exec_cb(block, executed, NO_REGISTERS, index as *mut c_void);
    }
}

/// The block is where the counted address begins. Its last instruction is counted: an earlier one may need a page of memory that is
/// not there, and then the block is executed twice for one call.
fn await_mark(block: *mut Block, count: usize) {
    // SAFETY: the block is being translated, and has `count` instructions, of which there is one at least.
    let last = unsafe { qemu_plugin_tb_get_insn(block, count - 1) };
    // SAFETY: `marked` has the form of such a callback, and it uses no register.
    unsafe {
        qemu_plugin_register_vcpu_insn_exec_cb(last, marked, NO_REGISTERS, std::ptr::null_mut());
    }
}

/// A block is executed; which one was said when it was translated.
extern "C" fn executed(_cpu: c_uint, index: *mut c_void) {
    if let Some(observer) = OBSERVER.get() {
        observer.keep(index as usize as u32);
    }
}

/// The CPU goes to another task: the address that its stack pointer is read from is another one for each.
extern "C" fn switched(_cpu: c_uint, _access: u32, address: u64, _unused: *mut c_void) {
    if let Some(observer) = OBSERVER.get() {
        observer.switch_to(address);
    }
}

/// The address that is counted is come to.
extern "C" fn marked(_cpu: c_uint, _unused: *mut c_void) {
    if let Some(observer) = OBSERVER.get() {
        observer.mark();
    }
}

/// The machine is switched off.
extern "C" fn ended(_id: u64, _unused: *mut c_void) {
    if let Some(observer) = OBSERVER.get() {
        observer.end();
    }
}

/// The octets of an instruction, and how many they are.
fn bytes_of(instruction: *mut Instruction, copies: bool) -> ([u8; INSTRUCTION_MAX], usize) {
    let mut octets = [0; INSTRUCTION_MAX];
    // SAFETY: the instruction is of the block that is being translated, and lives as long as that call.
    let size = unsafe { qemu_plugin_insn_size(instruction) }.min(INSTRUCTION_MAX);
    let function = qemu_plugin_insn_data as *const ();
    if copies {
        // SAFETY: from version 3 on, QEMU's function has this form.
        let copy: CopyOctets = unsafe { std::mem::transmute(function) };
        // SAFETY: there is room for `size` octets.
        unsafe { copy(instruction, octets.as_mut_ptr().cast(), size) };
    } else {
        // SAFETY: up to version 2, QEMU's function has this form.
        let point: PointToOctets = unsafe { std::mem::transmute(function) };
        // SAFETY: the instruction lives, as above.
        let from: *const u8 = unsafe { point(instruction) }.cast();
        // SAFETY: QEMU has `size` octets of the instruction there, and they are not in `octets`.
        unsafe { std::ptr::copy_nonoverlapping(from, octets.as_mut_ptr(), size) };
    }
    (octets, size)
}

/// What is observed, and what of it is kept.
struct Observer {
    /// How often this address is come to is counted,
    address: u64,
    /// and when it is so many times, it is written
    count: u64,
    /// to this file.
    file: PathBuf,
    /// Where the kernel's function that switches tasks begins.
    switch: u64,
    /// Whether this QEMU copies the octets of an instruction.
    copies_bytes: bool,
    /// The blocks that were translated.
    blocks: Mutex<Blocks>,
    /// The tasks that were switched to, each by an address of its own.
    tasks: Mutex<Vec<u64>>,
    /// What happened last: a block by its index, or [`IS_TASK`] and a task by its index.
    ring: Box<[AtomicU32]>,
    /// How much has happened.
    happened: AtomicU64,
    /// How often the address was come to.
    marks: AtomicU64,
    /// Whether it is not written yet.
    is_recording: AtomicBool,
    /// Whether the address was come to so many times.
    is_reached: AtomicBool,
}

/// Descriptions of blocks, one behind the other.
#[derive(Default)]
struct Blocks {
    starts: Vec<u64>,
    ends: Vec<BlockEnd>,
    /// Where in `sizes` the first instruction of each is.
    first_sizes: Vec<usize>,
    /// The octets of each instruction of each block.
    sizes: Vec<u8>,
}

impl Observer {
    fn new<'a>(info: &Info, arguments: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        if !info.is_system {
            return Err("observes whole machines only".to_owned());
        }
        let (mut address, mut count, mut switch, mut file) = (None, None, None, None);
        for argument in arguments {
            let number = |text: &str| text.parse().map_err(|_| format!("{argument}: no number"));
            match argument.split_once('=') {
                Some(("addr", text)) => address = Some(number(text)?),
                Some(("count", text)) => count = Some(number(text)?),
                Some(("switch", text)) => switch = Some(number(text)?),
                Some(("out", text)) => file = Some(PathBuf::from(text)),
                _ => return Err(format!("{argument}: is not known")),
            }
        }
        let missing = "needs addr, count, switch and out";
        Ok(Self {
            address: address.ok_or(missing)?,
            count: count.ok_or(missing)?,
            file: file.ok_or(missing)?,
            switch: switch.ok_or(missing)?,
            copies_bytes: info.version >= COPIES_BYTES,
            blocks: Mutex::default(),
            tasks: Mutex::default(),
            ring: (0..RING).map(|_| AtomicU32::new(0)).collect(),
            happened: AtomicU64::new(0),
            marks: AtomicU64::new(0),
            is_recording: AtomicBool::new(true),
            is_reached: AtomicBool::new(false),
        })
    }

    fn is_switch(&self, start: u64) -> bool {
        (self.switch..self.switch + SWITCH_MAX).contains(&start)
    }

    /// The index of the block; `None` when it will not be needed, or when there are too many.
    fn describe(&self, start: u64, end: BlockEnd, sizes: &[u8]) -> Option<usize> {
        if !self.is_recording.load(Relaxed) {
            return None;
        }
        let mut blocks = self.blocks.lock().ok()?;
        let index = blocks.starts.len();
        if index >= BLOCKS_MAX {
            eprintln!("rtorb observer: more than {BLOCKS_MAX} blocks were translated");
            self.is_recording.store(false, Relaxed);
            return None;
        }
        let first_size = blocks.sizes.len();
        blocks.starts.push(start);
        blocks.ends.push(end);
        blocks.first_sizes.push(first_size);
        blocks.sizes.extend_from_slice(sizes);
        Some(index)
    }

    fn keep(&self, what: u32) {
        if self.is_recording.load(Relaxed) {
            let happened = self.happened.load(Relaxed);
            self.ring[happened as usize % RING].store(what, Relaxed);
            self.happened.store(happened + 1, Relaxed);
        }
    }

    fn switch_to(&self, address: u64) {
        if !self.is_recording.load(Relaxed) {
            return;
        }
        let Ok(mut tasks) = self.tasks.lock() else {
            return;
        };
        let known = tasks.iter().position(|task| *task == address);
        let index = known.unwrap_or_else(|| {
            tasks.push(address);
            tasks.len() - 1
        });
        drop(tasks);
        self.keep(IS_TASK | index as u32);
    }

    fn mark(&self) {
        let marks = self.marks.load(Relaxed) + 1;
        self.marks.store(marks, Relaxed);
        if marks == self.count && self.is_recording.swap(false, Relaxed) {
            self.is_reached.store(true, Relaxed);
            self.complain_of(self.write());
        }
    }

    /// Writes how often the address was come to in all, behind the trace; behind an empty one if that was too seldom.
    fn end(&self) {
        if !self.is_reached.load(Relaxed) {
            self.complain_of(self.write_empty());
        }
        self.complain_of(self.write_marks());
    }

    fn complain_of(&self, written: io::Result<()>) {
        if let Err(error) = written {
            eprintln!("rtorb observer: {}: {error}", self.file.display());
        }
    }

    fn write_marks(&self) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.file)?;
        file.write_all(&self.marks.load(Relaxed).to_le_bytes())
    }

    fn write_empty(&self) -> io::Result<()> {
        let mut file = File::create(&self.file)?;
        file.write_all(MAGIC)?;
        // Of blocks, tasks, what happened, and what of it is here.
        file.write_all(&[0; 4 * size_of::<u64>()])
    }

    /// The form that `kernels/explain/trace.rs` reads: numbers have their least octet first.
    fn write(&self) -> io::Result<()> {
        let poisoned = |_| io::Error::other("a callback panicked");
        let blocks = self.blocks.lock().map_err(|_| poisoned(()))?;
        let tasks = self.tasks.lock().map_err(|_| poisoned(()))?;
        let mut file = BufWriter::new(File::create(&self.file)?);
        file.write_all(MAGIC)?;
        file.write_all(&(blocks.starts.len() as u64).to_le_bytes())?;
        for (index, start) in blocks.starts.iter().enumerate() {
            let first = blocks.first_sizes[index];
            let next = blocks.first_sizes.get(index + 1);
            let sizes = &blocks.sizes[first..next.copied().unwrap_or(blocks.sizes.len())];
            file.write_all(&start.to_le_bytes())?;
            file.write_all(&[blocks.ends[index] as u8])?;
            file.write_all(&(sizes.len() as u16).to_le_bytes())?;
            file.write_all(sizes)?;
        }
        file.write_all(&(tasks.len() as u64).to_le_bytes())?;
        for task in tasks.iter() {
            file.write_all(&task.to_le_bytes())?;
        }
        let happened = self.happened.load(Relaxed);
        let kept = happened.min(RING as u64);
        file.write_all(&happened.to_le_bytes())?;
        file.write_all(&kept.to_le_bytes())?;
        for at in happened - kept..happened {
            let what = self.ring[at as usize % RING].load(Relaxed);
            file.write_all(&what.to_le_bytes())?;
        }
        file.flush()
    }
}

/// QEMU's description of itself; more is behind it that is not used here.
#[repr(C)]
pub struct Info {
    target: *const c_char,
    version_min: c_int,
    version: c_int,
    is_system: bool,
}

/// A block of QEMU's.
#[repr(C)]
pub struct Block {
    _opaque: [u8; 0],
}

/// An instruction of QEMU's.
#[repr(C)]
pub struct Instruction {
    _opaque: [u8; 0],
}

type CopyOctets = unsafe extern "C" fn(*const Instruction, *mut c_void, usize) -> usize;
type PointToOctets = unsafe extern "C" fn(*const Instruction) -> *const c_void;
type Translated = extern "C" fn(u64, *mut Block);
type Executed = extern "C" fn(c_uint, *mut c_void);
type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);
type Ended = extern "C" fn(u64, *mut c_void);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: Translated);
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        callback: Executed,
        registers: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: Executed,
        registers: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: Accessed,
        registers: c_int,
        access: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_atexit_cb(id: u64, callback: Ended, data: *mut c_void);
    fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    /// Has another form from [`COPIES_BYTES`] on: called through the one that this QEMU has.
    fn qemu_plugin_insn_data();
}

static OBSERVER: OnceLock<Observer> = OnceLock::new();

const MAGIC: &[u8] = b"rtorb trace 2\n";
/// The version of the interface from which on QEMU copies octets instead of pointing to them.
const COPIES_BYTES: c_int = 3;
const NO_REGISTERS: c_int = 0;
/// Reads and writes: QEMU 7.2 tells of no read where reads alone are asked for.
const ACCESSES: c_int = 3;
/// Longest instruction of the architecture, in octets.
const INSTRUCTION_MAX: usize = 15;
/// `__switch_to_asm` is shorter, in octets.
const SWITCH_MAX: u64 = 256;
/// Some ten million instructions: more than the longest sample, and 16 MiB.
const RING: usize = 1 << 22;
/// Some hundred times as many as a guest translates in a few seconds.
const BLOCKS_MAX: usize = 1 << 22;
const IS_TASK: u32 = 1 << 31;
