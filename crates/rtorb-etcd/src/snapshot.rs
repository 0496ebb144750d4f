//! All keys of a store at one revision of etcd.

use crate::location::{Keys, VERSION};
use etcd_client::{Client, Error, GetOptions};
use rtorb_services::naming::shared_store::SharedSnapshot;

/// Reads all keys of a store, at the revision that etcd has at the first page.
pub(crate) async fn read(client: Client, keys: Keys) -> Result<SharedSnapshot, Error> {
    // etcd limits a value, and the pages what is in memory twice.
    let mut client = client
        .kv_client()
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut snapshot = SharedSnapshot::default();
    let mut from = keys.prefix.clone().into_bytes();
    let mut at = 0;
    loop {
        let options = GetOptions::new()
            .with_range(keys.end())
            .with_limit(PAGE)
            .with_revision(at);
        let mut page = client.get(from, Some(options)).await?;
        if at == 0 {
            at = page.header().map_or(0, |header| header.revision());
        }
        let has_more = page.more();
        let page = page.take_kvs();
        let Some(last) = page.last() else {
            return Ok(snapshot);
        };
        // The next key.
        from = [last.key(), &[0]].concat();
        for pair in page {
            match keys.own(pair.key()) {
                Some(VERSION) => {
                    snapshot.revision = pair.mod_revision().unsigned_abs();
                    snapshot.mark = pair.value().to_owned();
                }
                Some(key) => {
                    let entry = (key.to_owned(), pair.value().to_owned());
                    snapshot.entries.push(entry);
                }
                None => {}
            }
        }
        if !has_more {
            return Ok(snapshot);
        }
    }
}

/// Keys of a page.
const PAGE: i64 = 1_000;

/// A page of references of the greatest size that etcd takes in a request (1.5 MiB).
pub(crate) const MESSAGE_BYTES_MAX: usize = i32::MAX as usize;
