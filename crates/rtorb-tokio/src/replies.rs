//! Reading of replies by a task.

use rtorb::{Orb, ReplyDriver};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;

/// The descriptor of a driver, as tokio registers it.
struct Readable(ReplyDriver);

impl AsRawFd for Readable {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Prepares the reading of the replies of an ORB's started calls. The future that it returns reads them, until it is dropped or the runtime
/// ends:
///
/// ```no_run
/// use rtorb::{ConnectionStrategy, Orb, WaitStrategy};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let shared = ConnectionStrategy::Multiplexed { wait: WaitStrategy::LeaderFollowers };
/// let orb = Orb::builder().connection(shared).build()?;
/// tokio::spawn(rtorb_tokio::read_replies(&orb)?);
/// let valve = orb.string_to_object("corbaloc:iiop:plant:2809/Valve")?;
/// let set = valve.start("setting", |w| w.primitive(7_i32), |r| r.primitive::<i32>());
/// println!("{}", set.await?);
/// # Ok(())
/// # }
/// ```
///
/// One such task reads for all tasks of the process, whatever runtime they belong to, and the thread that polls it reads. Deadlines do not
/// depend on it: the watchdog of the ORB ends late calls. With wait strategies `reactor` and `connection_thread`, threads of the ORB read, and
/// this only tells reply handlers.
///
/// # Errors
/// INV_POLICY, within [`io::Error`], if the strategies of the ORB do not support started calls. The system's error if the descriptor cannot
/// be registered, as when such a future of the ORB exists in this runtime already.
///
/// # Panics
/// Outside of a tokio runtime with its I/O enabled.
pub fn read_replies(orb: &Orb) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    let driver = orb.reply_driver().map_err(io::Error::other)?;
    let readable = registered(Readable(driver))?;
    Ok(async move {
        loop {
            // Before the first wait: the descriptor tells only what comes after a look that finds nothing.
            while readable.get_ref().0.run_ready() {
                // More may have arrived. The tasks that were woken come first.
                yield_now().await;
            }
            match readable.readable().await {
                Ok(mut ready) => ready.clear_ready(),
                // The runtime ends.
                Err(_) => return,
            }
        }
    })
}

/// Registers a descriptor with the runtime.
#[expect(
    deprecated,
    reason = "its replacement is unsafe, because a descriptor might be closed or change: that of a driver does not while it exists"
)]
fn registered(driver: Readable) -> io::Result<AsyncFd<Readable>> {
    AsyncFd::with_interest(driver, Interest::READABLE)
}
