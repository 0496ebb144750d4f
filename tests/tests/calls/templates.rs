//! Calls to interfaces of instances of template modules.

use crate::common::Pair;
use rtorb::{Interface, SystemException};
use rtorb_tests::snapshots::templates::by_name::{
    Lookup, LookupServant, Pair as Entry, pair_store,
};
use rtorb_tests::snapshots::templates::{Sample, number_store, sample_store};
use rtorb_tests::snapshots::texts;

fn entry() -> Entry {
    let value = Sample { x: 1, y: 0.5 };
    Entry {
        key: "one".to_owned(),
        value,
    }
}

struct Table;

impl pair_store::HolderServant for Table {
    fn all(&self) -> Result<Vec<Entry>, SystemException> {
        Ok(vec![entry(); 3])
    }

    fn add(
        &self,
        _: &Entry,
        others: &pair_store::Bounded,
    ) -> Result<(), pair_store::HolderAddError> {
        let count = others.len().try_into().unwrap();
        Err(pair_store::Full { count }.into())
    }

    fn first(&self) -> Result<Entry, SystemException> {
        Ok(entry())
    }

    fn set_first(&self, value: &Entry) -> Result<(), SystemException> {
        assert_eq!(*value, entry());
        Ok(())
    }
}

impl LookupServant for Table {
    fn find(&self, key: &str) -> Result<Sample, SystemException> {
        assert_eq!(key, "one");
        Ok(entry().value)
    }
}

#[test]
fn instances_of_template_modules_are_called_like_other_interfaces() {
    let pair = Pair::new();
    let lookup: Lookup = pair.serve(Table);
    assert_eq!(lookup.find("one").unwrap(), entry().value);
    assert_eq!(lookup.all().unwrap(), [entry(), entry(), entry()]);
    lookup.set_first(&entry()).unwrap();
    let others = vec![entry(); 2].try_into().unwrap();
    let full = pair_store::Full { count: 2 };
    assert_eq!(lookup.add(&entry(), &others).unwrap_err(), full.into());
}

#[test]
fn each_instance_has_types_of_its_own() {
    assert_eq!(texts::MOST, 3);
    assert_eq!(number_store::Bounded::BOUND, 8);
    let ids = [
        sample_store::Holder::REPOSITORY_ID,
        number_store::Holder::REPOSITORY_ID,
        pair_store::Holder::REPOSITORY_ID,
        texts::Holder::REPOSITORY_ID,
    ];
    let expected = [
        "IDL:Templates/SampleStore/Holder:1.0",
        "IDL:Templates/NumberStore/Holder:1.0",
        "IDL:Templates/ByName/PairStore/Holder:1.0",
        "IDL:Texts/Holder:1.0",
    ];
    assert_eq!(ids, expected);
}
