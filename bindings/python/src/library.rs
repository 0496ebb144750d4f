//! The types and interfaces that Python has classes for.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rtorb::type_code::TypeCode;
use rtorb_dynamic::search::Search;
use rtorb_dynamic::{Interface as DynamicInterface, Operation as DynamicOperation, Types};
use rtorb_idl::tree::{Item, ItemId, ItemKind, Tree, Value as Constant};
use rtorb_idl::{Options, Outcome};

use crate::exceptions::named;
use crate::type_code::PyTypeCode;
use crate::waiting::bounded;

/// The types of one or more IDL files, with the Python class of each.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct Library {
    pub(crate) types: Arc<Types>,
    tree: Option<Tree>,
    /// The files that were read, included ones too.
    files: Vec<OsString>,
    /// The repository ids of bitmasks, which are aliases of integers on the wire.
    masks: BTreeSet<String>,
    /// The classes by repository id.
    classes: Py<PyDict>,
    /// The classes of other types, which came in anys, by type. Bounded: peers choose them.
    others: Py<PyDict>,
    /// Makes the class of a type: a function of the type and this library.
    make_class: Py<PyAny>,
}

impl Library {
    pub(crate) fn of_types(py: Python<'_>, types: Arc<Types>, make_class: Py<PyAny>) -> Self {
        Self {
            types,
            tree: None,
            files: Vec::new(),
            masks: BTreeSet::new(),
            classes: PyDict::new(py).unbind(),
            others: PyDict::new(py).unbind(),
            make_class,
        }
    }

    /// True for the repository id of a bitmask.
    pub(crate) fn is_mask(&self, id: &str) -> bool {
        self.masks.contains(id)
    }
}

/// The class of a type; makes it at its first use.
pub(crate) fn class_of<'py>(
    library: &Bound<'py, Library>,
    code: &TypeCode,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, own) = (library.py(), library.get());
    let id = code.repository_id().filter(|id| !id.is_empty());
    let classes = own.classes.bind(py);
    if let Some(id) = id
        && let Some(class) = classes.get_item(id)?
    {
        return Ok(class);
    }
    // What is in a recursive type may refer to the types around it: the whole type does not.
    let known = id.and_then(|id| own.types.by_id(id));
    let code = Bound::new(py, PyTypeCode::new(&own.types, known.unwrap_or(code)))?;
    let make = |code: &Bound<'py, PyTypeCode>| own.make_class.bind(py).call1((library, code));
    if known.is_some() {
        let made = make(&code)?;
        // Another thread may have made it meanwhile.
        return classes.call_method1("setdefault", (id, made));
    }
    let others = own.others.bind(py);
    if let Some(class) = others.get_item(&code)? {
        return Ok(class);
    }
    let made = make(&code)?;
    if others.len() >= OTHERS_MAX {
        others.clear();
    }
    others.call_method1("setdefault", (code, made))
}

/// The most classes of types that are in no IDL.
const OTHERS_MAX: usize = 256;

/// The class with that repository id, if the type is known.
pub(crate) fn class_of_id<'py>(
    library: &Bound<'py, Library>,
    id: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(class) = library.get().classes.bind(library.py()).get_item(id)? {
        return Ok(Some(class));
    }
    let code = library.get().types.by_id(id);
    code.map(|code| class_of(library, code)).transpose()
}

