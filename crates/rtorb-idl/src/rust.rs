//! The Rust back end: generates Rust text from a checked tree, as `docs/reference/mapping.md` describes.

mod abstract_values;
mod ami;
mod async_servants;
mod bits;
mod constants;
mod cycles;
mod deferred_servants;
mod documentation;
mod enums;
mod errors;
mod escapes;
mod exceptions;
mod interfaces;
mod layouts;
mod names;
pub(crate) mod operations;
mod print;
mod refusals;
mod runtime;
mod scope;
mod servants;
mod started_calls;
mod structs;
mod timings;
mod type_codes;
mod types;
mod unions;
mod values;

use proc_macro2::TokenStream;
use quote::quote;

use layouts::Layouts;
use refusals::Refusals;
pub use refusals::{NOT_GENERATED, NotGenerated};
pub(crate) use runtime::{RTORB, is_crate_path};
use scope::{Context, Scope};

use crate::diagnostic::Diagnostic;
use crate::tree::{InterfaceFlavour, Item, ItemId, ItemKind, Tree};

/// Generates the Rust text of everything in `tree`, included files too.
///
/// The text depends only on `::rtorb::codegen` and `core`, and works inside any module. A comment at its top names the omitted
/// declarations: those of included files that have no Rust form and are not used by the main file.
///
/// # Errors
/// A diagnostic for each construct that has no Rust form yet ([`NOT_GENERATED`]), and for each chosen name (`@rust_name`) that
/// is wrong or taken.
pub fn generate(tree: &Tree) -> Result<String, Vec<Diagnostic>> {
    generate_with(tree, Additions::default())
}

/// Generates the Rust text as [`generate`] does, with these additions.
///
/// # Errors
/// As `generate`.
pub fn generate_with(tree: &Tree, additions: Additions) -> Result<String, Vec<Diagnostic>> {
    generate_for(tree, RTORB, additions)
}

/// What is generated beside the usual text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Additions {
    /// A second form of each call, which is started: [`Compiler::start_calls`](crate::Compiler::start_calls).
    pub starts_calls: bool,
    /// A second trait of servants, which defer their replies: [`Compiler::defer_replies`](crate::Compiler::defer_replies).
    pub defers_replies: bool,
    /// A third trait of servants, whose operations are `async` and are made of deferred replies:
    /// [`Compiler::async_servants`](crate::Compiler::async_servants).
    pub has_async_servants: bool,
    /// Methods that send calls, and handlers and pollers for their replies, which are made of started calls:
    /// [`Compiler::ami`](crate::Compiler::ami).
    pub has_ami: bool,
}

impl Additions {
    /// Returns true if a second form of each call is generated, which is started.
    fn starts_calls(self) -> bool {
        self.starts_calls || self.has_ami
    }

    /// Returns true if a second trait of servants is generated, which defer their replies.
    fn defers_replies(self) -> bool {
        self.defers_replies || self.has_async_servants
    }
}

/// Like [`generate`], for the ORB with that path, and with these additions.
pub(crate) fn generate_for(
    tree: &Tree,
    runtime: &str,
    additions: Additions,
) -> Result<String, Vec<Diagnostic>> {
    let layouts = Layouts::of(tree);
    let Refusals {
        mut diagnostics,
        left_out,
    } = Refusals::of(tree, &layouts);
    let mut named = tree.clone();
    diagnostics.extend(escapes::settle(&mut named, &left_out, additions));
    let tree = &named;
    let bases = operations::bases(tree);
    let outermost = Scope::outermost(Context {
        tree,
        layouts: &layouts,
        bases: &bases,
        left_out: &left_out,
        additions,
    });
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let left_out = left_out
        .iter()
        .map(|(&id, reason)| format!("`{}`: {reason}", tree.full_name(id)));
    let left_out: Vec<String> = left_out.collect();
    let value_base = abstract_values::value_base(outermost);
    let items = items(outermost);
    let items = runtime::with_runtime(quote!(#value_base #items), runtime);
    Ok(print::print(items, runtime, &left_out))
}

/// Everything that `scope` declares.
fn items(scope: Scope<'_>) -> TokenStream {
    scope.items().map(|id| with_module(scope, id)).collect()
}

/// The item `id`, and the module of the declarations inside it.
fn with_module(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    let generated = item_itself(scope, id);
    let inner = scope.within(id);
    let is_module = matches!(item.kind, ItemKind::Module);
    if !is_module && inner.items().next().is_none() {
        return generated;
    }
    let documentation = if is_module {
        documentation::attributes(&item.documentation)
    } else {
        documentation::attributes(&[format!("Declarations inside the IDL `{}`.", item.name)])
    };
    let name = names::module_ident(item);
    let content = items(inner);
    quote!(#generated #documentation pub mod #name { #content })
}

fn item_itself(scope: Scope<'_>, id: ItemId) -> TokenStream {
    let item = scope.tree.item(id);
    match &item.kind {
        ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Local => {
            servants::local(scope, id)
        }
        ItemKind::Interface(_) => interfaces::generate(scope, id),
        ItemKind::Undefined { .. } => interfaces::reference(scope, id),
        ItemKind::Struct { .. } => structs::generate(scope, id),
        ItemKind::Exception { .. } => exceptions::generate(scope, id),
        ItemKind::Union(union) => unions::generate(scope, id, union),
        ItemKind::Enum { enumerators } => enums::generate(scope, id, enumerators),
        ItemKind::Bitmask(mask) => bits::mask(scope, id, mask),
        ItemKind::Bitset(set) => bits::set(scope, id, set),
        ItemKind::Constant { ty, value } => constants::generate(scope, id, ty, value),
        ItemKind::Alias { ty } => alias(item, &scope.owned(ty)),
        ItemKind::Native => alias(
            item,
            &quote!(
                ::rtorb::codegen::Arc<
                    dyn ::core::any::Any + ::core::marker::Send + ::core::marker::Sync,
                >
            ),
        ),
        ItemKind::Valuetype(value) => values::generate(scope, id, value),
        ItemKind::ValueBox { ty } => values::generate_box(scope, id, ty),
        ItemKind::Module | ItemKind::Other { .. } => TokenStream::new(),
    }
}

fn alias(item: &Item, ty: &TokenStream) -> TokenStream {
    let documentation = documentation::attributes(&item.documentation);
    let name = names::item_ident(item);
    quote!(#documentation pub type #name = #ty;)
}
