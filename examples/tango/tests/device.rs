//! A motor, called by every release of Tango's interface.

use std::thread::{self, JoinHandle};

use rtorb::any::Any;
use rtorb::endpoint::Endpoint;
use rtorb::{ObjectKeyError, Orb};
use rtorb_tango::motor::{self, Motor};
use rtorb_tango::tango::{
    AttrDataFormat, AttrQuality, AttrValUnion, AttrWriteType, AttributeDim, AttributeValue,
    AttributeValue4, ClntIdent, DevCmdInfo, DevFailed, DevSource, DevState,
    DevVarDoubleStringArray, Device3WriteAttributes3Error, Device4WriteAttributes4Error, Device5,
    DeviceCommandInoutError, DeviceReadAttributesError, TimeVal,
};
use rtorb_tango::{DeviceServer, ServerError, Value};

#[test]
fn a_device_is_found_by_its_name_in_lower_case_and_says_what_it_is() {
    let server = Server::start();
    let device = server.device("test/motor/1");
    assert_eq!(device.name().as_deref(), Ok("Test/Motor/1"));
    assert_eq!(device.adm_name().as_deref(), Ok("dserver/Motors/a"));
    assert_eq!(device.state(), Ok(DevState::Off));
    assert_eq!(device.status().as_deref(), Ok("off at 0.0 degrees"));
    let info = device.info_3().expect("it is there");
    assert_eq!(
        (&*info.dev_class, &*info.server_id),
        ("RtorbMotor", "Motors/a")
    );
    assert_eq!(info.server_version, 5);
    device.ping().expect("it is there");
    let admin = server.device("dserver/motors/a");
    let devices = admin.command_inout("QueryDevice", &Any::NULL);
    let devices = devices.expect("every server has it").extract();
    assert_eq!(devices, Ok(vec!["RtorbMotor::Test/Motor/1".to_owned()]));
    let gone = server.orb.string_to_object(&server.url("test/motor/2"));
    assert_eq!(gone.expect("a URL").non_existent(), Ok(true));
}

#[test]
fn commands_have_typed_arguments_and_results_and_are_allowed_in_their_states() {
    let server = Server::start();
    let device = server.device("test/motor/1");
    let call = |command: &str, argument: &Any| device.command_inout(command, argument);
    let reason = |answer: Result<Any, DeviceCommandInoutError>| match answer {
        Err(DeviceCommandInoutError::DevFailed(failed)) => first_reason(&failed),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(call("MoveTo", &any(&1.0))), "API_CommandNotAllowed");
    call("on", &Any::NULL).expect("names have no case");
    assert_eq!(
        reason(call("MoveTo", &any(&1i32))),
        "API_IncompatibleCmdArgumentType"
    );
    assert_eq!(reason(call("MoveTo", &any(&181.0))), "Motor_OutOfRange");
    assert_eq!(reason(call("MoveTo", &any(&f64::NAN))), "Motor_OutOfRange");
    assert_eq!(reason(call("Fly", &Any::NULL)), "API_CommandNotFound");
    call("MoveTo", &any(&180.0)).expect("it is allowed");
    let state = call("State", &Any::NULL).expect("every device has it");
    assert_eq!(state.extract(), Ok(DevState::Moving));
    // A speed of 90 degrees a second.
    let seconds = call("Scan", &any(&vec![180.0, 90.0])).expect("it is allowed");
    assert_eq!(seconds.type_code().name(), Some("DevVarDoubleArray"));
    let seconds: Vec<f64> = seconds.extract().expect("numbers");
    assert!((seconds[1] - seconds[0] - 1.0).abs() < 1e-9, "{seconds:?}");
    let summary = device.command_inout_4("Summary", &Any::NULL, DevSource::Dev, &CLIENT);
    let summary: DevVarDoubleStringArray = summary.expect("it is there").extract().expect("one");
    assert_eq!(summary.svalue, ["position", "target", "speed"]);
    assert_eq!(summary.dvalue[1..], [180.0, 90.0]);
    let query = device.command_query("moveto").expect("it is there");
    let DevCmdInfo {
        in_type, out_type, ..
    } = query;
    assert_eq!((in_type, out_type), (5, 0));
    let names = device.command_list_query_2().expect("it is there");
    assert_eq!(
        names.iter().filter(|info| info.cmd_name == "Init").count(),
        1
    );
}

