//! Tango: its client against our device server, and its device server against our client.

use std::thread;

use rtorb::any::{Any, Typed};
use rtorb::cdr::Encode;
use rtorb::endpoint::Endpoint;
use rtorb::{ExceptionKind, Orb};
use rtorb_tango::motor::{self, Motor};
use rtorb_tango::tango::{
    AttrDataFormat, AttrQuality, AttrValUnion, AttributeDim, AttributeValue, AttributeValue4,
    ClntIdent, DevFailed, DevSource, DevState, DevVarLongStringArray, Device4WriteAttributes4Error,
    Device5, Device5ReadAttributes5Error, DeviceCommandInoutError, TimeVal,
};
use rtorb_tango::{DeviceServer, Value};
use rtorb_tests::peers::tango::{pytango, tango_test};

#[test]
fn pytango_reads_writes_and_commands_our_device() {
    let orb = Orb::builder().build().expect("the ORB can be built");
    let server = DeviceServer::new(&orb, "Motors", "interop").expect("it can be served");
    let exported = server.export("test/motor/1", motor::class(), Motor::default());
    exported.expect("the name is free");
    let serving = orb.clone();
    let running = thread::spawn(move || serving.run());
    let address = orb
        .endpoints()
        .into_iter()
        .find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => Some(format!("{host}:{port}")),
            _ => None,
        });
    let address = address.expect("it listens on loopback");
    let checks = pytango(
        "motor_client",
        &format!("tango://{address}/test/motor/1#dbase=no"),
    );
    orb.shutdown();
    running.join().expect("no panic").expect("the ORB runs");
    let Some(checks) = checks else { return };
    assert!(
        checks
            .last()
            .is_some_and(|last| last.starts_with("ok unknown device"))
    );
}

#[test]
fn we_read_and_write_attributes_of_tango_test() {
    let Some((_running, url)) = tango_test("test/test/1") else {
        return;
    };
    let device = device(&url);
    assert_eq!(device.name().as_deref(), Ok("test/test/1"));
    assert_eq!(
        device.adm_name().as_deref(),
        Ok("dserver/TangoTest/interop")
    );
    let info = device.info_3().expect("it is there");
    assert_eq!((&*info.dev_class, info.server_version), ("TangoTest", 5));
    let speed = AttrValUnion::DoubleAttValue(vec![-2.5]);
    let text = AttrValUnion::StringAttValue(vec!["gr\u{fc}n".to_owned()]);
    let shorts = AttrValUnion::ShortAttValue(vec![1, -2, 3]);
    let values = [
        value("ampli", AttrDataFormat::Scalar, speed),
        value("string_scalar", AttrDataFormat::Scalar, text),
        value("short_spectrum", AttrDataFormat::Spectrum, shorts),
    ];
    device
        .write_attributes_4(&values, &client())
        .expect("they are writable");
    let names = [
        "ampli",
        "string_scalar",
        "short_spectrum",
        "State",
        "nosuch",
    ];
    let names = names.map(str::to_owned);
    let read = device.read_attributes_5(&names, DevSource::Dev, &client());
    let read = read.expect("one that is wrong does not matter");
    // `ampli` can only be written; elsewhere the set value follows the read one.
    assert_eq!(read[0].value, AttrValUnion::DoubleAttValue(vec![-2.5]));
    let texts = ["gr\u{fc}n", "gr\u{fc}n"].map(str::to_owned).to_vec();
    assert_eq!(read[1].value, AttrValUnion::StringAttValue(texts));
    assert_eq!(
        read[2].value,
        AttrValUnion::ShortAttValue(vec![1, -2, 3, 1, -2, 3])
    );
    assert_eq!(
        (read[2].r_dim.dim_x, read[2].data_format),
        (3, AttrDataFormat::Spectrum)
    );
    assert_eq!(read[3].value, AttrValUnion::DevStateAtt(DevState::Running));
    assert_eq!(
        (read[4].quality, reason(&read[4].err_list)),
        (AttrQuality::AttrInvalid, "API_AttrNotFound")
    );
    let config = device
        .get_attribute_config_5(&names[..1])
        .expect("it is there");
    assert_eq!(
        (&*config[0].name, config[0].data_type),
        ("ampli", f64::TYPE)
    );
}

#[test]
fn we_use_the_older_forms_of_values_with_tango_test() {
    let Some((_running, url)) = tango_test("test/test/1") else {
        return;
    };
    let device = device(&url);
    let shorts = AttrValUnion::ShortAttValue(vec![1, -2, 3]);
    let shorts = value("short_spectrum", AttrDataFormat::Spectrum, shorts);
    device
        .write_attributes_4(std::slice::from_ref(&shorts), &client())
        .expect("it is writable");
    let names = ["ampli", "short_spectrum"].map(str::to_owned);
    let older = device
        .read_attributes_3(&names, DevSource::Dev)
        .expect("they are there");
    assert_eq!(older[1].value.type_code().name(), Some("DevVarShortArray"));
    assert_eq!(older[1].value.extract(), Ok(vec![1i16, -2, 3, 1, -2, 3]));
    let any = vec![7.25].to_any().expect("numbers can be sent");
    device
        .write_attributes_3(&[value_3("ampli", any)])
        .expect("it is writable");
    let older = device.read_attributes(&names[..1]).expect("it is there");
    assert_eq!(older[0].value.extract(), Ok(vec![7.25]));
    let short = value(
        "short_scalar_ro",
        AttrDataFormat::Scalar,
        AttrValUnion::ShortAttValue(vec![1]),
    );
    let refused = device.write_attributes_4(&[shorts, short], &client());
    let Err(Device4WriteAttributes4Error::MultiDevFailed(refused)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (&*refused.errors[0].name, refused.errors[0].index_in_call),
        ("short_scalar_ro", 1)
    );
    assert_eq!(reason(&refused.errors[0].err_list), "API_AttrNotWritable");
}

