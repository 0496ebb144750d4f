//! JacORB's notification service (CosNotification), used by calls in JSON: a channel, a filter, structured events. We serve no such channel.

use std::path::Path;

use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::running::until;
use rtorb_tests::skip;
use serde_json::{Value as Json, json};

use crate::dynamic_calls::Caller;

#[test]
fn a_filter_lets_through_the_structured_events_that_it_describes() {
    let Some(jacorb) = jacorb() else { return };
    if !Path::new(IDL).exists() {
        return skip("the IDL of notification is not there: apt-get install omniorb-idl");
    }
    let (_service, factory) = jacorb.serve_notification();
    let caller = Caller::in_folder(IDL, None);
    let call = |object: &Json, operation: &str, arguments: &[Json]| {
        let object = object.as_str().expect("a reference");
        let result = caller.call(object, operation, arguments);
        result.unwrap_or_else(|raised| panic!("{operation}: {raised}"))
    };
    // The factory says that it is of an interface of JacORB's own.
    let of_factory = Caller::in_folder(IDL, Some("CosNotifyChannelAdmin::EventChannelFactory"));
    let created = of_factory.call(&factory, "create_channel", &[json!([]), json!([])]);
    let channel = &created.expect("a channel")["return"];

    let filters = call(channel, "_get_default_filter_factory", &[]);
    let filter = call(&filters, "create_filter", &[json!("EXTENDED_TCL")]);
    let hot = json!([{"event_types": [], "constraint_expr": "$temperature > 100"}]);
    call(&filter, "add_constraints", &[hot]);
    let text = filters.as_str().expect("a reference");
    let refused = caller.call(text, "create_filter", &[json!("PROSE")]);
    let refused = refused.expect_err("a language that it does not know");
    let id = "IDL:omg.org/CosNotifyFilter/InvalidGrammar:1.0";
    assert_eq!(refused["exception"], json!(id));

    let consumers = call(channel, "_get_default_consumer_admin", &[]);
    let structured = [json!("STRUCTURED_EVENT")];
    let obtained = call(&consumers, "obtain_notification_pull_supplier", &structured);
    let consumer = &obtained["return"];
    call(consumer, "add_filter", &[filter]);
    call(consumer, "connect_structured_pull_consumer", &[Json::Null]);

    let suppliers = call(channel, "_get_default_supplier_admin", &[]);
    let obtained = call(&suppliers, "obtain_notification_push_consumer", &structured);
    let supplier = &obtained["return"];
    call(supplier, "connect_structured_push_supplier", &[Json::Null]);
    for degrees in [20, 150, 30, 160] {
        call(supplier, "push_structured_event", &[event(degrees)]);
    }

    for expected in [150, 160] {
        let pulled = until("an event comes", || {
            let pulled = call(consumer, "try_pull_structured_event", &[]);
            (pulled["has_event"] == json!(true)).then_some(pulled)
        });
        assert_eq!(pulled["return"], event(expected));
    }
    let none = call(consumer, "try_pull_structured_event", &[]);
    assert_eq!(none["has_event"], json!(false), "{none}");
    call(channel, "destroy", &[]);
}

/// A structured event with a temperature.
fn event(degrees: i32) -> Json {
    json!({
        "header": {
            "fixed_header": {
                "event_type": {"domain_name": "Plant", "type_name": "Temperature"},
                "event_name": "oven",
            },
            "variable_header": [],
        },
        "filterable_data": [{"name": "temperature", "value": {"type": "long", "value": degrees}}],
        "remainder_of_body": null,
    })
}

/// Of Debian's omniorb-idl.
const IDL: &str = "/usr/share/idl/omniORB/COS";