#[test]
fn attributes_are_read_as_each_release_has_them() {
    let server = Server::start();
    let device = server.device("test/motor/1");
    let names = ["speed", "State", "nosuch"].map(str::to_owned);
    let values = device.read_attributes_5(&names, DevSource::Dev, &CLIENT);
    let values = values.expect("one that is wrong does not matter");
    assert_eq!(values[0].value, AttrValUnion::DoubleAttValue(vec![90.0]));
    assert_eq!(
        (values[0].data_type, values[0].data_format),
        (5, AttrDataFormat::Scalar)
    );
    assert_eq!(values[1].value, AttrValUnion::DevStateAtt(DevState::Off));
    assert_eq!(values[2].quality, AttrQuality::AttrInvalid);
    assert_eq!(values[2].err_list[0].reason, "API_AttrNotFound");
    let values = device.read_attributes_4(&names[..1], DevSource::Dev, &CLIENT);
    assert_eq!(
        values.expect("it is there")[0].value,
        AttrValUnion::DoubleAttValue(vec![90.0])
    );
    let values = device
        .read_attributes_3(&names, DevSource::Dev)
        .expect("as in 5");
    assert_eq!(
        values[0].value.type_code().name(),
        Some("DevVarDoubleArray")
    );
    assert_eq!(values[0].value.extract(), Ok(vec![90.0]));
    assert_eq!(values[1].value.extract(), Ok(DevState::Off));
    assert_eq!(values[2].err_list.len(), 1);
    let values = device.read_attributes(&names[..1]).expect("it is there");
    assert_eq!(values[0].value.extract(), Ok(vec![90.0]));
    let failed = device.read_attributes(&names);
    let Err(DeviceReadAttributesError::DevFailed(failed)) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(first_reason(&failed), "API_AttrNotFound");
    let all = device.read_attributes_5(&["All attributes".to_owned()], DevSource::Dev, &CLIENT);
    let all = all.expect("they are there");
    let last: Vec<_> = all.iter().rev().take(2).map(|value| &*value.name).collect();
    assert_eq!((all.len(), last), (9, vec!["Status", "State"]));
    let comment = "x".repeat(100_000);
    device
        .write_attributes_3(&[value_1("comment", &comment)])
        .expect("it is writable");
    // Each has the comment twice, because it is what was set as well.
    let many = vec!["comment".to_owned(); 30];
    let values = device.read_attributes_5(&many, DevSource::Dev, &CLIENT);
    let values = values.expect("some are read");
    let read = values.iter().filter(|value| value.err_list.is_empty());
    assert_eq!(read.count(), 20);
    assert_eq!(values[20].err_list[0].reason, "API_TooManyAttributes");
    let many = vec!["speed".to_owned(); 10_001];
    assert!(
        device
            .read_attributes_5(&many, DevSource::Dev, &CLIENT)
            .is_err()
    );
}

