//! The store of names: a redb database, whose transactions are atomic.

use super::changes::{CommitError, Disk};
use super::config::NamingConfig;
use super::error::StoreError;
use super::failure::StoreFailure;
use super::record::{from_bytes, to_bytes};
use super::store_log::{NoLog, StoreLog};
use super::tree::{BindingKey, ContextId, Effect, ROOT, Tree};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use rtorb::CompletionStatus;
use rtorb::exception::local;
use rtorb::url::NameComponent;
use rtorb_os::sync::Mutex;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open store. No other process can open it meanwhile.
#[derive(Debug)]
pub(super) struct Store {
    database: Database,
    file: PathBuf,
    identity: u64,
    reference_bytes_max: usize,
    log: Arc<dyn StoreLog>,
    /// Why the last commit failed, if it did. The log gets each reason once.
    failing: Mutex<Option<StoreFailure>>,
}

impl Store {
    /// Opens or makes the store and loads all of it.
    pub(super) fn open(place: &Path, config: &NamingConfig) -> Result<(Self, Tree), StoreError> {
        let opened = open_there(place);
        #[cfg(simulation)]
        let was_there = opened.is_ok();
        let database = match opened {
            Err(StoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                make(place).or_else(|error| match error {
                    // Another process was faster.
                    StoreError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        open_there(place)
                    }
                    error => Err(error),
                })?
            }
            opened => opened?,
        };
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("store-name-unsynced")
            || was_there && rtorb_os::simulation::is_planted("found-store-unsynced")
        {
            return Self::of(database, place, config);
        }
        // A store that is there may have been made by a service that was killed before it did this.
        sync_name(place)?;
        Self::of(database, place, config)
    }

    /// The store in an open database, and all that is in it.
    pub(super) fn of(
        database: Database,
        file: &Path,
        config: &NamingConfig,
    ) -> Result<(Self, Tree), StoreError> {
        let (tree, identity) = load(&database, config)?;
        let store = Self {
            database,
            file: file.to_owned(),
            identity,
            reference_bytes_max: config.reference_bytes_max,
            log: Arc::new(NoLog),
            failing: Mutex::default(),
        };
        Ok((store, tree))
    }

    /// The same store with another log.
    pub(super) fn logging_to(mut self, log: Arc<dyn StoreLog>) -> Self {
        self.log = log;
        self
    }

    /// The identity of the store, which is part of the object keys of its contexts.
    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    fn write(
        &self,
        transaction: &redb::WriteTransaction,
        effects: &[Effect],
    ) -> Result<(), redb::Error> {
        let mut bindings = transaction.open_table(BINDINGS)?;
        let mut contexts = transaction.open_table(CONTEXTS)?;
        let mut about = transaction.open_table(ABOUT)?;
        for effect in effects {
            match effect {
                Effect::Bind(place, target) => {
                    let value = to_bytes(target, self.reference_bytes_max)?;
                    bindings.insert(key(place), &*value)?;
                }
                Effect::Unbind(place) => {
                    bindings.remove(key(place))?;
                }
                Effect::Create(id) => {
                    contexts.insert(id.0, ())?;
                    about.insert(NEXT_CONTEXT, id.0 + 1)?;
                }
                Effect::Destroy(id) => {
                    contexts.remove(id.0)?;
                }
            }
        }
        Ok(())
    }

    /// Logs why a commit failed, unless the commit before it failed for the same reason.
    fn failed(&self, error: &redb::Error) -> StoreFailure {
        let mut failing = self.failing.lock();
        let failure = match (error, *failing) {
            // redb takes nothing more after an error of the disk.
            (redb::Error::PreviousIo, Some(first)) => first,
            _ => StoreFailure::of(error),
        };
        if failing.replace(failure) != Some(failure) {
            drop(failing);
            self.log.failed(&self.file, failure, &error.to_string());
        }
        failure
    }
}

