//! Serves calls that last long with one thread: another thread, which moves all axes, answers each call when its axis has arrived.
#![forbid(unsafe_code)]
use anyhow::Context;
use rtorb::{
    Collocation, ConnectionStrategy, Deferring, DispatchStrategy, Orb, Responder, WaitStrategy,
};
use rtorb_examples::Serving;
use std::io::{Write as _, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

rtorb::include_idl!("axis");
use axis::{Axis, AxisDeferredServant};

/// The time that an axis needs for a step.
const STEP: Duration = Duration::from_millis(1);
/// Orders that may wait for the thread that moves the axes.
const ORDERS_MAX: usize = 16;

/// An axis that moves, and the reply that its caller waits for.
struct Order {
    at: i32,
    target: i32,
    responder: Responder<i32>,
}

struct Drive(SyncSender<Order>);

impl AxisDeferredServant for Drive {
    fn move_to(&self, responder: Responder<i32>, target: i32) {
        let order = Order {
            at: 0,
            target,
            responder,
        };
        // If the queue is full, the responder is dropped, and its caller gets NO_RESPONSE.
        let _ = self.0.try_send(order);
    }
}

/// Moves all axes one step at a time, and answers the call of each that has arrived, until the servants are gone.
fn drive(orders: &Receiver<Order>) {
    let mut moving: Vec<Order> = Vec::with_capacity(ORDERS_MAX);
    loop {
        match orders.recv_timeout(STEP) {
            Ok(order) => moving.push(order),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        moving.retain(|order| !order.responder.is_cancelled());
        for order in &mut moving {
            order.at += (order.target - order.at).signum();
        }
        for order in moving.extract_if(.., |order| order.at == order.target) {
            order.responder.reply(order.at);
        }
    }
}

fn main() -> anyhow::Result<()> {
    let (sender, orders) = sync_channel(ORDERS_MAX);
    let driving = thread::spawn(move || drive(&orders));
    let server = Orb::builder()
        .dispatch(DispatchStrategy::Reactive)
        .collocation(Collocation::Transport)
        .build()?;
    let axis: Axis = server.root_poa()?.activate(Deferring(Drive(sender)))?;
    let serving = Serving::start(&server);
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let client = Orb::builder().connection(shared).build()?;
    let axis: Axis = client.string_to_reference(&axis.to_string())?;
    let calls = [30, 20, 10].map(|target| axis.start().move_to(target));
    let mut arrived = Vec::new();
    for call in calls {
        arrived.push(call.wait()?);
    }
    writeln!(
        stdout(),
        "one thread served the axes that moved to {arrived:?} at the same time"
    )?;
    serving.end()?;
    driving.join().ok().context("the axes stopped")
}
