//! The files as they were read last, and the reading of changed ones.

use crate::settings::{Configs, FileStamps, TlsBuilder, TlsError};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rustls::ServerConfig;
use std::sync::Arc;

/// The files as they were read last.
#[derive(Debug)]
pub(crate) struct CurrentFiles {
    pub(crate) settings: TlsBuilder,
    configs: Mutex<Arc<Configs>>,
    /// Who reads the files holds it meanwhile.
    seen: Mutex<Seen>,
}

/// What was seen of the files last, and when.
#[derive(Debug)]
struct Seen {
    stamps: FileStamps,
    at_ns: u64,
    /// A failure is not reported again before; 0 after a success.
    silent_until_ns: u64,
}

/// How often it is looked whether files have changed, in nanoseconds.
const LOOK_NS: u64 = 1_000_000_000;

/// How often it is reported that the changed files cannot be used, in nanoseconds.
const SILENT_NS: u64 = 60_000_000_000;

impl CurrentFiles {
    pub(crate) fn read(settings: TlsBuilder) -> Result<Self, TlsError> {
        // Before they are read: a later change is seen.
        let stamps = settings.stamps();
        Ok(Self {
            configs: Mutex::new(Arc::new(settings.configs()?)),
            seen: Mutex::new(Seen {
                stamps,
                at_ns: monotonic_ns(),
                silent_until_ns: 0,
            }),
            settings,
        })
    }

    /// Reads the files again. If one is wrong, nothing changes.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.read_again(&mut self.seen.lock(), self.settings.stamps())
    }

    /// Reads the files, whose stamps were taken before. Two threads do not at once: what the first has read may be older.
    fn read_again(&self, seen: &mut Seen, stamps: FileStamps) -> Result<(), TlsError> {
        let configs = Arc::new(self.settings.configs()?);
        *self.configs.lock() = configs;
        seen.stamps = stamps;
        seen.silent_until_ns = 0;
        Ok(())
    }

    /// Reads the files again if they have changed. If they cannot be used, the earlier ones stay in use, it is reported once a minute, and
    /// tried again later. The thread of a server's handshakes calls it, and the thread of a call that connects, which waits for no other one.
    pub(crate) fn reload_if_changed(&self, report: &dyn Fn(String)) {
        let now_ns = monotonic_ns();
        // Another thread looks now.
        let Some(mut seen) = self.seen.try_lock() else {
            return;
        };
        if now_ns < seen.at_ns.saturating_add(LOOK_NS) {
            return;
        }
        seen.at_ns = now_ns;
        let stamps = self.settings.stamps();
        if stamps == seen.stamps {
            return;
        }
        if let Err(error) = self.read_again(&mut seen, stamps)
            && now_ns >= seen.silent_until_ns
        {
            seen.silent_until_ns = now_ns.saturating_add(SILENT_NS);
            drop(seen);
            report(format!(
                "TLS: the files have changed, and are not used: {error}"
            ));
        }
    }

    pub(crate) fn configs(&self) -> Arc<Configs> {
        Arc::clone(&self.configs.lock())
    }

    /// Returns what the handshakes of a server use now.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.configs().server.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::REVOCATIONS;
    use crate::test_keys::server_keys;
    use std::fs;

    #[test]
    fn a_reload_has_seen_the_change() {
        let (folder, settings) = server_keys();
        let lists = folder.path().join(REVOCATIONS);
        let files = CurrentFiles::read(settings.revocations(&lists)).expect("right files");
        let mut text = fs::read(&lists).expect("it is there");
        text.push(b'\n');
        fs::write(&lists, text).expect("the folder can be written");
        files.reload().expect("right files");
        assert_eq!(files.seen.lock().stamps, files.settings.stamps());
    }
}