impl Disk for Store {
    fn commit(&self, effects: &[Effect]) -> Result<(), CommitError> {
        #[cfg(simulation)]
        if effects.len() > 1 && rtorb_os::simulation::is_planted("commit-in-parts") {
            return effects.chunks(1).try_for_each(|part| self.commit(part));
        }
        let failed = |completed| {
            move |error: redb::Error| CommitError {
                failure: self.failed(&error),
                completed,
            }
        };
        let begun = self.database.begin_write().map_err(redb::Error::from);
        let transaction = begun.map_err(failed(CompletionStatus::No))?;
        #[cfg(simulation)]
        let transaction = {
            let mut transaction = transaction;
            if rtorb_os::simulation::is_planted("commit-unsynced") {
                let _ = transaction.set_durability(redb::Durability::None);
            }
            transaction
        };
        self.write(&transaction, effects)
            .map_err(failed(CompletionStatus::No))?;
        // Only the next start can find out how much of the commit is on the disk.
        let committed = transaction.commit().map_err(redb::Error::from);
        committed.map_err(failed(CompletionStatus::Maybe))?;
        *self.failing.lock() = None;
        Ok(())
    }

    fn report_panic(&self, message: &str) {
        self.log.failed(&self.file, StoreFailure::Panicked, message);
    }
}

/// Makes a unique identity from the kernel's random numbers.
pub(super) fn new_identity() -> Result<u64, rtorb::SystemException> {
    let internal = |_| local::NO_RANDOM_NUMBERS;
    random().map_err(internal)
}

pub(super) fn random() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::from)
}

/// The schema of this program. Another layout has another number.
const SCHEMA: u64 = 1;

/// Properties of the store; their names are below.
const ABOUT: TableDefinition<&str, u64> = TableDefinition::new("about");
const SCHEMA_NAME: &str = "schema";
const IDENTITY: &str = "identity";
/// Ids of destroyed contexts are not reused: clients may still have references to them.
const NEXT_CONTEXT: &str = "next_context";

/// All contexts, with or without a name.
const CONTEXTS: TableDefinition<u64, ()> = TableDefinition::new("contexts");

/// The bindings by context, id and kind.
const BINDINGS: TableDefinition<(u64, &str, &str), &[u8]> = TableDefinition::new("bindings");

/// The page cache. It is small, because a commit touches few pages and lookups use the tree in memory.
const CACHE_BYTES: usize = 16 << 20;

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder
        .set_cache_size(CACHE_BYTES)
        // Otherwise redb trusts a damaged file and panics.
        .set_check_integrity_on_open(true);
    builder
}

fn open_there(place: &Path) -> Result<Database, StoreError> {
    Ok(builder().open(place)?)
}

/// Makes a store under a temporary name and renames it when it is complete, so that a crash leaves no partial store.
fn make(place: &Path) -> Result<Database, StoreError> {
    let file = place
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut name = file.to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let made = Unfinished(place.with_file_name(name));
    made.remove_leftover()?;
    let database = builder().create(&made.0)?;
    initialize(&database)?;
    // Unlike a rename, a link does not replace a file that another process has just made.
    fs::hard_link(&made.0, place)?;
    drop(made);
    Ok(database)
}

/// Waits until the name of the store is on the disk.
fn sync_name(place: &Path) -> io::Result<()> {
    let directory = match place.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

/// Makes an empty database a store with the root context.
pub(super) fn initialize(database: &Database) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(redb::Error::from)?;
    {
        transaction.open_table(BINDINGS)?;
        transaction.open_table(CONTEXTS)?.insert(ROOT.0, ())?;
        let mut about = transaction.open_table(ABOUT)?;
        about.insert(SCHEMA_NAME, SCHEMA)?;
        about.insert(IDENTITY, random()?)?;
        about.insert(NEXT_CONTEXT, ROOT.0 + 1)?;
    }
    transaction.commit().map_err(redb::Error::from)?;
    Ok(())
}

/// A store under its temporary name.
struct Unfinished(PathBuf);

