//! The search for an object's interface: in IDL files, in the built-in IDL, and at the object itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rtorb::{ExceptionKind, ObjectRef, SystemException};

use crate::interface::Interface;
use crate::repository;
use crate::types::{IdlError, Types};

/// The places in which an interface is searched.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// IDL files. A file that does not exist is searched in the folders.
    pub files: Vec<PathBuf>,
    /// Folders with IDL. They are searched for included files, and for the interface if no other place has it.
    pub folders: Vec<PathBuf>,
    /// The scoped name or repository id of the interface. If it is given, the object is not asked.
    pub interface: Option<String>,
}

/// An interface, and the types that it uses.
#[derive(Clone, Debug)]
pub struct FoundInterface {
    /// The interface.
    pub interface: Arc<Interface>,
    /// All known types.
    pub types: Arc<Types>,
}

/// The reason why no interface was found.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A file is wrong.
    #[error(transparent)]
    Idl(#[from] IdlError),
    /// The stated interface is unknown.
    #[error("there is no interface `{name}` in the IDL{}", suggestion.as_ref().map(|it| format!("; did you mean `{it}`?")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// An interface with a name like it.
        suggestion: Option<String>,
    },
    /// The object's interface is in no IDL.
    #[error(
        "{}: add its IDL, or state a known interface that it has",
        missing_interface(type_id)
    )]
    NotFound {
        /// The repository id from the reference or the object; may be empty.
        type_id: String,
    },
    /// The object cannot be asked.
    #[error("the object cannot be asked for its interface: {0}")]
    Object(SystemException),
}

fn missing_interface(type_id: &str) -> String {
    if type_id.is_empty() {
        "neither the reference nor the object says its interface".to_owned()
    } else {
        format!("no IDL has the interface {type_id} of the object")
    }
}

impl Search {
    /// Finds the interface of an object. Asks the object if its reference does not name a known interface: first for its repository id,
    /// then about the interfaces with `operation`, if one is given.
    ///
    /// # Errors
    /// [`SearchError`] says what to do.
    pub fn interface_of(
        &self,
        object: &ObjectRef,
        operation: Option<&str>,
    ) -> Result<FoundInterface, SearchError> {
        let mut types = self.types()?;
        let id = match &self.interface {
            Some(name) => self.stated(name, &mut types)?,
            None => self.of_object(object, operation, &mut types)?,
        };
        found(id, types)
    }

    /// The interface with that scoped name or repository id.
    ///
    /// # Errors
    /// [`SearchError`] says what to do.
    pub fn interface_named(&self, name: &str) -> Result<FoundInterface, SearchError> {
        let mut types = self.types()?;
        let id = self.stated(name, &mut types)?;
        found(id, types)
    }

    /// The types of the files, and of the built-in IDL.
    ///
    /// # Errors
    /// [`SearchError::Idl`]
    pub fn types(&self) -> Result<Types, SearchError> {
        let mut types = Types::default();
        if !self.files.is_empty() {
            let files: Vec<_> = self.files.iter().map(|file| self.place(file)).collect();
            types.add_files(&files, &self.folders)?;
        }
        types.add_standard();
        Ok(types)
    }

    /// The path of a file: as given if the file exists, otherwise in the first folder that has it.
    fn place(&self, file: &Path) -> PathBuf {
        let inside = || {
            self.folders
                .iter()
                .map(|folder| folder.join(file))
                .find(|it| it.exists())
        };
        let found = if file.exists() { None } else { inside() };
        found.unwrap_or_else(|| file.to_owned())
    }

    fn stated(&self, name: &str, types: &mut Types) -> Result<String, SearchError> {
        if types.interface(name).is_none() {
            self.search_folders(name, types);
        }
        let names = types.interfaces().map(|it| &*it.name);
        match types.interface(name) {
            Some(interface) => Ok(interface.repository_id.clone()),
            None => Err(SearchError::Unknown {
                name: name.to_owned(),
                suggestion: rtorb_idl::suggest::closest(name, names).map(str::to_owned),
            }),
        }
    }