#[test]
fn attributes_are_written_within_their_limits_each_whether_or_not_others_are() {
    let server = Server::start();
    let device = server.device("test/motor/1");
    let write = |values: &[(&str, AttrValUnion)]| {
        let values: Vec<_> = values.iter().cloned().map(value_4).collect();
        match device.write_attributes_4(&values, &CLIENT) {
            Ok(()) => Vec::new(),
            Err(Device4WriteAttributes4Error::MultiDevFailed(failed)) => {
                let errors = failed.errors.into_iter();
                errors
                    .map(|it| (it.index_in_call, it.err_list[0].reason.clone()))
                    .collect()
            }
            Err(other) => panic!("{other}"),
        }
    };
    let double = |number| AttrValUnion::DoubleAttValue(vec![number]);
    let refused = |index, reason: &str| (index, reason.to_owned());
    let failures = write(&[
        ("speed", double(0.5)),
        ("speed", double(f64::NAN)),
        ("speed", AttrValUnion::LongAttValue(vec![5])),
        ("speed", AttrValUnion::DoubleAttValue(vec![])),
        ("moves", AttrValUnion::LongAttValue(vec![5])),
        ("nosuch", double(1.0)),
        ("waypoints", AttrValUnion::DoubleAttValue(vec![0.0; 65])),
        ("SPEED", double(45.0)),
    ]);
    assert_eq!(
        failures,
        [
            refused(0, "API_WAttrOutsideLimit"),
            refused(1, "API_WAttrOutsideLimit"),
            refused(2, "API_IncompatibleAttrDataType"),
            refused(3, "API_IncompatibleAttrDataType"),
            refused(4, "API_AttrNotWritable"),
            refused(5, "API_AttrNotFound"),
            refused(6, "API_WAttrOutsideLimit"),
        ]
    );
    let speed = ["speed".to_owned()];
    let values = device.read_attributes_5(&speed, DevSource::Dev, &CLIENT);
    let value = &values.expect("it is there")[0];
    assert_eq!(
        value.value,
        AttrValUnion::DoubleAttValue(vec![45.0, 45.0]),
        "with the set value"
    );
    assert_eq!((value.r_dim.dim_x, value.w_dim.dim_x), (1, 1));
    // The older form of values.
    device
        .write_attributes_3(&[value_1("comment", "gr\u{fc}n")])
        .expect("it is writable");
    let wrong = device.write_attributes_3(&[value_1("speed", "fast")]);
    assert!(
        matches!(wrong, Err(Device3WriteAttributes3Error::MultiDevFailed(_))),
        "{wrong:?}"
    );
    device
        .write_attributes(&[value_1("comment", "blau")])
        .expect("it is writable");
    assert!(
        device
            .write_attributes(&[value_1("speed", "fast")])
            .is_err()
    );
    let comment = ["comment".to_owned()];
    let values = device
        .write_read_attributes_5(&[], &comment, &CLIENT)
        .expect("it is there");
    let texts = ["blau", "blau"].map(str::to_owned).to_vec();
    assert_eq!(values[0].value, AttrValUnion::StringAttValue(texts));
}

#[test]
fn configurations_are_those_of_each_release() {
    let server = Server::start();
    let device = server.device("test/motor/1");
    let position = ["Position".to_owned()];
    let config = &device
        .get_attribute_config_5(&position)
        .expect("it is there")[0];
    assert_eq!(
        (&*config.min_value, &*config.max_value, &*config.unit),
        ("-180", "180", "deg")
    );
    assert_eq!(config.writable, AttrWriteType::ReadWrite);
    let older = &device
        .get_attribute_config_3(&position)
        .expect("it is there")[0];
    assert_eq!(
        (&older.name, &older.att_alarm),
        (&config.name, &config.att_alarm)
    );
    let older = &device
        .get_attribute_config_2(&position)
        .expect("it is there")[0];
    assert_eq!((&older.label, older.level), (&config.label, config.level));
    let older = &device.get_attribute_config(&position).expect("it is there")[0];
    assert_eq!(
        (&older.min_value, &*older.max_alarm),
        (&config.min_value, "Not specified")
    );
    assert!(
        device
            .get_attribute_config_5(&["nosuch".to_owned()])
            .is_err()
    );
    assert!(device.set_attribute_config_5(&[], &CLIENT).is_err());
}

#[test]
fn the_black_box_has_the_last_operations() {
    let server = Server::start();
    let device = server.device("test/motor/1");
    device.ping().expect("it is there");
    let names = ["speed".to_owned(), "moves".to_owned()];
    let read = device.read_attributes_5(&names, DevSource::CacheDev, &CLIENT);
    read.expect("they are there");
    let last = device.black_box(2).expect("there are some");
    let operation = " : Operation read_attributes_5 (speed, moves) from cache_device requested by a CPP/Python client with PID 7";
    assert!(last[0].ends_with(operation), "{last:?}");
    assert!(last[1].ends_with(" : Operation ping requested"), "{last:?}");
}