impl Unfinished {
    /// Removes the file of an ended process with the same id.
    fn remove_leftover(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A file that stays behind does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

fn load(database: &Database, config: &NamingConfig) -> Result<(Tree, u64), StoreError> {
    let transaction = database.begin_read().map_err(redb::Error::from)?;
    let about = transaction.open_table(ABOUT)?;
    let number = |name: &str| -> Result<u64, StoreError> {
        let value = about.get(name)?.ok_or_else(|| foreign(name))?;
        Ok(value.value())
    };
    match number(SCHEMA_NAME)? {
        SCHEMA => {}
        schema if schema > SCHEMA => {
            return Err(StoreError::Newer {
                schema,
                known: SCHEMA,
            });
        }
        schema => return Err(foreign(&format!("schema {schema}"))),
    }
    let mut tree = Tree::new(config.bindings_max);
    for context in transaction.open_table(CONTEXTS)?.iter()? {
        let (id, _) = context?;
        if id.value() != ROOT.0 {
            tree.apply(Effect::Create(ContextId(id.value())));
        }
        let contexts_max = config.contexts_max;
        check_bound(
            "contexts",
            tree.contexts_len(),
            "contexts_max",
            contexts_max,
        )?;
    }
    for binding in transaction.open_table(BINDINGS)?.iter()? {
        let (key, value) = binding?;
        let (context, id, kind) = key.value();
        let component = NameComponent {
            id: id.to_owned(),
            kind: kind.to_owned(),
        };
        let context = ContextId(context);
        let target = from_bytes(value.value()).ok_or_else(|| damaged(&component))?;
        let place = Arc::new(BindingKey { context, component });
        tree.apply(Effect::Bind(place, target));
        check_bound("bindings", tree.len(), "bindings_max", config.bindings_max)?;
        check_bound("bytes", tree.bytes(), "bytes_max", config.bytes_max)?;
    }
    tree.set_next_context(ContextId(number(NEXT_CONTEXT)?));
    let identity = number(IDENTITY)?;
    Ok((tree, identity))
}

pub(super) fn check_bound(
    what: &'static str,
    there: usize,
    bound: &'static str,
    max: usize,
) -> Result<(), StoreError> {
    if there <= max {
        Ok(())
    } else {
        Err(StoreError::TooMuch {
            what: format!("{there} {what} or more"),
            bound,
            max,
        })
    }
}

pub(super) fn foreign(what: &str) -> StoreError {
    StoreError::Foreign {
        why: format!("without {what}"),
    }
}

fn damaged(component: &NameComponent) -> StoreError {
    StoreError::Corrupted {
        why: format!(
            "what {}.{} is bound to cannot be read",
            component.id, component.kind
        ),
    }
}

fn key(place: &BindingKey) -> (u64, &str, &str) {
    let NameComponent { id, kind } = &place.component;
    (place.context.0, id, kind)
}

#[cfg(test)]
mod tests {
    use super::super::tree::BindingTarget;
    use super::*;
    use rtorb::ior::{Ior, TaggedProfile};
    use std::io::{Seek, SeekFrom, Write};

    fn stored(directory: &Path) -> (PathBuf, Vec<Effect>) {
        let place = directory.join("names");
        let (store, _) = open(&place).expect("a new store");
        let component = |id: &str| NameComponent {
            id: id.to_owned(),
            kind: "kind".to_owned(),
        };
        let at = |context, id: &str| {
            let component = component(id);
            Arc::new(BindingKey { context, component })
        };
        let ior = Arc::new(Ior {
            type_id: "IDL:Thing:1.0".to_owned(),
            profiles: vec![TaggedProfile {
                tag: 7,
                data: vec![1, 2, 3],
            }],
        });
        let effects = vec![
            Effect::Create(ContextId(1)),
            Effect::Create(ContextId(2)),
            Effect::Bind(at(ROOT, "context"), BindingTarget::Context(ContextId(1))),
            Effect::Bind(
                at(ContextId(1), "object"),
                BindingTarget::Object(Arc::clone(&ior)),
            ),
            Effect::Bind(at(ContextId(2), ""), BindingTarget::Elsewhere(ior)),
        ];
        store.commit(&effects).expect("committed");
        (place, effects)
    }

    fn open(place: &Path) -> Result<(Store, Tree), StoreError> {
        Store::open(place, &NamingConfig::default())
    }

    fn check(tree: &Tree, effects: &[Effect]) {
        use super::super::tree::View;
        for effect in effects {
            match effect {
                Effect::Bind(place, target) => assert_eq!(
                    tree.target(place.context, &place.component).as_ref(),
                    Some(target)
                ),
                Effect::Create(id) => assert!(tree.has_context(*id)),
                Effect::Unbind(_) | Effect::Destroy(_) => unreachable!("not among them"),
            }
        }
    }

    #[test]
    fn committed_changes_are_loaded_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let (place, effects) = stored(directory.path());
        let (store, tree) = open(&place).expect("a store");
        check(&tree, &effects);
        assert_eq!((tree.len(), tree.contexts_len()), (3, 3));
        // The id of a context that is destroyed is not used again.
        let destroyed = [Effect::Destroy(ContextId(2))];
        store.commit(&destroyed).expect("committed");
        let identity = store.identity();
        drop(store);
        let (store, tree) = open(&place).expect("a store");
        assert_eq!(tree.next_context(), ContextId(3));
        assert_eq!(store.identity(), identity);
        let names: Vec<_> = directory.path().read_dir().expect("readable").collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_second_process_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let (place, _) = stored(directory.path());
        let _first = open(&place).expect("a store");
        assert!(matches!(open(&place), Err(StoreError::InUse)));
    }

    #[test]
    fn a_newer_store_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let (place, effects) = stored(directory.path());
        let set_schema = |schema| {
            let database = Database::open(&place).expect("a database");
            let transaction = database.begin_write().expect("begun");
            let mut about = transaction.open_table(ABOUT).expect("a table");
            about.insert(SCHEMA_NAME, schema).expect("inserted");
            drop(about);
            transaction.commit().expect("committed");
        };
        set_schema(SCHEMA + 1);
        let refused = open(&place).expect_err("newer");
        assert!(
            matches!(refused, StoreError::Newer { schema, known } if (schema, known) == (SCHEMA + 1, SCHEMA)),
            "{refused}"
        );
        set_schema(SCHEMA);
        check(&open(&place).expect("a store").1, &effects);
    }

