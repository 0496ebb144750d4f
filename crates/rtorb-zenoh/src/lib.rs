//! Federation of event channels over [Zenoh](https://zenoh.io): many channels, on many hosts, whose consumers get each other's events.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rtorb_services::events::client::channel_of;
//! use rtorb_zenoh::{Federation, FederationConfig};
//!
//! let orb = rtorb::Orb::builder().listen("iiop://127.0.0.1:0").build()?;
//! let mut config = FederationConfig::new("plant/events", "press");
//! config.network.connect = vec!["tcp/router.plant:7447".to_owned()];
//! let finder = orb.clone();
//! let find = Box::new(move || channel_of(&finder, "corbaloc::127.0.0.1:7700/EventService"));
//! let member = Federation::start(&orb, find, config, |news| println!("{news}"))?;
//! orb.run()?;
//! member.stop();
//! # Ok(())
//! # }
//! ```
//!
//! A [`Federation`] is a member: a consumer of its channel that publishes the events, and a supplier of its channel that brings the events of
//! the others which the channel's consumers subscribe to. It learns of these as an observer of the channel, as a gateway does.
//!
//! # What is in Zenoh
//!
//! | key expression | content |
//! |---|---|
//! | `PREFIX/CHANNEL/TYPE/SOURCE` | an event of the channel. The numbers are decimal |
//! | `PREFIX/@numbers/CHANNEL` | how many events of each type and source were published |
//! | `PREFIX/@members/VERSION/CHANNEL/SESSION` | a liveliness token: the member is there |
//!
//! The payload of an event is a CDR encapsulation as DDS and ROS 2 have it (bytes 0, 1 for little-endian or 0 for big-endian, 0, 0), and
//! a `RtecEventComm::Event` in CDR as GIOP 1.2 encodes it, with text in UTF-8. The attachment has 36 bytes, the most significant byte of
//! each number first: version 1 and 0, in a byte each; the CORBA priority in 2, -1 for none; the run of the publisher, the index of the
//! event in it, the time of publication (UTC in 100 ns since 15 October 1582) and the deadline (nanoseconds from that time on, 0 for none), in
//! 8 bytes each.
//!
//! A subscription of a channel's consumers to a type and a source is a subscription to `PREFIX/*/TYPE/SOURCE`; any type or source is `*`.
//!
//! # What is guaranteed
//!
//! * **Each event once, or counted.** Events of each type and source of a member's lane have numbers from 0. A number that came is delivered or
//!   discarded, with a count for each reason; one that comes again is `repeated`; one that does not come is `lost`, at the latest when the next
//!   report comes; and those that were published before a member heard of them or while none of its consumers wanted them are `unsubscribed`.
//!   So the published events of a run are the sum of these, once its reports have come. A publisher that is killed takes along what it did not
//!   send, and nobody knows how much that was.
//! * **Order.** Events of one lane reach a channel in the order in which its member published them, as long as the routes stay the same.
//! * **No loops.** An event is published only while its `ttl` is above 0, and arrives with one less, as through a gateway. In addition it gets a
//!   mark in `data.pad1`, which is a number made from the prefix: an event with the mark is never sent into that federation again, whatever
//!   gateways it passed. A value that `pad1` had before is lost.
//! * **Bounds.** Every queue has a bound, and what has no room has a count ([`FederationStatistics`]). With
//!   [`FederationCongestion::Block`] a full link holds up the lane, whose queue then fills.
//!
//! The times in an event's header are of CLOCK_MONOTONIC of the publisher's host, and stay as they are.
//!
//! # Priorities
//!
//! [`PriorityBands`] has the priority of Zenoh that a lane's CORBA priority gets. Lanes above `Data` send each event at once, and do not wait
//! for others to fill a batch. A member delivers what came with a more urgent priority first.
//!
//! # Threads
//!
//! A member has a thread that delivers, and one for each lane. Zenoh has threads of its own, six for a process, which all its sessions share:
//! `app-0`, `acc-0`, `tx-0`, `rx-0`, `rx-1` and `net-0`, and a few more that it starts for what blocks. The first session is opened by a thread
//! with [`FederationConfig::zenoh_thread`], SCHED_OTHER by default, and they inherit that. So no thread of Zenoh takes a CPU from a
//! real-time lane, and none is real-time unless it is configured. But a lane that publishes takes locks of Zenoh, which do not inherit priorities. The variable `ZENOH_RUNTIME` of the environment sets their number, before the process
//! starts; `ZENOH_RUNTIME='(rx: (handover: app), acc: (handover: app), tx: (handover: app), net: (handover: app), app: (worker_threads: 2))'`
//! makes two of all.
#![forbid(unsafe_code)]

mod accounts;
mod bands;
mod config;
mod connection;
mod federation;
mod incoming;
mod keys;
mod message;
mod numbers;
mod outgoing;
mod session;
mod shared;
mod statistics;
mod work_queue;

pub use bands::PriorityBands;
pub use config::{
    DeliveryPriority, FederationConfig, FederationCongestion, FederationError, FederationLane,
    FederationNetwork, FederationNews,
};
pub use federation::Federation;
pub use keys::EventKey;
pub use statistics::{FederationStatistics, IncomingStatistics, OutgoingStatistics};
