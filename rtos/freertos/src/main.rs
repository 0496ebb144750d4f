//! Serves the Cubit, and what the machine says of itself, on the serial line of an emulated Cortex-M3 under FreeRTOS.
#![no_std]
#![no_main]

extern crate alloc;

mod calls;
mod costs;
mod serial;

use core::ffi::c_void;
use core::panic::PanicInfo;
use freertos_in_rust::kernel::tasks::{uxTaskPriorityGet, vTaskPrioritySet};
use freertos_in_rust::sync::{TaskContext, TaskHandle};
use freertos_in_rust::types::portMAX_DELAY;

use rtorb_board::heap::HEAP;
use rtorb_board::machine::{self, Kernel};
use rtorb_board::{CLOCK_HZ, Report, Request, interrupt_load};
use rtorb_embedded::CallPriority;
use rtorb_embedded_cubit::cubit::Cubit;
use serial::Serial;

/// The clock of the board's processor in QEMU.
#[unsafe(no_mangle)]
pub static FREERTOS_CONFIG_CPU_CLOCK_HZ: u32 = CLOCK_HZ;

/// The first task's own priority. The kernel has 0 to 4; 0 is that of the idle task.
const PRIORITY: u32 = 2;
const STACK_WORDS: usize = 4 << 10;
/// Of interrupts: below the priority from which they may call the kernel.
const IRQ_PRIORITY: u8 = 0xe0;

/// The kernel's name and release.
const RELEASE: &str = "FreeRTOS (freertos-in-rust 0.3.0), Cortex-M3";

#[cortex_m_rt::entry]
fn main() -> ! {
    // SAFETY: nothing was allocated yet.
    unsafe { HEAP.begin() }
    // SAFETY: this is the start: no task and no scheduler runs.
    let context = unsafe { TaskContext::assume() };
    let task = TaskHandle::spawn(&context, b"first", STACK_WORDS, PRIORITY, first);
    assert!(task.is_ok(), "there is no memory for the task");
    freertos_in_rust::start_scheduler(context)
}

/// The first task does what the host asks for.
extern "C" fn first(_: *mut c_void) {
    match Request::read() {
        Request::Serve => serve(),
        Request::Measure { rounds } => {
            // SAFETY: this is a task.
            let context = unsafe { TaskContext::assume() };
            let mut report = Report::begin(RELEASE, "priority");
            let measured = costs::measure(&context, rounds, &mut report);
            measured.expect("there is memory for the partners");
            report.end();
            rtorb_board::switch_off();
        }
    }
}

/// Serves for ever, on the first serial line.
fn serve() -> ! {
    // SAFETY: the first task calls this, once.
    let mut serial = unsafe { Serial::begin(0, portMAX_DELAY) };
    machine::serve(FreeRtos, &mut serial, &mut KernelPriority)
}

/// Gives the serving task the priority of the call.
struct KernelPriority;

impl CallPriority for KernelPriority {
    fn enter(&mut self, priority: i16) {
        set_priority(kernel_priority(priority));
    }

    fn leave(&mut self) {
        set_priority(PRIORITY);
    }
}

/// CORBA's 0 to 32,767 are spread over the kernel's 1 to 4, as the linear mapping of the full ORB does.
fn kernel_priority(priority: i16) -> u32 {
    const LEAST: u32 = 1;
    const LEVELS: u32 = 4;
    LEAST + u32::from(priority.unsigned_abs()) * LEVELS / 32_768
}

fn set_priority(priority: u32) {
    // SAFETY: a task calls this for itself, and the priority is one of the kernel's.
    unsafe { vTaskPrioritySet(core::ptr::null_mut(), priority) }
}

/// The kernel, as the object that is the machine asks it.
struct FreeRtos;

impl Kernel for FreeRtos {
    fn priority(&self) -> u32 {
        // SAFETY: a task calls this for itself.
        unsafe { uxTaskPriorityGet(core::ptr::null_mut()) }
    }

    fn cubit_of_host(&self, key: &[u8]) -> Cubit {
        // SAFETY: the serving task calls this.
        let context = unsafe { TaskContext::assume() };
        // SAFETY: the host asks for it once.
        unsafe { calls::cubit_of_host(&context, key) }
    }
}

/// The board's interrupts. The kernel handles its own three exceptions itself.
#[cortex_m_rt::exception]
unsafe fn DefaultHandler(number: i16) {
    if number == i16::from(interrupt_load::IRQ) {
        return interrupt_load::interrupted();
    }
    assert!(
        serial::interrupted(number),
        "an interrupt that nobody wanted"
    );
}

#[panic_handler]
fn panic(reason: &PanicInfo<'_>) -> ! {
    rtorb_board::fail(reason)
}
