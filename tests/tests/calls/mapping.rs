//! The code that docs/reference/mapping.md shows works. `cargo xtask book` wants each fragment of a page in a compiled file, as it is.

use std::error::Error;

use rtorb::{ExceptionKind, Intervention, Orb, PoaPolicies, ServantActivator, SystemException};
use rtorb_tests::ours::Ours;
use rtorb_tests::snapshots::bits::{Rights, State};

rtorb::include_idl!("greeter");

#[test]
fn bits_have_names() -> Result<(), Box<dyn Error>> {
    // @bit_bound(8) bitmask Rights { read, write, @position(7) is_owner };
    let rights = Rights::READ | Rights::IS_OWNER; // Rights(READ | IS_OWNER)
    assert!(rights.contains(Rights::READ));

    // bitset State { bitfield<1> running; bitfield<3> gear; bitfield<2>; bitfield<4, short> slope, trim; bitfield<8> level; };
    let mut state = State::default(); // State(0), a u32
    state.set_running(true);
    state.set_gear(5)?; // OverWidth if it has more than 3 bits
    assert_eq!((state.running(), state.gear()), (true, 5));

    assert_eq!(format!("{rights:?}"), "Rights(READ | IS_OWNER)");
    assert_eq!(state.0, 0b1011_u32);
    assert!(state.set_gear(8).is_err());
    Ok(())
}

struct Host {
    name: &'static str,
}

impl GreeterServant for Host {
    fn greet(&self, name: &str) -> Result<String, SystemException> {
        Ok(format!("Hello, {name}! I am {}.", self.name))
    }
}

#[test]
fn objects_without_activation_have_readable_keys() -> Result<(), Box<dyn Error>> {
    let ours = Ours::serve();
    let orb = &ours.orb;
    let poa = orb
        .root_poa()?
        .create_poa("Hosts", PoaPolicies::PERSISTENT)?;
    poa.set_servant_locator::<Greeter, _, _>(|id| match id {
        b"ada" => Ok(Host { name: "Ada" }),
        b"grace" => Ok(Host { name: "Grace" }),
        _ => Err(ExceptionKind::ObjectNotExist.into()),
    })?;
    let ada: Greeter = poa.create_reference_with_id("ada")?;
    orb.bind_object_key("Ada", ada.as_object())?;

    let object = format!("corbaloc:iiop:1.2@{}/Ada", ours.address());
    let object = Orb::builder().build()?.string_to_object(&object)?;
    assert_eq!(
        Greeter::narrow(&object)?.greet("Rust")?,
        "Hello, Rust! I am Ada."
    );
    let nobody: Greeter = poa.create_reference_with_id("nobody")?;
    let refused = nobody.greet("Rust").expect_err("there is no such object");
    assert_eq!(refused.kind, ExceptionKind::ObjectNotExist);
    Ok(())
}

/// Makes the servant of a host when its first request comes.
struct Hosts;

impl ServantActivator for Hosts {
    type Servant = Host;

    fn incarnate(&self, id: &[u8]) -> Result<Host, Intervention> {
        match id {
            b"ada" => Ok(Host { name: "Ada" }),
            _ => Err(ExceptionKind::ObjectNotExist.into()),
        }
    }
}

#[test]
fn adapters_and_objects_are_made_when_they_are_called() -> Result<(), Box<dyn Error>> {
    let ours = Ours::serve();
    let root = ours.orb.root_poa()?;
    root.set_adapter_activator(|root, name| {
        let Ok(floor) = root.create_poa(name, PoaPolicies::PERSISTENT) else {
            return false;
        };
        floor.set_servant_activator::<Greeter, _>(Hosts).is_ok()
    })?;
    let object = format!("corbaloc:iiop:1.2@{}/First/ada", ours.address());
    let object = Orb::builder().build()?.string_to_object(&object)?;
    assert_eq!(
        Greeter::narrow(&object)?.greet("Rust")?,
        "Hello, Rust! I am Ada."
    );
    Ok(())
}
