use rtorb_wire::ior::{
    Component, ExposedPolicy, ExposedProtocol, Ior, PriorityModel, ProtocolProperties,
    TaoUnixEndpoint, TcpProperties, UnixProperties,
};

use super::*;

/// Golden vector V15: IIOP 1.2 with ORB type, code sets, real-time policies and TAO's endpoints.
const WITH_COMPONENTS: &str = "IOR:010000001700000049444c3a546573742f526f756e64747269703a312e3000000100000000000000ba000000010102\
0005000000686f73740000a00f06000000616263646566000004000000000000000800000001000000004f41540100000018000000010000000100010001\
00000001000105090101000000000002000000340000000100000002000000280000000a0000000100000000000000000000002d00000010000000010000\
00020000000000aa2aab2aff7f024f415426000000010000000200000005000000686f73740000a00f6400000005000000686f73740000a10fc800";

/// Golden vector V13: the same address without components.
const PLAIN: &str = "IOR:010000001700000049444c3a546573742f526f756e64747269703a312e3000000100000000000000200000000101020005\
000000686f73740000a00f06000000616263646566000000000000";

/// A reference in the form of a J2EE server: big-endian, padded with 0xbd, port 0, all addresses in security components.
const WITH_TLS: &str = "IOR:00bdbdbd0000001b49444c3a706c616e742e6578616d706c652f50756d703a312e3000bd000000010000000000000158000102bd0000000a70\
756d702d686f73740000000000000b4a4d4249000000126b6579bd0000000400000001000000140000000005010001000000000001010000000000\
49424d0a0000000800bd00112200000000000021000000ec0001bdbd000000020026bdbd000000240000003e00bd001e0026bdbd00000002000000\
127761732e706c616e742e6578616d706c650024bb00000013776173322e706c616e742e6578616d706c6500bd24bb00400000bdbd000000080606\
678102010101000000067265616c6d4104000000bdbd00000000000000010000000806066781020101010000000f0026bdbd000000240000001c00\
bd001e0026bdbd000000010000000931302e312e322e3300bd24bc00400000000000080606678102010101000000067265616c6d4204000000bdbd\
00000000000000010000000806066781020101010000000f000000140000000800000076000224bb";

fn value(fields: &[NamedValue], name: &str) -> String {
    let mut fields = fields.iter().filter(|field| field.name == name);
    fields
        .next()
        .map_or(String::new(), |field| field.value.to_string())
}

#[test]
fn the_address_and_the_key_are_told() {
    let description = Description::parse(PLAIN).unwrap();
    assert_eq!(
        (description.type_id.as_str(), description.nil),
        ("IDL:Test/Roundtrip:1.0", false)
    );
    let profile = &description.profiles[0];
    assert_eq!(profile.name, "IIOP");
    assert_eq!(value(&profile.fields, "host"), "host");
    assert_eq!(value(&profile.fields, "port"), "4000");
    assert_eq!(value(&profile.fields, "object_key"), "616263646566");
    assert_eq!(value(&profile.fields, "object_key_text"), "abcdef");
    assert!(profile.components.is_empty());
}

#[test]
fn every_component_is_told_in_words() {
    let description = Description::parse(WITH_COMPONENTS).unwrap();
    let components = &description.profiles[0].components;
    let names: Vec<&str> = components
        .iter()
        .map(|component| component.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["ORB_TYPE", "CODE_SETS", "POLICIES", "TAO_TAG_ENDPOINTS"]
    );
    assert_eq!(value(&components[0].fields, "orb"), "TAO (0x54414f00)");
    assert_eq!(
        value(&components[1].fields, "char_native"),
        "ISO 8859-1 (0x00010001)"
    );
    assert_eq!(
        value(&components[1].fields, "char_conversions"),
        "UTF-8 (0x05010001)"
    );
    assert_eq!(
        value(&components[2].fields, "PriorityModel"),
        "CLIENT_PROPAGATED, server priority 0"
    );
    assert_eq!(
        value(&components[2].fields, "PriorityBandedConnection"),
        "0 to 10922, 10923 to 32767"
    );
    assert_eq!(
        components[3].fields[1].value.to_string(),
        "host:4001, priority 200"
    );
}

