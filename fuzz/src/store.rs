//! A target that opens a damaged store of the naming service.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use redb::{Database, TableDefinition};
use rtorb::Orb;
use rtorb_services::naming::{NamingConfig, NamingService};
use tempfile::TempDir;

/// Opens a store with one binding, whose stored value the input is; the first two bytes choose its context and name. If the first
/// byte is odd, the input instead replaces bytes of a good file: a place of four bytes and the new byte, again and again.
pub(crate) fn open(input: &[u8]) {
    let Some((&[form, name], rest)) = input.split_first_chunk() else {
        return;
    };
    let place = ENVIRONMENT.copy();
    if form & 1 == 0 {
        bind(&place, u64::from(form >> 1), &name.to_string(), rest);
    } else {
        damage(&place, rest);
    }
    let config = NamingConfig {
        bindings_max: 16,
        ..NamingConfig::stored_at(&place)
    };
    if let Ok(service) = NamingService::serve(&ENVIRONMENT.orb, config) {
        service.end();
    }
    fs::remove_file(place).expect("the copy can be removed");
}

fn bind(place: &Path, context: u64, name: &str, value: &[u8]) {
    let database = Database::open(place).expect("a good store");
    let mut transaction = database.begin_write().expect("a store that nobody uses");
    transaction
        .set_durability(redb::Durability::None)
        .expect("no savepoint");
    let mut bindings = transaction.open_table(BINDINGS).expect("its table");
    bindings
        .insert((context, name, ""), value)
        .expect("room for a binding");
    drop(bindings);
    transaction.commit().expect("a good disk");
}

fn damage(place: &Path, replacements: &[u8]) {
    let mut bytes = fs::read(place).expect("a good store");
    for &[a, b, c, d, new] in replacements.as_chunks().0 {
        let at = u32::from_le_bytes([a, b, c, d]) as usize % bytes.len();
        bytes[at] = new;
    }
    fs::write(place, bytes).expect("room for a store");
}

/// The table of bindings, as the service's store defines it.
const BINDINGS: TableDefinition<'_, (u64, &str, &str), &[u8]> = TableDefinition::new("bindings");

/// What all inputs share.
struct Environment {
    orb: Orb,
    folder: TempDir,
}

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(Environment::new);

impl Environment {
    /// Makes an ORB, and a good store to copy.
    fn new() -> Self {
        // In memory, if the host has such a folder: the store is written for each input.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        let orb = Orb::builder().build().expect("an ORB");
        let config = NamingConfig::stored_at(folder.path().join(GOOD));
        let service = NamingService::serve(&orb, config).expect("a new store");
        service.end();
        Self { orb, folder }
    }

    fn copy(&self) -> PathBuf {
        let place = self.folder.path().join("copy");
        fs::copy(self.folder.path().join(GOOD), &place).expect("room for a store");
        place
    }
}

const GOOD: &str = "good";
