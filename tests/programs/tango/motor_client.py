"""Calls the motor of rtorb-tango with PyTango. Prints a line for each check, which begins with "ok " if it is right."""

import sys
import time

import tango


def check(what, got, wanted):
    print("ok" if got == wanted else "WRONG", what, repr(got), flush=True)


def reasons(what, action, *wanted):
    """Checks the reasons of the DevFailed that `action` raises, beginning with the server's; returns its first error."""
    try:
        action()
    except tango.DevFailed as failed:
        check(what, tuple(error.reason for error in failed.args), wanted)
        return failed.args[0]
    check(what, "no failure", wanted)
    return None


url = sys.argv[1]
motor = tango.DeviceProxy(url)

check("ping", motor.ping() >= 0, True)
check("name", motor.name(), "test/motor/1")
check("release", motor.get_idl_version(), 5)
info = motor.info()
check("info", (info.dev_class, info.server_id, info.server_version), ("RtorbMotor", "Motors/interop", 5))
check("state", motor.state(), tango.DevState.OFF)
check("status", motor.status(), "off at 0.0 degrees")
attributes = ["position", "speed", "moves", "powered", "comment", "waypoints", "log", "State", "Status"]
check("attributes", list(motor.get_attribute_list()), attributes)

config = motor.get_attribute_config("position")
check("data type", (config.data_type, config.data_format), (tango.DevDouble, tango.AttrDataFormat.SCALAR))
check("limits", (config.min_value, config.max_value, config.unit), ("-180", "180", "deg"))
check("writable", config.writable, tango.AttrWriteType.READ_WRITE)
check("spectrum", motor.get_attribute_config("waypoints").data_format, tango.AttrDataFormat.SPECTRUM)
check("arguments", motor.command_query("Scan").in_type, tango.DevVarDoubleArray)

reasons("move while off", lambda: motor.write_attribute("position", 5.0), "Motor_Off", "API_AttributeFailed")
reasons("command while off", lambda: motor.MoveTo(5.0), "API_CommandNotAllowed", "API_CommandFailed")
motor.powered = True
check("on", motor.state(), tango.DevState.ON)
motor.write_attribute("speed", 3600.0)
motor.position = 90.0
end = time.monotonic() + 30
while motor.state() == tango.DevState.MOVING and time.monotonic() < end:
    time.sleep(0.001)
value = motor.read_attribute("position")
check("position", (value.value, value.w_value, value.quality), (90.0, 90.0, tango.AttrQuality.ATTR_VALID))
check("time", abs(value.time.totime() - time.time()) < 60, True)
check("moves", (motor.moves, type(motor.moves)), (1, int))
check("log", list(motor.log), ["on", "to 90\u00b0"])
motor.MoveTo(-180.0)
check("moving", motor.state(), tango.DevState.MOVING)
check("changing", motor.read_attribute("position").quality, tango.AttrQuality.ATTR_CHANGING)
motor.Stop()
check("stopped", motor.state(), tango.DevState.ON)

motor.comment = "gr\u00fcn \u00ff"
check("text", motor.comment, "gr\u00fcn \u00ff")
check("text of a command", motor.Echo("\u00e4"), "\u00e4")
check("empty text", motor.Echo(""), "")
motor.waypoints = [1.0, 2.5, -3.0]
check("vector", motor.waypoints.tolist(), [1.0, 2.5, -3.0])
motor.waypoints = []
check("empty vector", motor.read_attribute("waypoints").dim_x, 0)
seconds = motor.Scan([180.0, -180.0, 180.0])
check("vector of a command", (len(seconds), round(seconds[2] - seconds[1], 6)), (3, 0.1))
numbers, texts = motor.Summary()
check("two vectors", (len(numbers), list(texts)), (3, ["position", "target", "speed"]))
both = motor.read_attributes(["speed", "State", "comment"])
check("several", [it.value for it in both], [3600.0, tango.DevState.ON, "gr\u00fcn \u00ff"])
check("write and read", motor.write_read_attribute("speed", 10.0).value, 10.0)
motor.write_attributes([("speed", 20.0), ("comment", "both")])
check("write several", (motor.speed, motor.comment), (20.0, "both"))

error = reasons("unknown attribute", lambda: motor.read_attribute("nosuch"), "API_AttrNotFound", "API_AttributeFailed")
check("description", (error.desc, error.severity), ("nosuch attribute not found", tango.ErrSeverity.ERR))
check("origin", error.origin, "rtorb_tango::Class::find_attribute")
values = motor.read_attributes(["nosuch", "speed"])
check("one is unknown", [it.has_failed for it in values], [True, False])
reasons("unknown command", lambda: motor.command_inout("Fly"), "API_CommandNotFound", "API_CommandFailed")
reasons("read only", lambda: motor.write_attribute("moves", 1), "API_AttrNotWritable", "API_AttributeFailed")
reasons("too fast", lambda: motor.write_attribute("speed", 1e9), "API_WAttrOutsideLimit", "API_AttributeFailed")
long = [0.0] * 65
reasons("too long", lambda: motor.write_attribute("waypoints", long), "API_WAttrOutsideLimit", "API_AttributeFailed")
text = tango.DeviceData()
text.insert(tango.DevString, "fast")
reasons(
    "wrong argument",
    lambda: motor.command_inout("MoveTo", text),
    "API_IncompatibleCmdArgumentType",
    "API_CommandFailed",
)
reasons("history", lambda: motor.attribute_history("speed", 3), "API_AttrNotPolled")
reasons("configuration", lambda: motor.set_attribute_config(config), "API_NotSupported")
reasons(
    "event",
    lambda: motor.subscribe_event("speed", tango.EventType.CHANGE_EVENT, print),
    "API_AttributePollingNotStarted",
    "API_CommandFailed",
    "API_DSFailedRegisteringEvent",
)
check("polled", motor.is_attribute_polled("speed"), False)
check("pipes", list(motor.get_pipe_list()), [])

call = motor.command_inout_asynch("Echo", "later")
check("asynchronous", motor.command_inout_reply(call, 10000), "later")
last = motor.black_box(1)[0]
check("black box", "(cmd = Echo) from cache_device requested by a CPP/Python client" in last, True)
motor.Init()
check("init", motor.state(), tango.DevState.OFF)

admin = tango.DeviceProxy(motor.adm_name())
check("devices", list(admin.QueryDevice()), ["RtorbMotor::test/motor/1"])
upper = tango.DeviceProxy(url.replace("test/motor/1", "TEST/Motor/1"))
check("upper case", upper.state(), tango.DevState.OFF)
reasons(
    "unknown device",
    lambda: tango.DeviceProxy(url.replace("motor/1", "motor/2")).ping(),
    "API_CorbaException",
    "API_DeviceNotDefined",
)