#[test]
fn what_a_reference_says_of_priorities_is_told() {
    let description = Description::parse(WITH_COMPONENTS).unwrap();
    let real_time = description.profiles[0].real_time.as_ref().unwrap();
    assert_eq!(
        real_time.priority_model.as_deref(),
        Some("CLIENT_PROPAGATED")
    );
    assert_eq!(real_time.server_priority, Some(0));
    let bands = real_time.bands.iter().map(|band| (band.low, band.high));
    assert_eq!(bands.collect::<Vec<_>>(), [(0, 10922), (10923, 32767)]);
    let told: Vec<_> = real_time
        .fields()
        .into_iter()
        .map(|field| format!("{}: {}", field.name, field.value))
        .collect();
    assert_eq!(
        told,
        [
            "priority: the caller's, which selects the lane; 100 for clients without RT-CORBA (CLIENT_PROPAGATED)",
            "bands: 0 to 10922, 10923 to 32767",
            "endpoint: host:4000, priority 100",
            "endpoint: host:4001, priority 200",
        ]
    );
    let plain = Description::parse(PLAIN).unwrap();
    assert_eq!(plain.profiles[0].real_time, None);
}

#[test]
fn protocols_and_unix_lanes_are_told_too() {
    let policies = Component::Policies(vec![
        ExposedPolicy::PriorityModel {
            model: PriorityModel::ServerDeclared,
            server_priority: 7,
        },
        ExposedPolicy::ClientProtocols(vec![
            ExposedProtocol {
                profile_tag: profile_tag::TAO_UIOP,
                properties: ProtocolProperties::Unix(UnixProperties {
                    send_buffer_bytes: 0,
                    recv_buffer_bytes: 0,
                }),
            },
            ExposedProtocol {
                profile_tag: profile_tag::INTERNET_IOP,
                properties: ProtocolProperties::Tcp(TcpProperties {
                    send_buffer_bytes: 65536,
                    recv_buffer_bytes: 0,
                    keep_alive: false,
                    dont_route: false,
                    no_delay: true,
                }),
            },
        ]),
    ]);
    let endpoints = ["/run/a.sock", "/run/a.sock.p0l1"]
        .into_iter()
        .zip([60, -1])
        .map(|(path, priority)| TaoUnixEndpoint {
            path: path.to_owned(),
            priority,
        });
    let endpoints = Component::TaoUnixEndpoints(endpoints.collect());
    let tagged = [policies, endpoints].map(|component| component.to_tagged().unwrap());
    let real_time = RealTime::of(profile_tag::TAO_UIOP, &tagged).unwrap();
    let told: Vec<_> = real_time
        .fields()
        .into_iter()
        .map(|field| field.value.to_string())
        .collect();
    assert_eq!(
        told,
        [
            "7, whoever calls (SERVER_DECLARED)",
            "UIOP",
            "IIOP, send buffer 65536 bytes, no_delay",
            "/run/a.sock, priority 60",
            "/run/a.sock.p0l1, every priority",
        ]
    );
    let fields = components::fields(profile_tag::TAO_UIOP, tagged[1].tag, &tagged[1].data).unwrap();
    assert_eq!(fields[0].value.to_string(), "/run/a.sock, priority 60");
}

#[test]
fn nil_is_nil() {
    let description = Description::parse("IOR:01000000010000000000000000000000").unwrap();
    assert!(description.nil);
    assert!(description.profiles.is_empty());
}