    #[test]
    fn another_file_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("letter");
        for contents in [&b""[..], b"Dear reader", &[b'x'; 9000]] {
            fs::write(&place, contents).expect("written");
            let refused = open(&place).expect_err("not a store");
            assert!(matches!(refused, StoreError::Foreign { .. }), "{refused:?}");
            assert_eq!(fs::read(&place).expect("readable"), contents);
        }
        let place = directory.path().join("other");
        drop(Database::create(&place).expect("a database"));
        let refused = open(&place).expect_err("not a store");
        assert!(matches!(refused, StoreError::Foreign { .. }), "{refused:?}");
    }

    #[test]
    fn a_damaged_store_is_refused_and_never_panics() {
        let directory = tempfile::tempdir().expect("a directory");
        let (place, effects) = stored(directory.path());
        let whole = fs::read(&place).expect("readable");
        let mut refused = 0;
        // All of the header, then every page at an byte that differs from page to page.
        let pages = 1..whole.len().div_ceil(PAGE_BYTES);
        let pages = pages.map(|page| page * PAGE_BYTES + page * 37 % 64);
        for at in (0..HEADER_BYTES).step_by(3).chain(pages) {
            let at = at.min(whole.len() - 8);
            fs::write(&place, &whole).expect("written");
            let mut file = File::options().write(true).open(&place).expect("open");
            file.seek(SeekFrom::Start(at as u64)).expect("sought");
            file.write_all(&[!whole[at]; 8]).expect("written");
            drop(file);
            let damaged = fs::read(&place).expect("readable");
            match open(&place) {
                // Nothing uses it, or it is there twice.
                Ok((_, tree)) => check(&tree, &effects),
                Err(_) => {
                    refused += 1;
                    let after = fs::read(&place).expect("readable");
                    assert!(after == damaged, "written to, with byte {at} damaged");
                }
            }
        }
        assert!(refused > 0, "no page in use was damaged");
        for length in [1, 100, whole.len() / 2, whole.len() - 1] {
            fs::write(&place, &whole[..length]).expect("written");
            let told = open(&place).expect_err("cut short");
            assert!(
                matches!(
                    told,
                    StoreError::Foreign { .. } | StoreError::Corrupted { .. }
                ),
                "{length}: {told:?}"
            );
            assert_eq!(fs::read(&place).expect("readable"), &whole[..length]);
        }
    }

    /// Of redb.
    const PAGE_BYTES: usize = 4096;
    const HEADER_BYTES: usize = 320;

    #[test]
    fn a_store_larger_than_the_bounds_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let (place, effects) = stored(directory.path());
        let bound = |change: fn(&mut NamingConfig)| {
            let mut config = NamingConfig::default();
            change(&mut config);
            match Store::open(&place, &config) {
                Err(StoreError::TooMuch { bound, .. }) => bound,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(bound(|config| config.bindings_max = 2), "bindings_max");
        assert_eq!(bound(|config| config.contexts_max = 2), "contexts_max");
        assert_eq!(bound(|config| config.bytes_max = 20), "bytes_max");
        check(&open(&place).expect("a store").1, &effects);
    }

    #[test]
    fn a_missing_directory_is_reported() {
        let refused = open(Path::new("/nowhere/at/all/names")).expect_err("no directory");
        assert!(
            matches!(refused, StoreError::Io(error) if error.kind() == io::ErrorKind::NotFound)
        );
    }
}
