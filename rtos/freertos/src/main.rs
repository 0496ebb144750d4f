//! Serves the Cubit, and what the machine says of itself, on the serial line of an emulated Cortex-M3 under FreeRTOS.
#![no_std]
#![no_main]

extern crate alloc;

mod calls;
mod costs;
mod heap;
mod serial;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::panic::PanicInfo;
use cortex_m_semihosting::{debug, hprintln};
use freertos_in_rust::kernel::tasks::{uxTaskPriorityGet, vTaskPrioritySet};
use freertos_in_rust::sync::{TaskContext, TaskHandle};
use freertos_in_rust::types::portMAX_DELAY;

use heap::HEAP;
use rtorb::{CallPriority, Object, Server, SystemException, Tie};
use rtorb_embedded_cubit::cubit::Cubit;
use rtorb_embedded_cubit::guest::{Cost, Guest, GuestServant};
use rtorb_embedded_cubit::servant::{Cuber, KEY};
use serial::Serial;

/// The clock of the board's processor in QEMU.
#[unsafe(no_mangle)]
pub static FREERTOS_CONFIG_CPU_CLOCK_HZ: u32 = 25_000_000;

/// More than any message of the Cubit's tests with sequences of 1,021 structs.
pub const MESSAGE_OCTETS_MAX: usize = 32 << 10;

/// The serving task's own priority. The kernel has 0 to 4; 0 is that of the idle task.
const PRIORITY: u32 = 2;
const STACK_WORDS: usize = 4 << 10;

#[cortex_m_rt::entry]
fn main() -> ! {
    // SAFETY: nothing was allocated yet.
    unsafe { HEAP.begin() }
    // SAFETY: this is the start: no task and no scheduler runs.
    let context = unsafe { TaskContext::assume() };
    let task = TaskHandle::spawn(&context, b"serve", STACK_WORDS, PRIORITY, serve);
    assert!(task.is_ok(), "there is no memory for the task");
    freertos_in_rust::start_scheduler(context)
}

/// The serving task. It takes its memory at its beginning.
extern "C" fn serve(_: *mut c_void) {
    // SAFETY: this is a task.
    let context = unsafe { TaskContext::assume() };
    // First: the state of the kernel does not depend on the host yet.
    let costs = costs::measured(&context, PRIORITY).expect("there is memory for the partners");
    // SAFETY: this task runs once.
    let mut serial = unsafe { Serial::begin(0, portMAX_DELAY) };
    let cubit = Tie::<Cubit, _>::new(Cuber::new());
    let machine = Tie::<Guest, _>::new(Machine { costs });
    let objects = [
        Object {
            key: KEY,
            servant: &cubit,
        },
        Object {
            key: b"guest",
            servant: &machine,
        },
    ];
    let mut server = Box::new(Server::new(&objects, MESSAGE_OCTETS_MAX));
    loop {
        // What ends a connection is said to the peer; the next one is served.
        let _ = server.serve_next(&mut serial, &mut KernelPriority);
    }
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

/// The servant of the machine itself.
struct Machine {
    costs: Vec<Cost>,
}

impl GuestServant for Machine {
    fn heap_calls(&self) -> Result<u32, SystemException> {
        Ok(HEAP.calls())
    }

    fn heap_octets(&self) -> Result<u32, SystemException> {
        Ok(HEAP.used() as u32)
    }

    fn priority(&self) -> Result<u32, SystemException> {
        // SAFETY: a task calls this for itself.
        Ok(unsafe { uxTaskPriorityGet(core::ptr::null_mut()) })
    }

    fn kernel_costs(&self) -> Result<Vec<Cost>, SystemException> {
        Ok(self.costs.clone())
    }

    fn call_back(&self, key: &[u8]) -> Result<Vec<String>, SystemException> {
        // SAFETY: the serving task calls this.
        let context = unsafe { TaskContext::assume() };
        // SAFETY: the host asks for it once.
        let cubit = unsafe { calls::cubit_of_host(&context, key) };
        Ok(calls::faults(&cubit))
    }

    fn switch_off(&self) -> Result<(), SystemException> {
        debug::exit(debug::EXIT_SUCCESS);
        Ok(())
    }
}

/// The board's interrupts. The kernel handles its own three exceptions itself.
#[cortex_m_rt::exception]
unsafe fn DefaultHandler(number: i16) {
    assert!(
        serial::interrupted(number),
        "an interrupt that nobody wanted"
    );
}

#[panic_handler]
fn panic(reason: &PanicInfo<'_>) -> ! {
    hprintln!("{}", reason);
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}