#[test]
fn names_that_no_device_can_have_are_refused() {
    let server = Server::start();
    for wrong in [
        "",
        "motor",
        "test/motor",
        "test/motor/1/2",
        "test//1",
        "/motor/1",
    ] {
        let refused = server
            .server
            .export(wrong, motor::class(), Motor::default());
        assert!(
            matches!(&refused, Err(ServerError::Name(name)) if name == wrong),
            "{refused:?}"
        );
    }
    let taken = server
        .server
        .export("TEST/motor/1", motor::class(), Motor::default());
    assert!(
        matches!(&taken, Err(ServerError::Taken(name)) if name == "TEST/motor/1"),
        "{taken:?}"
    );
    let long = format!("test/motor/{}", "1".repeat(250));
    let refused = server
        .server
        .export(&long, motor::class(), Motor::default());
    let error = ObjectKeyError::Unfit;
    assert!(
        matches!(refused, Err(ServerError::Key { error: found, .. }) if found == error),
        "it is too long"
    );
}

#[test]
fn a_client_can_end_the_server() {
    let server = Server::start();
    let admin = server.device("dserver/motors/a");
    admin
        .command_inout("Kill", &Any::NULL)
        .expect("it is allowed");
    server.ended();
}

/// A server with one motor, in this process.
struct Server {
    orb: Orb,
    server: DeviceServer,
    running: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let orb = Orb::builder().build().expect("the ORB can be built");
        let server = DeviceServer::new(&orb, "Motors", "a").expect("it can be served");
        let exported = server.export("Test/Motor/1", motor::class(), Motor::default());
        exported.expect("the name is free");
        let serving = orb.clone();
        let running = thread::spawn(move || serving.run().expect("the ORB runs"));
        Self {
            orb,
            server,
            running: Some(running),
        }
    }

    fn url(&self, name: &str) -> String {
        let mut endpoints = self.orb.endpoints().into_iter();
        let tcp = endpoints.find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => Some(format!("{host}:{port}")),
            _ => None,
        });
        format!("corbaloc:iiop:1.2@{}/{name}", tcp.expect("it listens"))
    }

    /// A device, as another ORB sees it.
    fn device(&self, name: &str) -> Device5 {
        let orb = Orb::builder().build().expect("the ORB can be built");
        let object = orb.string_to_object(&self.url(name)).expect("a URL");
        Device5::narrow(&object).expect("it is a device")
    }

    fn ended(mut self) {
        let running = self.running.take().expect("it ends once");
        running.join().expect("the server does not panic");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

const CLIENT: ClntIdent = ClntIdent::CppClnt(7);
const TIME: TimeVal = TimeVal {
    tv_sec: 0,
    tv_usec: 0,
    tv_nsec: 0,
};
const SCALAR: AttributeDim = AttributeDim { dim_x: 1, dim_y: 0 };

fn value_4((name, value): (&str, AttrValUnion)) -> AttributeValue4 {
    AttributeValue4 {
        value,
        quality: AttrQuality::AttrValid,
        data_format: AttrDataFormat::Scalar,
        time: TIME,
        name: name.to_owned(),
        r_dim: SCALAR,
        w_dim: SCALAR,
        err_list: Vec::new(),
    }
}

fn value_1(name: &str, text: &str) -> AttributeValue {
    AttributeValue {
        value: any(&vec![text.to_owned()]),
        quality: AttrQuality::AttrValid,
        time: TIME,
        name: name.to_owned(),
        dim_x: 1,
        dim_y: 0,
    }
}

fn any<T: Value>(value: &T) -> Any {
    value.to_any().expect("it can be sent")
}

fn first_reason(failed: &DevFailed) -> String {
    failed.errors[0].reason.clone()
}
