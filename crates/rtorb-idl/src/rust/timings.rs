//! The timing of annotated operations in generated code: a description of each, and the calls that are timed by it.
//!
//! Nothing here gives any text for an interface without annotations.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::operations::{self, Call};
use super::scope::idl_name;
use crate::tree::{Annotation, Criticality, ItemId, TIMING_ANNOTATIONS, Tree};

/// The method of `Interface` that shows them, for interface `id`.
pub(super) fn table(tree: &Tree, id: ItemId) -> TokenStream {
    let calls = operations::all(tree, id);
    let descriptions: Vec<_> = calls
        .iter()
        .filter(|call| call.is_timed())
        .map(|call| description(tree, id, call))
        .collect();
    if descriptions.is_empty() {
        return TokenStream::new();
    }
    let count = Literal::usize_unsuffixed(descriptions.len());
    quote! {
        fn timings() -> &'static [::rtorb::codegen::OperationTiming] {
            static TIMINGS: [::rtorb::codegen::OperationTiming; #count] = [#(#descriptions),*];
            &TIMINGS
        }
    }
}

/// The method of `ServedBy` that finds the timing of a call by its number.
pub(super) fn finder(calls: &[Call<'_>]) -> TokenStream {
    let numbers = calls.iter().enumerate();
    let arms: Vec<_> = numbers
        .filter(|(_, call)| call.is_timed())
        .enumerate()
        .map(|(place, (number, _))| {
            let number = Literal::usize_unsuffixed(number);
            let place = Literal::usize_unsuffixed(place);
            quote!(#number => ::core::option::Option::Some(#place),)
        })
        .collect();
    if arms.is_empty() {
        return TokenStream::new();
    }
    quote! {
        fn timing_of(operation: usize) -> ::core::option::Option<usize> {
            match operation {
                #(#arms)*
                _ => ::core::option::Option::None,
            }
        }
    }
}

/// A reference for the type of interface `id`: its ORB is told which calls to expect.
pub(super) fn prepared(tree: &Tree, id: ItemId) -> TokenStream {
    match operations::all(tree, id).iter().any(Call::is_timed) {
        true => {
            quote!(object.with_timings(<Self as ::rtorb::codegen::Interface>::timings()))
        }
        false => quote!(object),
    }
}

/// The call `invocation` of the operation at `place` among the timed ones of its interface, timed where something comes back.
pub(super) fn timed(
    place: Option<usize>,
    call: &Call<'_>,
    invocation: &TokenStream,
) -> TokenStream {
    match place.filter(|_| !call.oneway) {
        Some(place) => {
            let place = Literal::usize_unsuffixed(place);
            quote! {
                self.0.timed(
                    &<Self as ::rtorb::codegen::Interface>::timings()[#place],
                    || self.0.#invocation,
                )
            }
        }
        None => quote!(self.0.#invocation),
    }
}

/// The documentation of a call: its comment, and its annotations on timing.
pub(super) fn documented(comment: &[String], annotations: &[Annotation]) -> Vec<String> {
    let mut lines = comment.to_vec();
    let known: Vec<_> = annotations
        .iter()
        .filter(|annotation| TIMING_ANNOTATIONS.contains(&annotation.name.as_str()))
        .map(as_written)
        .collect();
    if known.is_empty() {
        return lines;
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(format!("Timing: `{}`.", known.join(" ")));
    lines
}

fn as_written(annotation: &Annotation) -> String {
    let values = annotation
        .parameters
        .iter()
        .map(|(_, value)| value.as_str());
    format!("@{}({})", annotation.name, values.collect::<String>())
}

fn description(tree: &Tree, id: ItemId, call: &Call<'_>) -> TokenStream {
    let name = format!("{}::{}", idl_name(tree, id), call.wire_name);
    let timing = call.timing;
    let times = [
        ("worst_case_ns", timing.worst_ns),
        ("deadline_ns", timing.deadline_ns),
        ("period_ns", timing.period_ns),
    ];
    let said = times.into_iter().filter_map(|(method, ns)| {
        let ns = Literal::u64_unsuffixed(ns?);
        let method = format_ident!("{method}");
        Some(quote!(.#method(#ns)))
    });
    let critical = timing.criticality.map(|criticality| {
        let name = match criticality {
            Criticality::VeryLow => format_ident!("VeryLow"),
            Criticality::Low => format_ident!("Low"),
            Criticality::Medium => format_ident!("Medium"),
            Criticality::High => format_ident!("High"),
            Criticality::VeryHigh => format_ident!("VeryHigh"),
        };
        quote!(.critical(::rtorb::codegen::Criticality::#name))
    });
    let oneway = call.oneway.then(|| quote!(.oneway()));
    quote!(::rtorb::codegen::OperationTiming::new(#name) #oneway #(#said)* #critical)
}
