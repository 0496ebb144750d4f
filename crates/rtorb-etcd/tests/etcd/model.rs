//! The tests of the other stores.

use super::member::Member;
use rtorb_etcd::EtcdStore;
use rtorb_services::naming::random_changes_agree_with_the_model as check;
use rtorb_services::naming::shared_store::SharedStore;
use std::cell::Cell;
use std::sync::Arc;

#[test]
fn random_changes_of_two_services_agree_with_the_model() {
    let Some(etcd) = Member::start() else {
        return;
    };
    let cases = Cell::new(0);
    check(CASES, || {
        cases.set(cases.get() + 1);
        let url = etcd.url(&format!("case/{}", cases.get()));
        move || Arc::new(EtcdStore::open(&url).expect("a store")) as Arc<dyn SharedStore>
    });
}

/// Each makes some thirty transactions.
const CASES: u32 = 24;
