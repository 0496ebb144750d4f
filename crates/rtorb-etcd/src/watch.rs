//! The commits of all services, as etcd tells them.

use crate::location::{Keys, VERSION};
use crate::snapshot::{self, MESSAGE_BYTES_MAX};
use core::time::Duration;
use etcd_client::{
    Client, Error, EventType, GetOptions, GetResponse, KvClient, WatchOptions, WatchResponse,
};
use rtorb_services::naming::shared_store::{Follower, SharedWrites};
use std::sync::{Arc, Weak};
use tokio::time::{sleep, timeout};

/// Follows a store, and connects again as often as it must.
pub(crate) struct Watch {
    pub(crate) clients: Arc<[Client]>,
    pub(crate) keys: Keys,
    pub(crate) follower: Weak<dyn Follower>,
    /// The last revision of the store that was told.
    pub(crate) revision: u64,
    /// The mark of that revision, if it is known.
    pub(crate) mark: Option<Vec<u8>>,
}

/// Why a watch ends.
enum End {
    /// The follower is gone.
    Gone,
    /// etcd does not have the commits after the last one that was told, or others.
    Forgotten,
    Lost(String),
}

impl<E: core::error::Error> From<E> for End {
    fn from(error: E) -> Self {
        Self::Lost(error.to_string())
    }
}

impl Watch {
    pub(crate) async fn run(mut self) {
        for turn in 0.. {
            let client = &self.clients[turn % self.clients.len()].clone();
            let mut end = self.follow(client).await;
            if matches!(end, End::Forgotten) {
                end = match self.reload(client).await {
                    Ok(()) => {
                        sleep(PAUSE).await;
                        continue;
                    }
                    Err(end) => end,
                };
            }
            let Some(follower) = self.follower.upgrade() else {
                return;
            };
            match end {
                End::Gone => return,
                End::Forgotten => follower.lost("etcd has forgotten a revision just read"),
                End::Lost(why) => follower.lost(&why),
            }
            drop(follower);
            sleep(PAUSE).await;
        }
    }

    /// Tells commits until etcd ends the watch.
    async fn follow(&mut self, client: &Client) -> End {
        match self.try_follow(client).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn try_follow(&mut self, client: &Client) -> Result<core::convert::Infallible, End> {
        let start = self.start(&mut client.kv_client()).await?;
        let options = WatchOptions::new()
            .with_range(self.keys.end())
            .with_start_revision(start);
        let mut watching = client
            .watch_client()
            .max_decoding_message_size(MESSAGE_BYTES_MAX);
        let opened = watching.watch(self.keys.prefix.as_str(), Some(options));
        let mut stream = timeout(ANSWER, opened).await??;
        self.follower.upgrade().ok_or(End::Gone)?.found();
        let mut writes = Vec::new();
        loop {
            let told = stream.message().await?;
            let told = told.ok_or_else(|| End::Lost("etcd has ended the watch".to_owned()))?;
            if told.compact_revision() > 0 {
                return Err(End::Forgotten);
            }
            if told.canceled() {
                return Err(End::Lost(told.cancel_reason().to_owned()));
            }
            self.tell(&told, &mut writes)?;
        }
    }

    /// The revision of etcd at which the watch starts. Writers of other keys make revisions, too, which etcd may have compacted: if there
    /// is no commit after the last one that was told, the watch starts after them.
    async fn start(&mut self, kv: &mut KvClient) -> Result<i64, End> {
        let now = timeout(ANSWER, kv.get(self.keys.version(), None)).await??;
        if self.is_at_last_told(&now)? {
            return Ok(now.header().map_or(0, |header| header.revision()) + 1);
        }
        if self.revision > 0 {
            let then = GetOptions::new().with_revision(self.revision as i64);
            let then = match timeout(ANSWER, kv.get(self.keys.version(), Some(then))).await? {
                Err(Error::GRpcStatus(status)) if status.code() as i32 == OUT_OF_RANGE => {
                    return Err(End::Forgotten);
                }
                then => then?,
            };
            if !self.is_at_last_told(&then)? {
                return Err(End::Forgotten);
            }
        }
        Ok(self.revision as i64 + 1)
    }

    /// True if the last commit in an answer is the last one that was told, and false if it is a later one. `Forgotten` if neither can be,
    /// because etcd was restored from an earlier copy.
    fn is_at_last_told(&mut self, version: &GetResponse) -> Result<bool, End> {
        let version = version.kvs().first();
        let revision = version.map_or(0, |it| it.mod_revision().unsigned_abs());
        if revision != self.revision {
            return (revision > self.revision)
                .then_some(false)
                .ok_or(End::Forgotten);
        }
        let mark = version.map_or(&[][..], |it| it.value());
        if *self.mark.get_or_insert_with(|| mark.to_owned()) != mark {
            return Err(End::Forgotten);
        }
        Ok(true)
    }

    /// Tells the commits of a message, each of which ends with its version. `writes` are those of the commit that has begun.
    fn tell(
        &mut self,
        told: &WatchResponse,
        writes: &mut Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<(), End> {
        for event in told.events() {
            let (Some(pair), is_put) = (event.kv(), event.event_type() == EventType::Put) else {
                continue;
            };
            match self.keys.own(pair.key()) {
                Some(VERSION) if is_put => {
                    let follower = self.follower.upgrade().ok_or(End::Gone)?;
                    self.revision = pair.mod_revision().unsigned_abs();
                    self.mark = Some(pair.value().to_owned());
                    let commit = SharedWrites {
                        mark: pair.value().to_owned(),
                        writes: core::mem::take(writes),
                    };
                    follower.committed(self.revision, &commit);
                }
                Some(VERSION) | None => {}
                Some(key) => writes.push((key.to_owned(), is_put.then(|| pair.value().to_owned()))),
            }
        }
        Ok(())
    }

    /// Tells all that is in the store.
    async fn reload(&mut self, client: &Client) -> Result<(), End> {
        let read = snapshot::read(client.clone(), self.keys.clone());
        let snapshot = timeout(SNAPSHOT, read).await??;
        let follower = self.follower.upgrade().ok_or(End::Gone)?;
        self.revision = snapshot.revision;
        self.mark = Some(snapshot.mark.clone());
        follower.replaced(&snapshot);
        Ok(())
    }
}

/// The code of gRPC for a revision that etcd has compacted.
const OUT_OF_RANGE: i32 = 11;

/// Before the next attempt to reach etcd.
const PAUSE: Duration = Duration::from_millis(100);

/// The time for an answer of etcd.
const ANSWER: Duration = Duration::from_secs(5);

/// The time for all keys.
pub(crate) const SNAPSHOT: Duration = Duration::from_secs(60);