#[test]
fn we_execute_commands_of_tango_test() {
    let Some((_running, url)) = tango_test("test/test/1") else {
        return;
    };
    let device = device(&url);
    let call = |command: &str, argument: &Any| {
        device.command_inout_4(command, argument, DevSource::Dev, &client())
    };
    echoes(&device, "DevBoolean", &true);
    echoes(&device, "DevShort", &-3i16);
    echoes(&device, "DevLong", &i32::MIN);
    echoes(&device, "DevLong64", &i64::MAX);
    echoes(&device, "DevULong64", &u64::MAX);
    echoes(&device, "DevFloat", &0.5f32);
    echoes(&device, "DevDouble", &-2.5);
    echoes(&device, "DevString", &"gr\u{fc}n".to_owned());
    echoes(&device, "DevVarDoubleArray", &vec![1.5, -2.5]);
    echoes(&device, "DevVarCharArray", &vec![0u8, 255]);
    echoes(
        &device,
        "DevVarStringArray",
        &["a", "\u{ff}", ""].map(str::to_owned).to_vec(),
    );
    let both = DevVarLongStringArray {
        lvalue: vec![1, -2],
        svalue: vec!["one".to_owned()],
    };
    echoes(&device, "DevVarLongStringArray", &both);
    let state = call("State", &Any::NULL).expect("every device has it");
    assert_eq!(state.extract(), Ok(DevState::Running));
    let status = device
        .command_inout("Status", &Any::NULL)
        .expect("every device has it");
    assert_eq!(
        String::from_any(&status).as_deref(),
        Some("The device is in RUNNING state.")
    );
    let unknown = device.command_inout("NoSuch", &Any::NULL);
    let Err(DeviceCommandInoutError::DevFailed(DevFailed { errors })) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(reason(&errors), "API_CommandNotFound");
    assert!(errors[0].desc.contains("NoSuch"), "{errors:?}");
    let wrong = device.command_inout("DevDouble", &any(&"text".to_owned()));
    assert!(
        matches!(wrong, Err(DeviceCommandInoutError::DevFailed(_))),
        "{wrong:?}"
    );
    let commands = device.command_list_query_2().expect("it is there");
    let command = commands.iter().find(|info| info.cmd_name == "DevDouble");
    let command = command.expect("it is there");
    assert_eq!((command.in_type, command.out_type), (f64::TYPE, f64::TYPE));
    let last = device.black_box(3).expect("there are some");
    assert!(last[0].contains("command_list_query_2"), "{last:?}");
}

#[test]
fn a_character_that_is_not_latin_1_is_not_sent_to_tango() {
    let Some((_running, url)) = tango_test("test/test/1") else {
        return;
    };
    let device = device(&url);
    let names = ["\u{3a9}".to_owned()];
    match device.read_attributes_5(&names, DevSource::Dev, &client()) {
        Err(Device5ReadAttributes5Error::System(exception)) => {
            assert_eq!(exception.kind, ExceptionKind::DataConversion);
        }
        other => panic!("{other:?}"),
    }
    device.ping().expect("the connection goes on");
}

fn device(url: &str) -> Device5 {
    let orb = Orb::builder().build().expect("the ORB can be built");
    Device5::narrow(&orb.string_to_object(url).expect("a URL")).expect("it is a device")
}

/// Executes a command of TangoTest that returns its argument.
fn echoes<T: Value + PartialEq + std::fmt::Debug>(device: &Device5, command: &str, value: &T) {
    assert_eq!(T::NAME, command);
    let argument = value.to_any().expect("it can be sent");
    let result = device.command_inout(command, &argument);
    let result = result.unwrap_or_else(|failed| panic!("{command}: {failed:?}"));
    assert_eq!(T::from_any(&result).as_ref(), Some(value), "{command}");
}

fn any<T: Typed + Encode>(value: &T) -> Any {
    Any::from_value(value).expect("it can be sent")
}

fn client() -> ClntIdent {
    ClntIdent::CppClnt(std::process::id())
}

fn reason(errors: &[rtorb_tango::tango::DevError]) -> &str {
    &errors[0].reason
}

fn value(name: &str, data_format: AttrDataFormat, value: AttrValUnion) -> AttributeValue4 {
    let count = match &value {
        AttrValUnion::ShortAttValue(values) => values.len(),
        _ => 1,
    };
    AttributeValue4 {
        value,
        quality: AttrQuality::AttrValid,
        data_format,
        time: TIME,
        name: name.to_owned(),
        r_dim: AttributeDim { dim_x: 0, dim_y: 0 },
        w_dim: AttributeDim {
            dim_x: count as i32,
            dim_y: 0,
        },
        err_list: Vec::new(),
    }
}

fn value_3(name: &str, value: Any) -> AttributeValue {
    AttributeValue {
        value,
        quality: AttrQuality::AttrValid,
        time: TIME,
        name: name.to_owned(),
        dim_x: 1,
        dim_y: 0,
    }
}

const TIME: TimeVal = TimeVal {
    tv_sec: 0,
    tv_usec: 0,
    tv_nsec: 0,
};