    fn of_object(
        &self,
        object: &ObjectRef,
        operation: Option<&str>,
        types: &mut Types,
    ) -> Result<String, SearchError> {
        let mut type_id = object.type_id().to_owned();
        if self.finds(&type_id, types) {
            return Ok(type_id);
        }
        let said: String = reply_or_default(object.invoke(
            "_repository_id",
            |_| Ok(()),
            |r| r.str().map(Into::into),
        ))?;
        if !said.is_empty() && said != type_id {
            if self.finds(&said, types) {
                return Ok(said);
            }
            type_id = said;
        }
        // The second round ignores the operation. So the message for a wrong operation names the operation.
        for operation in [operation, None] {
            if let Some(id) = supported(object, operation, types)? {
                return Ok(id);
            }
        }
        let described = repository::interface_of(object, types);
        let found = described.ok().map(|it| it.repository_id.clone());
        found.ok_or(SearchError::NotFound { type_id })
    }

    /// True if the types have the interface with that repository id, or get it from the folders.
    fn finds(&self, id: &str, types: &mut Types) -> bool {
        if id.is_empty() {
            return false;
        }
        if types.interface_by_id(id).is_none() {
            self.search_folders(id, types);
        }
        types.interface_by_id(id).is_some()
    }

    /// Adds the first file of the folders that declares an interface with that name or repository id.
    fn search_folders(&self, name: &str, types: &mut Types) {
        let simple = simple_name(name);
        let files = self.folders.iter().flat_map(|folder| idl_files(folder));
        for file in files.take(FILES_MAX) {
            let mentions = std::fs::read(&file).is_ok_and(|text| {
                let mut words = text.windows(simple.len().max(1));
                words.any(|word| word == simple.as_bytes())
            });
            let mut found = Types::default();
            // Errors in these files are not reported, because the caller did not name the files.
            if mentions
                && found.add_files(&[file], &self.folders).is_ok()
                && found.interface(name).is_some()
            {
                types.add_all(found);
                return;
            }
        }
    }
}

fn found(id: String, types: Types) -> Result<FoundInterface, SearchError> {
    match types.interface_by_id(&id).cloned() {
        Some(interface) => Ok(FoundInterface {
            interface,
            types: Arc::new(types),
        }),
        None => Err(SearchError::NotFound { type_id: id }),
    }
}

/// The reply of an object; the default value if the object does not know the operation.
fn reply_or_default<T: Default>(answer: Result<T, SystemException>) -> Result<T, SearchError> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(exception) if is_reply(&exception) => Ok(T::default()),
        Err(exception) => Err(SearchError::Object(exception)),
    }
}

/// True if an object that exists replied with this exception: this ORB did not raise it.
fn is_reply(exception: &SystemException) -> bool {
    exception.cause.is_none() && exception.kind != ExceptionKind::ObjectNotExist
}

/// The most derived known interface that an object says it has.
fn supported(
    object: &ObjectRef,
    operation: Option<&str>,
    types: &Types,
) -> Result<Option<String>, SearchError> {
    let is_possible =
        |it: &&Arc<Interface>| operation.is_none_or(|name| it.operation(name).is_some());
    let mut candidates: Vec<_> = types.interfaces().filter(is_possible).collect();
    candidates.sort_by_key(|it| core::cmp::Reverse(it.ancestors.len()));
    for interface in candidates.into_iter().take(QUESTIONS_MAX) {
        if reply_or_default(object.is_a(&interface.repository_id))? {
            return Ok(Some(interface.repository_id.clone()));
        }
    }
    Ok(None)
}

/// `Name` of `Module::Name` and of `IDL:prefix/Module/Name:1.0`.
fn simple_name(name: &str) -> &str {
    let path = name.strip_prefix("IDL:").and_then(|it| it.rsplit_once(':'));
    let path = path.map_or(name, |(path, _)| path);
    path.rsplit(['/', ':']).next().unwrap_or(path)
}

/// The IDL files of a folder, sorted by name.
fn idl_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|it| it.extension().is_some_and(|it| it == "idl"))
        .collect();
    files.sort();
    files
}

/// The most files that are searched.
const FILES_MAX: usize = 10_000;
/// The most interfaces about which an object is asked.
const QUESTIONS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_name_is_the_end_of_a_name_or_id() {
        assert_eq!(
            simple_name("IDL:omg.org/CosNaming/NamingContext:1.0"),
            "NamingContext"
        );
        assert_eq!(simple_name("IDL:Cubit:1.0"), "Cubit");
        assert_eq!(simple_name("Tango::Device_5"), "Device_5");
    }
}
