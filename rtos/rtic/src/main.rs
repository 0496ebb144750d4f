//! Serves the Cubit, and measures its kernel, on an emulated Cortex-M3 with RTIC: static tasks, resources with priority ceilings, one
//! stack.
#![no_std]
#![no_main]

extern crate alloc;

mod calls;
mod device;

// The start of the program and its table of vectors.
use cortex_m_rt as _;

use core::future::poll_fn;
use core::panic::PanicInfo;
use core::task::Poll;
use rtic_monotonics::systick::prelude::*;
use rtorb_board::machine::Kernel;
use rtorb_board::sampling::HandOver;
use rtorb_embedded_cubit::cubit::Cubit;

// A thousand ticks a second, as FreeRTOS has them.
systick_monotonic!(Mono, 1_000);

/// The kernel's name and release.
const RELEASE: &str = "RTIC 2.4, Cortex-M3";

/// Octets of a message, as os/services has them.
const MESSAGE_BYTES: usize = 64;
type Message = [u8; MESSAGE_BYTES];

/// From the release of the resource until the more urgent task has it.
static RELEASED: HandOver = HandOver::new();

#[rtic::app(device = crate::device, peripherals = false, dispatchers = [SPARE29, SPARE30, SPARE31])]
mod app {
    use super::*;
    use core::sync::atomic::{AtomicBool, Ordering};
    use rtic_sync::channel::{Receiver, Sender};
    use rtic_sync::make_channel;
    use rtorb_board::heap::HEAP;
    use rtorb_board::sampling::{self, WAKEUPS, less, timed};
    use rtorb_board::ticks::Ticks;
    use rtorb_board::uart::{Polled, UARTS};
    use rtorb_board::{CLOCK_HZ, Report, Request, interrupt_load, machine, timer};
    use rtorb_embedded::{FixedPriority, Server};

    /// Lets the partner of the same priority yield.
    static YIELDS: AtomicBool = AtomicBool::new(false);

    #[shared]
    struct Shared {
        resource: u32,
    }

    #[local]
    struct Local {
        server: Option<Server<'static>>,
    }

    #[init]
    fn init(context: init::Context) -> (Shared, Local) {
        // SAFETY: nothing was allocated yet.
        unsafe { HEAP.begin() }
        let request = Request::read();
        if let Request::Measure { rounds } = request {
            Mono::start(context.core.SYST, CLOCK_HZ);
            let started = measure::spawn(rounds);
            started.expect("it is not running");
        }
        let server = matches!(request, Request::Measure { .. }).then(calls::server);
        (Shared { resource: 0 }, Local { server })
    }

    /// Where no task runs, the host's calls are served.
    #[idle]
    fn idle(_: idle::Context) -> ! {
        if Request::read() != Request::Serve {
            loop {
                cortex_m::asm::wfi();
            }
        }
        UARTS[0].begin(false);
        machine::serve(Rtic, &mut Polled(&UARTS[0]), &mut FixedPriority)
    }

