//! The timing of annotated operations in generated code: a description of each, and timed calls.
//!
//! Interfaces without annotations get no code from here.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::names;
use super::operations::{self, Call};
use crate::tree::{Annotation, ItemId, MissRatio, TIMING_ANNOTATIONS, Tree};

/// The method of `Interface` that returns the timings, for interface `id`.
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

/// The method of `ServedBy` that finds the timing of a call by its number in `dispatched`.
pub(super) fn finder(tree: &Tree, id: ItemId, dispatched: &[Call<'_>]) -> TokenStream {
    let all = operations::all(tree, id);
    let timed = all.iter().filter(|call| call.is_timed()).enumerate();
    let arms: Vec<_> = timed
        .map(|(place, timed)| {
            let mut names = dispatched.iter().map(|call| &call.wire_name);
            let number = names
                .position(|name| *name == timed.wire_name)
                .expect("an interface dispatches all operations that it has");
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

/// The object inside a reference of interface `id`. Its ORB learns the timings of the interface.
pub(super) fn prepared(tree: &Tree, id: ItemId) -> TokenStream {
    if operations::all(tree, id).iter().any(Call::is_timed) {
        quote!(::rtorb::codegen::UntypedReference::with_timings(
            object,
            <Self as ::rtorb::codegen::Interface>::timings()
        ))
    } else {
        quote!(object)
    }
}

/// The call `invocation`, timed if it has a reply and is among the timed calls of the interface `name`, there at index `place`.
pub(super) fn timed(
    name: &Ident,
    place: Option<usize>,
    call: &Call<'_>,
    invocation: &TokenStream,
) -> TokenStream {
    match place.filter(|_| !call.oneway) {
        Some(place) => {
            let place = Literal::usize_unsuffixed(place);
            quote! {
                self.0.timed(
                    &<#name as ::rtorb::codegen::Interface>::timings()[#place],
                    || #invocation,
                )
            }
        }
        None => invocation.clone(),
    }
}

/// The documentation of a call: its comment, and its annotations that state requirements.
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
    lines.push(format!("Requirements: `{}`.", known.join(" ")));
    lines
}

fn as_written(annotation: &Annotation) -> String {
    if annotation.parameters.is_empty() {
        return format!("@{}", annotation.name);
    }
    let values = annotation
        .parameters
        .iter()
        .map(|parameter| parameter.value.as_str());
    format!("@{}({})", annotation.name, values.collect::<String>())
}

fn description(tree: &Tree, id: ItemId, call: &Call<'_>) -> TokenStream {
    let name = format!("{}::{}", tree.full_name(id), call.wire_name);
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
        let name = format_ident!(
            "{}",
            names::upper_camel(&criticality.name().replace('-', "_"))
        );
        quote!(.critical(::rtorb::codegen::Criticality::#name))
    });
    let numbers = [
        ("network_priority", timing.dscp.map(u32::from)),
        ("largest_message", timing.message_bytes_max),
        ("queue", timing.queue_max),
    ];
    let stated = numbers.into_iter().filter_map(|(method, number)| {
        let number = Literal::u32_unsuffixed(number?);
        let method = format_ident!("{method}");
        Some(quote!(.#method(#number)))
    });
    let statistical = timing.miss_ratio.map(|MissRatio { misses, calls }| {
        let [misses, calls] = [misses, calls].map(Literal::u32_unsuffixed);
        quote!(.statistical(#misses, #calls))
    });
    let oneway = call.oneway.then(|| quote!(.oneway()));
    quote!(::rtorb::codegen::OperationTiming::new(#name) #oneway #(#said)* #critical #(#stated)* #statistical)
}
