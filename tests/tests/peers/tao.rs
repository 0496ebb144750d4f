//! References as TAO writes them.

use rtorb_tests::peers::tao::{Model, TaoReference};

#[test]
fn the_policies_are_those_of_a_live_server() {
    let reference = TaoReference {
        endpoints: vec![(4000, -1)],
        model: Some((Model::Server, 43)),
        bands: vec![(35, 39), (40, 46), (47, 50)],
        big: false,
    };
    let hex = |octets: &[u8]| {
        octets
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect::<String>()
    };
    // The first padding of each encapsulation is undefined.
    let live = "01bbf05f020000002d0000001400000001bbf05f03000000230027002800\
                2e002f0032002800\
                00000a00000001bbf05f010000002b00";
    assert_eq!(hex(&reference.policies_component()), live);
    let live = "01bbf05f010000000a0000003132372e302e302e3100a00fffff";
    assert_eq!(hex(&reference.endpoints_component()), live);
}