#[test]
fn what_is_malformed_is_shown_and_the_rest_is_still_told() {
    let profile = TaggedProfile {
        tag: 0,
        data: vec![1, 1, 2, 0, 0xff],
    };
    let ior = Ior {
        type_id: "IDL:T:1.0".to_owned(),
        profiles: vec![profile],
    };
    let description = Description::of(&ior);
    assert_eq!(
        value(&description.profiles[0].fields, "octets"),
        "01010200ff"
    );
    assert!(!value(&description.profiles[0].fields, "malformed").is_empty());
    for tag in 0..130 {
        let wrong =
            components::fields(0, tag, &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert!(wrong.is_err() || wrong.is_ok_and(|fields| fields.len() < 10));
    }
}

#[test]
fn the_addresses_of_secure_transports_are_told() {
    let description = Description::parse(WITH_TLS).unwrap();
    let profile = &description.profiles[0];
    assert_eq!(
        value(&profile.fields, "object_key_text"),
        "JMBI\\x00\\x00\\x00\\x12key"
    );
    let texts = |name: &str| -> Vec<String> {
        let component = profile.components.iter().find(|one| one.name == name);
        let fields = component.unwrap().fields.iter();
        fields
            .map(|field| format!("{}: {}", field.name, field.value))
            .collect()
    };
    let authentication = "supports EstablishTrustInClient, requires none";
    assert_eq!(
        texts("CSI_SEC_MECH_LIST"),
        [
            "stateful: true",
            "mechanisms: 2",
            "mechanism: 1, requires Integrity, Confidentiality, EstablishTrustInTarget",
            "transport: TLS_SEC_TRANS",
            "supports: Integrity, Confidentiality, DetectReplay, DetectMisordering",
            "requires: Integrity, Confidentiality, EstablishTrustInTarget",
            "address: was.plant.example:9403",
            "address: was2.plant.example:9403",
            &format!("authentication: GSSUP (user and password) for realmA, {authentication}"),
            "attributes: supports IdentityAssertion, requires none, identities: anonymous, principal name, X.509 certificates, \
             distinguished name, names: GSSUP (user and password)",
            "mechanism: 2, requires Integrity, Confidentiality, EstablishTrustInTarget",
            "transport: TLS_SEC_TRANS",
            "supports: Integrity, Confidentiality, DetectReplay, DetectMisordering",
            "requires: Integrity, Confidentiality, EstablishTrustInTarget",
            "address: 10.1.2.3:9404",
            &format!("authentication: GSSUP (user and password) for realmB, {authentication}"),
            "attributes: supports IdentityAssertion, requires none, identities: anonymous, principal name, X.509 certificates, \
             distinguished name, names: GSSUP (user and password)",
        ]
    );
    let ssl = texts("SSL_SEC_TRANS");
    assert!(
        ssl.contains(&"address: pump-host:9403".to_owned()),
        "{ssl:?}"
    );
}

/// As a client of the ORB decodes them.
#[test]
fn the_addresses_of_security_mechanisms_are_those_that_are_told() {
    let ior = Ior::parse(WITH_TLS).unwrap();
    let profile = ior.iiop_profiles().next().unwrap();
    let mut components = profile.components.iter();
    let list = components.find_map(|one| match Component::from_tagged(one) {
        Ok(Component::CsiSecMechList(list)) => Some(list),
        _ => None,
    });
    let list = list.unwrap();
    assert!(list.stateful);
    let addresses: Vec<_> = list
        .tls_addresses()
        .map(|address| (address.host, address.port))
        .collect();
    let expected = [
        ("was.plant.example", 9403),
        ("was2.plant.example", 9403),
        ("10.1.2.3", 9404),
    ];
    assert_eq!(
        addresses,
        expected.map(|(host, port)| (host.to_owned(), port))
    );
    let again = Component::CsiSecMechList(list.clone()).to_tagged().unwrap();
    assert_eq!(
        Component::from_tagged(&again).unwrap(),
        Component::CsiSecMechList(list)
    );
}

#[test]
fn the_longer_ssl_component_of_visibroker_is_told() {
    let data = [1, 0, 0, 0, 0x66, 0, 0, 0, 6, 0, 0, 0, 0x15, 0x21];
    let fields = components::fields(0, 20, &data).unwrap();
    assert_eq!(value(&fields, "port"), "8469");
    assert_eq!(value(&fields, "requires"), "Integrity, Confidentiality");
}

#[test]
fn known_types_of_orbs_have_names() {
    let orb = |number: u32| {
        let mut data = vec![0, 0, 0, 0];
        data.extend(number.to_be_bytes());
        value(&components::fields(0, 0, &data).unwrap(), "orb")
    };
    assert_eq!(orb(0x5649_5306), "VisiBroker (Borland) (0x56495306)");
    assert_eq!(orb(0x4954_5f01), "Orbix (IONA) (0x49545f01)");
    assert_eq!(orb(0x574c_5300), "WebLogic (BEA) (0x574c5300)");
    assert_eq!(orb(0x5355_4e00), "JDK (Sun) (0x53554e00)");
    assert_eq!(orb(0x1234_5678), "ORB (0x12345678)");
}

#[test]
fn a_key_is_told_as_text_where_it_has_some() {
    let text = |key: &[u8]| value(&key_fields(key), "object_key_text");
    assert_eq!(text(b"NameService"), "NameService");
    assert_eq!(text(b"\x00\x01RootPOA\xff"), "\\x00\\x01RootPOA\\xff");
    assert_eq!(text(b"\x00ab\x01cd"), "");
    assert_eq!(text(b"ok"), "ok");
    assert_eq!(text(b""), "");
}

/// Bytes from a peer: each prefix, and each byte changed, is told or malformed.
#[test]
fn a_damaged_list_of_security_mechanisms_is_told_as_far_as_it_goes() {
    let profile = &Ior::parse(WITH_TLS).unwrap().profiles[0];
    let body = IiopProfile::from_tagged(profile).unwrap();
    for component in &body.components {
        let data = &component.data;
        for at in 0..data.len() {
            let _ = components::fields(0, component.tag, &data[..at]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = data.clone();
                damaged[at] = value;
                let fields = components::fields(0, component.tag, &damaged);
                assert!(fields.is_err() || fields.is_ok_and(|told| told.len() < 100));
            }
        }
    }
}
