//! TypeCodes of generated types, so that their values go into an `any`.

use proc_macro2::TokenStream;

use super::scope::Scope;
use crate::tree::ItemId;

/// `impl Typed` for the item `id`.
pub(super) fn typed(_scope: Scope<'_>, _id: ItemId) -> TokenStream {
    TokenStream::new()
}