#[pymethods]
impl Library {
    /// Reads IDL files as one specification, with the IDL that is built in.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        files: Vec<PathBuf>,
        folders: Vec<PathBuf>,
        make_class: Py<PyAny>,
    ) -> PyResult<Self> {
        let options = Options {
            include_dirs: folders,
            ..Options::default()
        };
        let outcome = py.detach(|| rtorb_idl::check(&files, &options));
        Self::of_outcome(py, outcome, make_class)
    }

    /// Reads IDL from a text.
    #[staticmethod]
    fn load_text(py: Python<'_>, name: &str, text: &str, make_class: Py<PyAny>) -> PyResult<Self> {
        let outcome = rtorb_idl::check_text(name, text, &Options::default());
        Self::of_outcome(py, outcome, make_class)
    }

    /// The IDL that is built in: naming, events, scheduling, and the benchmark Cubit.
    #[staticmethod]
    fn standard(py: Python<'_>, make_class: Py<PyAny>) -> Self {
        Self::of_types(py, Arc::new(Types::standard()), make_class)
    }

    /// The files that were read, included ones too.
    fn files(&self) -> Vec<OsString> {
        self.files.clone()
    }

    /// Registers the class of a type by its repository id.
    fn register(&self, py: Python<'_>, id: &str, class: Bound<'_, PyAny>) -> PyResult<()> {
        self.classes.bind(py).set_item(id, class)
    }

    /// The IDL names of the operations and attributes of a valuetype, with those of its bases and of the interfaces that it supports.
    /// There are none without IDL.
    fn value_operations(&self, id: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        if let Some(tree) = &self.tree
            && let Some(own) = tree.ids().find(|it| tree.item(*it).repository_id == id)
        {
            add_operations(tree, own, &mut names);
        }
        names
    }

    /// The declarations in order: `(kind, scoped name, content)`.
    fn declarations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let Some(tree) = &self.tree else {
            let mut types: Vec<_> = self.types.named().collect();
            // What is declared in an interface comes after it.
            types.sort_by_key(|(name, _)| name.matches("::").count());
            for (name, code) in types {
                list.append(("type", name, PyTypeCode::new(&self.types, code)))?;
            }
            return Ok(list);
        };
        for id in tree.ids() {
            let item = tree.item(id);
            if let Some((kind, content)) = self.declaration(py, tree, item)? {
                list.append((kind, tree.full_name(id), content))?;
            }
        }
        Ok(list)
    }

    /// The class of a type.
    #[pyo3(name = "class_of")]
    fn class_for<'py>(slf: &Bound<'py, Self>, code: &PyTypeCode) -> PyResult<Bound<'py, PyAny>> {
        class_of(slf, &code.code)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.classes)?;
        visit.call(&self.others)?;
        visit.call(&self.make_class)
    }

    /// The interface with that name or repository id.
    fn interface(slf: &Bound<'_, Self>, name: &str) -> Option<Interface> {
        let interface = slf.get().types.interface(name)?;
        Some(Interface {
            interface: Arc::clone(interface),
            library: slf.clone().unbind(),
        })
    }

    /// The names of all interfaces.
    fn interface_names(&self) -> Vec<String> {
        self.types.interfaces().map(|it| it.name.clone()).collect()
    }

    /// The type of that name: `sequence<Robot::Position>`.
    fn parse(&self, py: Python<'_>, text: &str) -> PyResult<PyTypeCode> {
        match self.types.parse(text) {
            Ok(code) => Ok(PyTypeCode::new(&self.types, &code)),
            Err(error) => Err(named(py, "IdlError", &error.to_string())),
        }
    }

    /// True if this member of a type may be absent.
    fn is_optional(&self, code: &PyTypeCode, member: &str) -> bool {
        self.types.is_optional(code.code.unaliased(), member)
    }
}

impl Library {
    fn of_outcome(py: Python<'_>, outcome: Outcome, make_class: Py<PyAny>) -> PyResult<Self> {
        let Some(tree) = outcome.tree.as_ref() else {
            return Err(named(py, "IdlError", outcome.render(false).trim_end()));
        };
        let mut types = Types::default();
        let added = types.add_tree(tree);
        added.map_err(|error| named(py, "IdlError", &error.to_string()))?;
        types.add_standard();
        let masks = tree.items.iter();
        let masks = masks.filter(|it| matches!(it.kind, ItemKind::Bitmask(_)));
        let files = outcome.sources.files().iter();
        let files = files.filter_map(|file| Some(file.path()?.as_os_str().to_owned()));
        Ok(Self {
            files: files.collect(),
            masks: masks.map(|it| it.repository_id.clone()).collect(),
            tree: outcome.tree,
            ..Self::of_types(py, Arc::new(types), make_class)
        })
    }

    fn declaration<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        item: &Item,
    ) -> PyResult<Option<(&'static str, Bound<'py, PyAny>)>> {
        Ok(Some(match &item.kind {
            ItemKind::Module => ("module", py.None().into_bound(py)),
            ItemKind::Constant { value, .. } => match value {
                Constant::Enumerator(id, place) => {
                    let id = &tree.item(*id).repository_id;
                    ("enumerator", (id, place).into_pyobject(py)?.into_any())
                }
                value => ("constant", constant(py, value)?),
            },
            ItemKind::Bitmask(mask) => {
                let flags = PyList::empty(py);
                for flag in &mask.flags {
                    flags.append((&*flag.name, flag.position))?;
                }
                let content = (&item.repository_id, flags).into_pyobject(py)?;
                ("bitmask", content.into_any())
            }
            _ => match self.types.by_id(&item.repository_id) {
                Some(code) => {
                    let code = PyTypeCode::new(&self.types, code);
                    ("type", code.into_pyobject(py)?.into_any())
                }
                None => return Ok(None),
            },
        }))
    }
}

