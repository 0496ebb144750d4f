//! Every operation, and every exception that the standard has for it.

use super::serving::{Serving, name};
use rtorb_services::naming::NamingConfig;

#[test]
fn what_is_bound_is_resolved() {
    let serving = Serving::new(NamingConfig::default());
    let object = serving.object("thing");
    serving
        .root
        .bind(&name("a.k"), Some(&object))
        .expect("bound");
    let resolved = serving.root.resolve(&name("a.k")).expect("resolved");
    assert_eq!(resolved, Some(object.clone()));
    let inner = serving
        .root
        .bind_new_context(&name("in"))
        .expect("bound")
        .expect("a context");
    inner.bind(&name("b"), Some(&object)).expect("bound");
    let resolved = serving.root.resolve_str("in/b").expect("resolved");
    assert_eq!(resolved, Some(object));
}
