//! The path by which generated code names its ORB.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};

/// The ORB whose path the back end writes.
pub(crate) const RTORB: &str = "rtorb";

/// True for the path of a Rust crate, or of a module in it.
pub(crate) fn is_crate_path(text: &str) -> bool {
    text.split("::")
        .all(|name| syn::parse_str::<Ident>(name).is_ok())
}

/// The tokens of the back end with another path than [`RTORB`] for the ORB.
pub(super) fn with_runtime(tokens: TokenStream, runtime: &str) -> TokenStream {
    if runtime == RTORB {
        return tokens;
    }
    let path = runtime.parse().expect("it is a path");
    named(tokens, &path)
}

fn named(tokens: TokenStream, path: &TokenStream) -> TokenStream {
    let mut done: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                done.push(Group::new(group.delimiter(), named(group.stream(), path)).into());
            }
            TokenTree::Ident(ident) if ident == RTORB && begins_path(&done) => {
                done.extend(path.clone());
            }
            token => done.push(token),
        }
    }
    done.into_iter().collect()
}

/// True if `::` stands before a name, and before that no name of a module.
fn begins_path(before: &[TokenTree]) -> bool {
    let [rest @ .., TokenTree::Punct(one), TokenTree::Punct(_)] = before else {
        return false;
    };
    let is_module = |ident: &Ident| syn::parse_str::<syn::Path>(&ident.to_string()).is_ok();
    one.as_char() == ':' && !matches!(rest.last(), Some(TokenTree::Ident(it)) if is_module(it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn only_the_path_of_the_orb_is_replaced() {
        let tokens = quote! {
            impl ::rtorb::codegen::Interface for super::rtorb::codegen::Valve {}
            fn get(rtorb: u8) -> a::rtorb::Valve { ::rtorb::codegen::typed!(::rtorb::codegen::Vec) }
        };
        let expected = quote! {
            impl ::sdk::orb::codegen::Interface for super::rtorb::codegen::Valve {}
            fn get(rtorb: u8) -> a::rtorb::Valve { ::sdk::orb::codegen::typed!(::sdk::orb::codegen::Vec) }
        };
        let replaced = with_runtime(tokens, "sdk::orb");
        assert_eq!(replaced.to_string(), expected.to_string());
    }

    #[test]
    fn a_path_of_a_crate_is_names_and_no_keywords() {
        for text in [
            "",
            "::a",
            "rtorb-embedded",
            "crate",
            "self::orb",
            "a::",
            "a<b>",
            "../a",
        ] {
            assert!(!is_crate_path(text), "{text}");
        }
        for text in ["rtorb_embedded", "sdk::orb"] {
            assert!(is_crate_path(text), "{text}");
        }
    }
}