/// Adds the operations and attributes of a valuetype or an interface, inherited ones too.
fn add_operations(tree: &Tree, id: ItemId, names: &mut BTreeSet<String>) {
    let (bases, operations, attributes) = match &tree.item(id).kind {
        ItemKind::Valuetype(it) => (
            [&*it.bases, &*it.supports].concat(),
            &it.operations,
            &it.attributes,
        ),
        ItemKind::Interface(it) => (it.bases.clone(), &it.operations, &it.attributes),
        _ => return,
    };
    names.extend(operations.iter().map(|it| it.name.clone()));
    names.extend(attributes.iter().map(|it| it.name.clone()));
    for base in bases {
        add_operations(tree, base, names);
    }
}

fn constant<'py>(py: Python<'py>, value: &Constant) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Constant::Integer(value) => value.into_pyobject(py)?.into_any(),
        Constant::Float(value) => value.into_pyobject(py)?.into_any(),
        Constant::Boolean(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Constant::Char(value) => value.into_pyobject(py)?.into_any(),
        Constant::Text(value) => value.into_pyobject(py)?.into_any(),
        Constant::Fixed { unscaled, scale } => {
            let text = format!("{unscaled}E-{scale}");
            py.import("decimal")?.getattr("Decimal")?.call1((text,))?
        }
        Constant::Enumerator(..) => py.None().into_bound(py),
    })
}

/// Searches the interface of an object: in files, in folders, and at the object itself. Returns a library and the interface's id.
pub(crate) fn search(
    py: Python<'_>,
    search: Search,
    object: &rtorb::ObjectRef,
    make_class: Py<PyAny>,
    left: Option<f64>,
) -> PyResult<(Library, String)> {
    let object = object.clone();
    let found = bounded(py, left, move || search.interface_of(&object, None))?;
    let found = found.map_err(|error| crate::exceptions::of_search(py, error))?;
    let id = found.interface.repository_id.clone();
    Ok((Library::of_types(py, found.types, make_class), id))
}

/// An interface with all that it inherits.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct Interface {
    pub(crate) interface: Arc<DynamicInterface>,
    pub(crate) library: Py<Library>,
}

#[pymethods]
impl Interface {
    #[getter]
    fn id(&self) -> &str {
        &self.interface.repository_id
    }

    /// The types that it uses.
    #[getter]
    fn library(&self, py: Python<'_>) -> Py<Library> {
        self.library.clone_ref(py)
    }

    /// Its scoped name.
    #[getter]
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.library)
    }

    #[getter]
    fn ancestors(&self) -> Vec<String> {
        self.interface.ancestors.clone()
    }

    /// Its operations, inherited ones first.
    fn operations(&self, py: Python<'_>) -> Vec<Operation> {
        let all = self.interface.operations.iter();
        all.map(|it| self.operation(py, Arc::clone(it))).collect()
    }

    /// Its attributes, inherited ones first: name, getter, and setter or `None`.
    fn attributes(&self, py: Python<'_>) -> Vec<(String, Operation, Option<Operation>)> {
        let all = self.interface.attributes.iter();
        all.map(|it| {
            let getter = self.operation(py, Arc::new(it.getter()));
            let setter = it.setter().map(|it| self.operation(py, Arc::new(it)));
            (it.name.clone(), getter, setter)
        })
        .collect()
    }
}

impl Interface {
    fn operation(&self, py: Python<'_>, operation: Arc<DynamicOperation>) -> Operation {
        Operation {
            operation,
            library: self.library.clone_ref(py),
        }
    }
}

/// An operation.
#[pyclass(frozen, module = "rtorb._native")]
pub(crate) struct Operation {
    pub(crate) operation: Arc<DynamicOperation>,
    pub(crate) library: Py<Library>,
}

#[pymethods]
impl Operation {
    #[getter]
    fn name(&self) -> &str {
        &self.operation.name
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.library)
    }

    /// The names of the `in` and `inout` parameters.
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let names: Vec<_> = self.operation.inputs().map(|it| &*it.name).collect();
        PyTuple::new(py, names)
    }

    /// The declaration in IDL.
    fn signature(&self) -> String {
        self.operation.signature(&self.library.get().types)
    }
}