    #[task(priority = 1, shared = [resource])]
    async fn measure(mut context: measure::Context, rounds: u32) {
        let (requests, answered) = make_channel!(Message, 1);
        let (replies, mut received) = make_channel!(Message, 1);
        let mut requests = requests;
        answer_messages::spawn(answered, replies).expect("it is not running");
        let cubit = calls::cubit_of_task(run_server);
        let mut report = Report::begin(RELEASE, "ceiling");
        absent(&mut report);
        timer::begin();
        let mut ticks = Ticks::running();
        for round in 0..rounds {
            ticks.stop();
            YIELDS.store(true, Ordering::Relaxed);
            yield_in_turn::spawn().expect("it is not running");
            let two = sampling::of_async(async || {
                let begin = timer::now();
                yield_now().await;
                timer::since(begin)
            });
            report.samples(
                round,
                "yield",
                &two.await.map(|instructions| instructions / 2),
            );
            YIELDS.store(false, Ordering::Relaxed);
            yield_now().await;
            let alone =
                sampling::of(|| timed(|| context.shared.resource.lock(|count| *count += 1)));
            report.samples(round, "mutex", &alone);
            let release = sampling::of(|| {
                context.shared.resource.lock(|_| RELEASED.begin());
                RELEASED.end();
                RELEASED.counts()
            });
            let handed = sampling::of(|| {
                context.shared.resource.lock(|_| {
                    take_resource::spawn().expect("it has ended");
                    RELEASED.begin();
                });
                RELEASED.counts()
            });
            report.samples(round, "synchronized", &less(handed, release));
            let message = sampling::of_async(async || {
                let begin = timer::now();
                let sent = requests.send([7; MESSAGE_BYTES]).await;
                let reply = received.recv().await;
                let counts = timer::since(begin);
                assert!(sent.is_ok() && reply.is_ok(), "the partner is there");
                counts
            });
            report.samples(round, "message", &message.await);
            report.calls(round, &cubit);
            report.samples(round, "tick", &ticks.cost());
            report.samples(round, "wakeup", &lateness(&ticks).await);
            // SAFETY: RTIC's task serves it, and calls nothing of the kernel. It is more urgent than all others.
            unsafe { interrupt_load::begin(round, LOAD_PRIORITY) }
            report.samples(round, "wakeup_under_interrupts", &lateness(&ticks).await);
            interrupt_load::end();
        }
        report.end();
        rtorb_board::switch_off();
    }

    /// Of the other tasks' operations, those that this kernel does not have.
    fn absent(report: &mut Report) {
        for (operation, why) in [
            (
                "suspend_resume",
                "no task suspends another; a task waits for what it awaits",
            ),
            (
                "inheritance",
                "the priority ceiling lets no task begin that would have to wait for a resource",
            ),
            (
                "semaphore",
                "tasks wait for messages and signals; resources have ceilings",
            ),
        ] {
            report.without(operation, why);
        }
    }

    async fn lateness(ticks: &Ticks) -> [u32; WAKEUPS] {
        let mut late = [0; WAKEUPS];
        for one in &mut late {
            Mono::delay(1.millis()).await;
            *one = ticks.since_last();
        }
        late
    }

    #[task(priority = 1)]
    async fn yield_in_turn(_: yield_in_turn::Context) {
        while YIELDS.load(Ordering::Relaxed) {
            yield_now().await;
        }
    }

    #[task(priority = 2, shared = [resource])]
    async fn take_resource(mut context: take_resource::Context) {
        context.shared.resource.lock(|_| RELEASED.end());
    }

    #[task(priority = 2)]
    async fn answer_messages(
        _: answer_messages::Context,
        mut requests: Receiver<'static, Message, 1>,
        mut replies: Sender<'static, Message, 1>,
    ) {
        while let Ok(request) = requests.recv().await {
            let sent = replies.send(request).await;
            assert!(sent.is_ok(), "the measuring task is there");
        }
    }

    #[task(priority = 2, local = [server])]
    async fn serve_calls(context: serve_calls::Context) {
        if let Some(server) = context.local.server {
            calls::serve(server);
        }
    }

    fn run_server() {
        serve_calls::spawn().expect("it has ended");
        // It runs before the next instruction.
        cortex_m::asm::isb();
    }

    #[task(binds = TIMER1, priority = 3)]
    fn load(_: load::Context) {
        interrupt_load::interrupted();
    }
}

/// The hardware priority of RTIC's priority 3, the most urgent one that is used.
const LOAD_PRIORITY: u8 = ((1 << device::NVIC_PRIO_BITS) - 3) << (8 - device::NVIC_PRIO_BITS);

/// Lets the other tasks of the same priority run.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The kernel, as the object that is the machine asks it.
struct Rtic;

impl Kernel for Rtic {
    fn priority(&self) -> u32 {
        // Where no task runs.
        0
    }

    fn cubit_of_host(&self, key: &[u8]) -> Cubit {
        calls::cubit_of_host(key)
    }
}

#[panic_handler]
fn panic(reason: &PanicInfo<'_>) -> ! {
    rtorb_board::fail(reason)
}
