"""Calls, servants, exceptions, tasks and timeouts, between Python and Python. Other ORBs are in tests/tests/peers of the repository."""

import asyncio
import builtins
import collections.abc
import concurrent.futures
import gc
import inspect
import json
import logging
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import weakref
from decimal import Decimal
from pathlib import Path

import rtorb
from rtorb import _objects

FOLDER = Path(__file__).parent
IDL = FOLDER / "robot.idl"
COMMAND = os.environ.get("RTORB_COMMAND") or shutil.which("rtorb")
idl = rtorb.load(IDL)
Robot = idl.Robot


class Motor(Robot.Motor_skel):
    """The servant of the tests."""

    name = "left"

    def __init__(self, orb):
        self.orb = orb
        self.speed = 5
        self.position = 0
        self.stopped = threading.Event()
        self.released = threading.Event()

    def turn(self, degrees):
        if degrees > Robot.MOST:
            raise Robot.Overheated(temperature=99.5, at=Robot.fast)
        if degrees < 0:
            raise rtorb.CORBA.BAD_PARAM(7, rtorb.CompletionStatus.NO)
        self.position += degrees
        return self.position

    def go(self, path, count):
        return path[-1], count + len(path), Robot.fast

    def tally(self, counts, flags):
        return {name: number + 1 for name, number in counts.items()}, flags | Robot.Flags.moving

    def remark(self, given):
        return given

    def rest(self, milliseconds):
        self.released.wait(milliseconds / 1000)

    def release(self):
        """Ends a rest whose client has given it up: this server carries out one request at a time."""
        resting, self.released = self.released, threading.Event()
        resting.set()

    def stop(self):
        self.stopped.set()

    def break_down(self):
        raise ZeroDivisionError("broken")

    def tell_secret(self):
        raise Robot.Secret()

    def _import(self, _from):
        self.position = _from

    def change(self, given):
        return given

    def whole(self):
        return self.orb.motor

    def echo(self, given):
        return given


class Served(unittest.TestCase):
    """A motor that is served, and its proxy through another ORB."""

    @classmethod
    def setUpClass(cls):
        cls.server = rtorb.ORB()
        cls.servant = Motor(cls.server)
        cls.server.motor = cls.server.serve(cls.servant, name="motor")
        cls.server.start()
        cls.addClassCleanup(cls.server.shutdown)
        cls.motor = rtorb.connect(cls.server.motor.ior, idl=IDL)


class Calls(Served):
    def test_results_are_returned_and_out_arguments_follow_them(self):
        self.servant.position = 0
        self.assertEqual(self.motor.turn(90), 90.0)
        self.assertEqual(self.motor.turn(degrees=10), 100.0)
        path = [Robot.Position(x=1, y=2), {"x": 3, "y": 4.5}]
        result = self.motor.go(path, 5)
        self.assertEqual(result, (Robot.Position(3.0, 4.5), 7, Robot.Pace.fast))
        self.assertIsNone(self.motor._import(12))
        self.assertEqual(self.servant.position, 12)

    def test_attributes_are_properties(self):
        self.assertEqual(self.motor.name, "left")
        self.motor.speed = 30
        self.assertEqual((self.motor.speed, self.servant.speed), (30, 30))
        with self.assertRaises(AttributeError):
            self.motor.name = "right"

    def test_references_are_narrowed_to_what_they_state(self):
        part = self.motor.whole()
        self.assertIsInstance(part, Robot.Motor)
        self.assertIsInstance(part, Robot.Part)
        self.assertEqual(part, self.motor)
        self.assertTrue(part.exists())
        with self.assertRaises(TypeError):
            part.narrow(rtorb.load().CosNaming.NamingContext)

    def test_maps_masks_and_optional_members(self):
        counts, flags = self.motor.tally({"a": 1, "b": 2}, Robot.Flags.hot)
        self.assertEqual(counts, {"a": 2, "b": 3})
        self.assertEqual(flags, Robot.Flags.hot | Robot.Flags.moving)
        self.assertIsInstance(flags, Robot.Flags)
        self.assertEqual(self.motor.remark(Robot.Note("x")), Robot.Note("x", None))
        self.assertEqual(self.motor.remark(Robot.Note("x", 7)).code, 7)

    def test_anys_of_plain_objects_and_of_stated_types(self):
        for given in [True, 5, 1 << 40, 2.5, "text", b"bytes", None, Robot.fast, Robot.Position(1.0, 2.0)]:
            self.assertEqual(self.motor.echo(given).value, given)
        answer = self.motor.echo(rtorb.Any("sequence<short>", [1, 2]))
        self.assertEqual((str(answer.type), answer.value), ("sequence<short>", [1, 2]))
        self.assertEqual(self.motor.echo(rtorb.Any(Robot.Path, [])).type, Robot.Path)
        with self.assertRaisesRegex(TypeError, "rtorb.Any"):
            self.motor.echo([1])

    def test_each_any_has_a_valuetype_of_its_own(self):
        marked = rtorb.load_text("valuetype Mark { public long number; };")
        given = rtorb.Any("sequence<any>", [marked.Mark(number) for number in range(100)])
        echoed = self.motor.echo(given).value
        self.assertEqual([it.value.number for it in echoed], list(range(100)))

    def test_operations_of_a_valuetype_are_methods_of_a_registered_class(self):
        bank = rtorb.load_text(
            "interface Named { string title(); };"
            "valuetype Base { public long balance; void deposit(in long amount); };"
            "valuetype Account : Base supports Named { public string owner; readonly attribute long limit; long from(); };"
        )
        with self.assertRaisesRegex(TypeError, "lacks _from, deposit, limit, title of valuetype Account"):
            rtorb.implementation(type("Empty", (bank.Account,), {}))
        with self.assertRaisesRegex(TypeError, "no subclass of the class of a valuetype"):
            rtorb.implementation(Robot.Position)

        @rtorb.implementation
        class Account(bank.Account):
            limit = 100

            def deposit(self, amount):
                self.balance += amount

            def _from(self):
                return 1

            def title(self):
                return f"{self.owner}'s"

        account = Account(5, "Ada")
        account.deposit(2)
        self.assertEqual((account.balance, account.title()), (7, "Ada's"))
        self.assertIs(bank._rtorb_library.class_of(bank.Account._rtorb_type), Account)

    def test_a_call_returns_values_of_the_registered_class(self):
        text = "module Robot { valuetype Mark { public long number; long twice(); }; interface Motor { Mark echo(in Mark given); }; };"
        marked = rtorb.load_text(text).Robot

        class Echo(marked.Motor_skel):
            def echo(self, given):
                return type(given)(given.twice())

        @rtorb.implementation
        class Mark(marked.Mark):
            def twice(self):
                return 2 * self.number

        motor = rtorb.connect(self.server.serve(Echo()).ior, interface=marked.Motor)
        for given in [Mark(4), marked.Mark(4)]:
            echoed = motor.echo(given)
            self.assertIsInstance(echoed, Mark)
            self.assertEqual((echoed.number, echoed.twice()), (8, 16))

    def test_constants_and_nested_names(self):
        self.assertEqual((Robot.MOST, Robot.USUAL, Robot.GREETING), (360, Robot.fast, "hello"))
        self.assertEqual(self.motor.change(Robot.Motor.Mode.busy), Robot.Motor.busy)
        self.assertEqual(str(Robot.fast), "Pace.fast")

    def test_a_reference_may_be_in_a_file_or_a_url(self):
        address = self.server.endpoints[0].partition("//")[2]
        by_url = rtorb.connect(f"corbaloc::{address}/motor", idl=IDL)
        self.assertIsInstance(by_url, Robot.Motor)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "motor.ior"
            file.write_text(self.motor.ior + "\n")
            self.assertEqual(rtorb.connect(file, interface=Robot.Motor), self.motor)
            file.write_text("# no reference")
            with self.assertRaisesRegex(ValueError, "holds no reference"):
                rtorb.connect(file)
        with self.assertRaisesRegex(ValueError, "cannot be read"):
            rtorb.connect("no/such/file")

    def test_unknown_interfaces_say_what_to_do(self):
        with self.assertRaisesRegex(LookupError, "did you mean `Robot::Motor`"):
            rtorb.connect(self.motor.ior, idl=IDL, interface="Robot::Moter")
        with self.assertRaisesRegex(LookupError, "idl="):
            rtorb.connect(self.motor.ior)
        with self.assertRaisesRegex(ValueError, "expected"):
            rtorb.load_text("interface {")
        with self.assertRaises(rtorb.IdlError):
            rtorb.load("no/such.idl")

    def test_a_changed_file_is_read_again_if_it_is_included_too(self):
        with tempfile.TemporaryDirectory() as folder:
            whole, part = Path(folder, "whole.idl"), Path(folder, "part.idl")
            whole.write_text('#include "part.idl"\n')
            part.write_text("const long LIMIT = 1;\n")
            first = rtorb.load(whole)
            self.assertEqual(first.LIMIT, 1)
            self.assertIs(rtorb.load(whole), first)
            part.write_text("const long LIMIT = 2;\n")
            # A file system may give both the same time.
            os.utime(part, ns=(1, 1))
            self.assertEqual(rtorb.load(whole).LIMIT, 2)

    def test_objects_of_the_same_idl_in_another_file_fit(self):
        other = rtorb.load_text(IDL.read_text()).Robot
        self.assertIsNot(other.Position, Robot.Position)
        result = self.motor.go([other.Position(1, 2)], 0)
        self.assertEqual(result[0], Robot.Position(1.0, 2.0))
        with self.assertRaises(TypeError):
            self.motor.go([other.Note("x")], 0)

    @unittest.skipUnless(COMMAND, "RTORB_COMMAND names the command rtorb")
    def test_the_command_calls_servants_of_python(self):
        def said(*words):
            command = [COMMAND, "call", self.motor.ior, "--idl", IDL, *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            return done.returncode, json.loads(done.stdout)

        self.servant.position = 0
        self.assertEqual(said("turn", "90"), (0, 90.0))
        self.assertEqual(said("turn", "1000")[1]["temperature"], 99.5)
        result = said("go", '[{"x": 1, "y": 2}]', "4")[1]
        self.assertEqual(result, {"return": {"x": 1.0, "y": 2.0}, "count": 5, "found": "fast"})


    def test_members_whose_names_python_has_get_an_underscore(self):
        named = rtorb.load_text("exception Odd { long args; long add_note; }; union U switch (long) { case 1: long d; case 2: string v; };")
        odd = named.Odd(1, 2)
        self.assertEqual((odd._args, odd._add_note, odd.args), (1, 2, (1, 2)))
        for given in [named.U(_d=7), named.U(_v="x")]:
            echoed = self.motor.echo(given).value
            self.assertEqual((echoed.d, echoed.v), (given.d, given.v))
        self.assertEqual(named.U(_d=7)._d, 7)
        echoed = self.motor.echo(rtorb.Any(named.Odd._rtorb_type, odd)).value
        self.assertEqual((echoed._args, echoed._add_note), (1, 2))

    def test_fixed_numbers_that_python_prints_with_an_exponent(self):
        priced = rtorb.load_text("module Robot { interface Motor { any echo(in any given); }; }; typedef fixed<18,8> Price;")
        motor = rtorb.connect(self.motor.ior, interface=priced.Robot.Motor)
        for given in [Decimal("0E-8"), Decimal("1E+2"), Decimal("1E-8"), 1e-7, 5, "-2.50"]:
            self.assertEqual(motor.echo(rtorb.Any(priced.Price, given)).value, Decimal(str(given)))
        for wrong in [Decimal("1E-9"), Decimal("1E+999999999"), Decimal("NaN"), "1E", "price"]:
            with self.assertRaises((TypeError, ValueError)):
                motor.echo(rtorb.Any(priced.Price, wrong))

    def test_a_reference_that_states_a_type_that_does_not_fit_has_the_formal_one(self):
        text = "module Robot { interface Part {}; interface Other { void f(); }; interface Motor { %s whole(); }; };"
        wrong = rtorb.load_text(text % "Other").Robot
        whole = rtorb.connect(self.motor.ior, interface=wrong.Motor).whole()
        self.assertIs(type(whole), wrong.Other)

    def test_classes_of_types_in_anys_are_not_kept_without_bound(self):
        library = idl._rtorb_library
        other = rtorb.load_text("struct First { long x; };" + "".join(f"struct Other{it} {{ long x; }};" for it in range(300)))
        changed = rtorb.load_text("struct First { string y; };")
        first = library.class_of(other.First._rtorb_type)
        self.assertIs(library.class_of(other.First._rtorb_type), first)
        self.assertIsNot(library.class_of(changed.First._rtorb_type), first)
        forgotten = weakref.ref(first)
        del first
        for number in range(300):
            library.class_of(getattr(other, f"Other{number}")._rtorb_type)
        gc.collect()
        self.assertIsNone(forgotten())


class Described(unittest.TestCase):
    """Interfaces as an interface repository describes them: a server chooses their names."""

    def described(self, operation="turn", parameter="degrees", attribute="speed", ancestors=()):
        def made(name, inputs=()):
            return types.SimpleNamespace(name=name, inputs=lambda: inputs, signature=lambda: "")

        return types.SimpleNamespace(
            id="IDL:X:1.0",
            ancestors=ancestors,
            operations=lambda: [made(operation, (parameter,))],
            attributes=lambda: [(attribute, made("_get_"), None)],
        )

    def class_of(self, described):
        library = types.SimpleNamespace(interface=lambda id: described if id == described.id else None)
        code = types.SimpleNamespace(id=described.id, name="X")
        return _objects.interface_class(library, code)

    def test_names_are_identifiers(self):
        made = self.class_of(self.described())
        self.assertIn("turn", made.__dict__)
        told = []
        builtins.told = told
        self.addCleanup(delattr, builtins, "told")
        for wrong in ["x():\n    pass\ntold.append(1)\ndef x", "x=told.append(1)", "", "1x", "a b", "gr\xf6\xdfe", "__del__", "_rtorb_ref"]:
            for place in ["operation", "parameter", "attribute"]:
                with self.subTest(wrong=wrong, place=place), self.assertRaisesRegex(rtorb.ConversionError, "no name"):
                    self.class_of(self.described(**{place: wrong}))
        self.assertEqual(told, [])

    def test_bases_that_are_unknown_are_left_out(self):
        made = self.class_of(self.described(ancestors=["IDL:Unknown:1.0", "IDL:X:1.0"]))
        self.assertEqual(made.__bases__, (rtorb.Object,))

    def test_keywords_may_be_parameters_by_name(self):
        made = self.class_of(self.described(operation="import", parameter="self"))
        self.assertEqual(str(inspect.signature(made._import)), "(self_, /, self)")
        calls = []
        reference = types.SimpleNamespace(call=lambda operation, given, left: calls.append(given))
        made._import(types.SimpleNamespace(_rtorb_ref=reference), self=5)
        self.assertEqual(calls, [(5,)])
        with self.assertRaisesRegex(TypeError, r"_import\(\): missing a required argument: 'self'"):
            made._import(None)


class Mistakes(Served):
    def wrong(self, kind, text, call):
        with self.assertRaises(kind) as raised:
            call()
        self.assertIn(text, str(raised.exception))

    def test_a_wrong_argument_is_named_with_its_range(self):
        motor = self.motor
        self.wrong(TypeError, "argument 1 (degrees): 'x' (str) is no long (-2147483648 to 2147483647)", lambda: motor.turn("x"))
        self.wrong(ValueError, "argument 1 (degrees): 2147483648 is no long", lambda: motor.turn(1 << 31))
        self.wrong(ValueError, "is no long", lambda: motor.turn(1 << 100))
        self.wrong(TypeError, "1.5 (float)", lambda: motor.turn(1.5))
        self.wrong(TypeError, "None is no long", lambda: motor.turn(None))
        self.wrong(TypeError, "argument 1 (from)[1].x: 'a' (str)", lambda: motor.go([Robot.Position(1, 2), Robot.Position("a", 2)], 1))
        self.wrong(ValueError, "has no member 'z'", lambda: motor.go([{"x": 1, "y": 2, "z": 3}], 1))
        self.wrong(ValueError, "the member y of Robot::Position is missing", lambda: motor.go([{"x": 1}], 1))
        self.wrong(TypeError, "is no sequence<Robot::Position> (a list)", lambda: motor.go("text", 1))
        self.wrong(TypeError, "one of slow, fast", lambda: motor.echo(rtorb.Any(Robot.Pace, 1)))
        self.wrong(ValueError, "zero character", lambda: motor.remark(Robot.Note("a\0b")))
        self.wrong(TypeError, "degrees", lambda: motor.turn())
        self.wrong(AttributeError, "did you mean `turn`", lambda: motor.tun(1))
        self.wrong(AttributeError, "did you mean `Motor`", lambda: Robot.Moter)

    def test_what_an_object_raises_is_no_missing_member(self):
        class Broken(collections.abc.Mapping):
            def __init__(self, *members):
                self.members = members

            def __getitem__(self, member):
                if member == self.members[-1]:
                    raise RuntimeError("the sensor is off")
                return "x"

            def __iter__(self):
                return iter(self.members)

            def __len__(self):
                return len(self.members)

        self.wrong(RuntimeError, "the sensor is off", lambda: self.motor.remark(Broken("text", "code")))
        self.wrong(RuntimeError, "the sensor is off", lambda: self.motor.go([Broken("x")], 1))

    def test_an_object_that_contains_itself_is_refused(self):
        loop = rtorb.load_text("struct T { sequence<T> t; }; interface I { void f(in T t); };")
        tree = loop.T([])
        tree.t.append(tree)
        proxy = rtorb.connect(self.motor.ior, interface=loop.I)
        with self.assertRaisesRegex(ValueError, "nested deeper than 64"):
            proxy.f(tree)

    def test_calls_over_tls(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        certificate, key = (os.path.join(scratch.name, it) for it in ("motor.pem", "motor.key"))
        # The gate has it; a host without it has no certificates either.
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
            + ["-subj", "/CN=motor", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
            + ["-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
        server = rtorb.ORB(
            ["-ORBListenEndpoints", "ssliop://127.0.0.1:0", "-ORBTlsCertificate", certificate, "-ORBTlsKey", key, "-ORBTlsCa", certificate]
        )
        reference = server.serve(Motor(server), name="secret")
        server.start()
        self.addCleanup(server.shutdown)
        client = rtorb.ORB(["-ORBTlsCa", certificate, "-ORBTlsCertificate", certificate, "-ORBTlsKey", key])
        self.assertEqual(client.connect(reference.ior, idl=IDL).name, "left")
        with self.assertRaises(rtorb.SystemException):
            rtorb.connect(reference.ior, idl=IDL).name

    def test_an_orb_that_cannot_start_says_so_each_time(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            orb = rtorb.ORB(["-ORBListenEndpoints", f"iiop://127.0.0.1:{taken.getsockname()[1]}"])
            for begin in (orb.start, orb.start, orb.run):
                with self.assertRaises(rtorb.SystemException):
                    begin()

    def test_the_options_of_an_orb_are_checked(self):
        with self.assertRaisesRegex(ValueError, "-ORBConnektion"):
            rtorb.ORB(["-ORBConnektion", "x"])
        alone = rtorb.ORB(["-ORBConnection", "exclusive"]).connect(self.motor.ior, interface=Robot.Motor)
        self.assertEqual(alone.name, "left")
        with self.assertRaises(rtorb.CORBA.INV_POLICY):
            asyncio.run(alone.async_.turn(0))
        shared = rtorb.ORB(["-ORBWait", "reactor"]).connect(self.motor.ior, interface=Robot.Motor)
        self.assertEqual(shared.name, "left")
        self.assertEqual(asyncio.run(shared.async_.turn(0)), shared.turn(0))
        self.assertEqual(rtorb.ORB(["one", "-ORBConnection", "multiplexed", "two"]).arguments, ["one", "two"])


class Exceptions(Served):
    def test_exceptions_of_idl_are_classes_with_members(self):
        with self.assertRaises(Robot.Overheated) as raised:
            self.motor.turn(1000)
        self.assertIsInstance(raised.exception, rtorb.UserException)
        self.assertEqual((raised.exception.temperature, raised.exception.at), (99.5, Robot.fast))
        self.assertIn("temperature=99.5", str(raised.exception))

    def test_system_exceptions_have_minor_and_completed(self):
        with self.assertRaises(rtorb.CORBA.BAD_PARAM) as raised:
            self.motor.turn(-1)
        self.assertIsInstance(raised.exception, rtorb.SystemException)
        self.assertEqual((raised.exception.minor, raised.exception.completed), (7, rtorb.CompletionStatus.NO))
        gone = rtorb.connect("corbaloc::127.0.0.1:1/x", interface=Robot.Motor)
        with self.assertRaisesRegex(rtorb.CORBA.TRANSIENT, "check that the server runs"):
            gone.turn(1)

    def test_other_exceptions_become_unknown_and_are_logged(self):
        with self.assertLogs("rtorb", logging.ERROR) as logged, self.assertRaises(rtorb.CORBA.UNKNOWN):
            self.motor.break_down()
        self.assertIn("ZeroDivisionError: broken", logged.output[0])
        # One of IDL that the operation does not declare.
        with self.assertLogs("rtorb", logging.ERROR), self.assertRaises(rtorb.CORBA.UNKNOWN):
            self.motor.tell_secret()

    def test_any_class_may_serve_and_a_missing_method_is_no_implement(self):
        class Plain:
            def turn(self, degrees):
                return "no number"

        reference = self.server.serve(Plain(), Robot.Motor)
        motor = rtorb.connect(reference.ior, interface=Robot.Motor)
        with self.assertLogs("rtorb", logging.ERROR) as logged, self.assertRaises(rtorb.CORBA.UNKNOWN):
            motor.turn(1)
        self.assertIn("the result: 'no number' (str) is no double", logged.output[0])
        with self.assertLogs("rtorb", logging.ERROR), self.assertRaises(rtorb.CORBA.NO_IMPLEMENT):
            motor.change(Robot.Motor.idle)
        self.server.withdraw(reference)
        with self.assertRaises(rtorb.CORBA.OBJECT_NOT_EXIST):
            motor.turn(1)
        with self.assertRaisesRegex(TypeError, "interface is not known"):
            self.server.serve(Plain())
        with self.assertRaisesRegex(ValueError, "already bound"):
            self.server.serve(Plain(), Robot.Motor, name="motor")
        for _ in range(2):
            self.server.withdraw(self.server.serve(Plain(), Robot.Motor, name="again"))


class Times(Served):
    def test_a_timeout_of_a_call_or_of_a_block(self):
        with self.assertRaises(rtorb.CORBA.TIMEOUT):
            self.motor.with_timeout(0.02).rest(500)
        with self.assertRaises(TimeoutError), rtorb.timeout(0.02):
            self.motor.rest(500)
        with rtorb.timeout(30):
            self.motor.rest(1)
        with self.assertRaises(rtorb.CORBA.TIMEOUT):
            rtorb.connect(self.motor.ior, idl=IDL, timeout=0.02).rest(500)
        with rtorb.timeout(0):
            for call in [self.motor.exists, lambda: self.motor.narrow(Robot.Part)]:
                self.assertRaises(rtorb.CORBA.TIMEOUT, call)
        with self.assertRaisesRegex(ValueError, "is no time"):
            self.motor.with_timeout(-1)

    def test_other_threads_run_while_a_call_waits(self):
        for where in ["this thread", "another"]:
            with self.subTest(where=where):
                counted, ends = [0], threading.Event()

                def count():
                    while not ends.is_set():
                        counted[0] += 1

                counting = threading.Thread(target=count)
                counting.start()
                if where == "this thread":
                    before = counted[0]
                    self.motor.rest(200)
                else:
                    calling = threading.Thread(target=self.motor.rest, args=(200,))
                    before = counted[0]
                    calling.start()
                    calling.join()
                grown = counted[0] - before
                ends.set()
                counting.join()
                # The servant sleeps in the same interpreter: if a waiting call kept the lock, nobody could run.
                self.assertGreater(grown, 1000)

    def test_a_signal_ends_the_wait_for_a_reply(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.motor.rest(60_000)
        self.assertLess(time.monotonic() - begin, 30)
        self.servant.release()
        self.assertEqual(self.motor.speed, self.servant.speed)

    def test_a_oneway_returns_at_once(self):
        self.motor.stop()
        self.assertTrue(self.servant.stopped.wait(30))


class Tasks(Served):
    def test_calls_are_awaited_together(self):
        async def all_of():
            motor = self.motor.async_
            modes = await asyncio.gather(*(motor.change(Robot.Motor.busy) for _ in range(20)))
            await motor._set_speed(77)
            await motor.stop()
            return modes, await motor.speed

        modes, speed = asyncio.run(all_of())
        self.assertEqual((set(modes), speed), ({Robot.Motor.busy}, 77))

    def test_the_loop_runs_while_a_call_waits(self):
        async def both():
            resting = asyncio.create_task(self.motor.async_.rest(300))
            turns = 0
            while not resting.done():
                await asyncio.sleep(0.001)
                turns += 1
            return turns

        self.assertGreater(asyncio.run(both()), 3)

    def test_exceptions_and_timeouts_of_tasks(self):
        async def failing():
            with self.assertRaises(Robot.Overheated):
                await self.motor.async_.turn(1000)
            with self.assertRaises(rtorb.CORBA.TIMEOUT), rtorb.timeout(0.05):
                await self.motor.async_.rest(500)
            with self.assertRaisesRegex(AttributeError, "did you mean `turn`"):
                await self.motor.async_.tun(1)
            with self.assertRaises(TypeError):
                await self.motor.async_.turn("x")

        asyncio.run(failing())

    def test_a_time_bounds_the_wait_for_a_thread_that_connects(self):
        async def late():
            loop = asyncio.get_running_loop()
            loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
            released = threading.Event()
            busy = loop.run_in_executor(None, released.wait, 60)
            motor = rtorb.connect(self.motor.ior, idl=IDL)
            with self.assertRaises(rtorb.CORBA.TIMEOUT) as raised, rtorb.timeout(0.02):
                await motor.async_.turn(0)
            self.assertFalse(busy.done())
            self.assertEqual(raised.exception.completed, rtorb.CompletionStatus.NO)
            released.set()
            await busy
            # The thread is free again.
            await motor.async_.turn(0)

        asyncio.run(late())

    def test_a_connection_that_broke_is_opened_beside_the_loop(self):
        server = rtorb.ORB()
        reference = server.serve(Motor(server), name="gone")
        server.start()
        proxy = rtorb.connect(reference.ior, idl=IDL)

        class Watched(concurrent.futures.ThreadPoolExecutor):
            opened = 0

            def submit(self, *arguments, **named):
                Watched.opened += 1
                return super().submit(*arguments, **named)

        async def opens():
            asyncio.get_running_loop().set_default_executor(Watched(1))
            counts = []
            for is_over in (False, False, True, True):
                if is_over:
                    server.shutdown()
                    # It does not wait for the end.
                    with self.assertRaises((rtorb.CORBA.COMM_FAILURE, rtorb.CORBA.TRANSIENT)):
                        while True:
                            await proxy.async_.name
                else:
                    await proxy.async_.name
                counts.append(Watched.opened)
            return counts

        self.assertEqual(asyncio.run(opens()), [1, 1, 1, 2])

    def test_a_cancelled_task_gives_its_call_up(self):
        async def cancelled():
            resting = asyncio.create_task(self.motor.async_.rest(60_000))
            await asyncio.sleep(0.1)
            resting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await resting
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.motor.async_.change(Robot.Motor.idle), 0.05)
            self.servant.release()
            return await self.motor.async_.change(Robot.Motor.idle)

        self.assertEqual(asyncio.run(cancelled()), Robot.Motor.idle)


class Programs(unittest.TestCase):
    def run_program(self, text, *arguments):
        # Of a parent that ignores it, a background job of a shell, Python inherits that.
        takes_sigint = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        program = [sys.executable, "-c", takes_sigint + text, *arguments]
        return subprocess.run(program, capture_output=True, text=True, timeout=120, cwd=FOLDER)

    def test_ctrl_c_ends_a_server(self):
        text = """
import os, signal, sys, threading, rtorb
idl = rtorb.load("robot.idl")
class Part(idl.Robot.Part_skel):
    name = "x"
orb = rtorb.ORB()
part = orb.serve(Part())
def interrupt():
    print(rtorb.connect(part.ior, interface=idl.Robot.Part).name)
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.3, interrupt).start()
try:
    orb.run()
except KeyboardInterrupt:
    print("interrupted")
"""
        done = self.run_program(text)
        self.assertEqual((done.stdout.split(), done.returncode), (["x", "interrupted"], 0), done.stderr)

    def test_ctrl_c_ends_a_wait_if_another_thread_imported_the_package(self):
        text = """
import os, signal, threading
importing = threading.Thread(target=__import__, args=("rtorb",))
importing.start()
importing.join()
import rtorb
idl = rtorb.load("robot.idl")
released = threading.Event()
class Part(idl.Robot.Part_skel):
    is_over = False
    @property
    def name(self):
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(60)
        Part.is_over = True
        return "late"
orb = rtorb.ORB()
part = rtorb.connect(orb.serve(Part()).ior, interface=idl.Robot.Part)
orb.start()
try:
    print(part.name)
except KeyboardInterrupt:
    print("late" if Part.is_over else "interrupted")
released.set()
"""
        done = self.run_program(text)
        self.assertEqual((done.stdout, done.returncode), ("interrupted\n", 0), done.stderr)

    def test_ctrl_c_ends_a_wait_for_a_connection(self):
        # The server accepts clients and never answers: each wait would last for its timeout.
        text = """
import os, signal, socket, sys, threading, rtorb
silent = socket.create_server(("127.0.0.1", 0))
port = silent.getsockname()[1]
def interrupt():
    with silent.accept()[0]:
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait(60)
ended = threading.Event()
threading.Thread(target=interrupt, daemon=True).start()
Robot = rtorb.load("robot.idl").Robot
orb = rtorb.ORB(["-ORBInitRef", f"NameService=corbaloc::127.0.0.1:{port}/NameService"])
url = f"corbaloc::127.0.0.1:{port}/x"
waits = {
    "connect": lambda: orb.connect(url),
    "name": lambda: orb.connect(f"corbaname::127.0.0.1:{port}#x"),
    "resolve": lambda: orb.resolve("NameService"),
    "narrow": lambda: orb.connect(url, interface=Robot.Part).narrow(Robot.Motor),
    "exists": lambda: orb.connect(url, interface=Robot.Part).exists(),
    "call": lambda: orb.connect(url, interface=Robot.Part).name,
}
try:
    with rtorb.timeout(100):
        waits[sys.argv[1]]()
except KeyboardInterrupt:
    print("interrupted")
sys.stdout.flush()
ended.set()
os._exit(0)
"""
        for wait in ["connect", "name", "resolve", "narrow", "exists", "call"]:
            with self.subTest(wait=wait):
                done = self.run_program(text, wait)
                self.assertEqual((done.stdout, done.returncode), ("interrupted\n", 0), done.stderr)

    def test_the_interpreter_ends_while_an_orb_serves(self):
        text = """
import rtorb, asyncio
idl = rtorb.load("robot.idl")
class Part(idl.Robot.Part_skel):
    name = "x"
orb = rtorb.ORB()
part = rtorb.connect(orb.serve(Part()).ior, interface=idl.Robot.Part)
orb.start()
async def name():
    return await part.async_.name
print(asyncio.run(name()))
"""
        done = self.run_program(text)
        self.assertEqual((done.stdout, done.returncode), ("x\n", 0), done.stderr)


class Memory(Served):
    def test_calls_do_not_make_the_process_grow(self):
        calls = int(os.environ.get("RTORB_PYTHON_CALLS", "4000"))
        path = [Robot.Position(1, 2)] * 4

        def call(count):
            for number in range(count):
                self.motor.turn(0)
                self.motor.go(path, number % 100)
                if number % 100 == 0:
                    with self.assertRaises(Robot.Overheated):
                        self.motor.turn(1000)

        async def awaited(count):
            for _ in range(count):
                await self.motor.async_.turn(0)

        def used():
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            return pages * resource.getpagesize() // 1024, sys.getallocatedblocks()

        call(calls // 20)
        asyncio.run(awaited(calls // 20))
        growth = []
        for _ in range(4):
            before = used()
            call(calls // 4)
            asyncio.run(awaited(calls // 8))
            growth.append([now - then for now, then in zip(used(), before)])
        kilobytes, blocks = (min(column) for column in zip(*growth))
        if calls > 4000:
            print(f"{calls} calls, more kB and blocks in each quarter: {growth}", file=sys.stderr)
        # What is made once (caches, free lists) stays in some quarters; an object kept by each call stays in every one,
        # and a quarter has at least 500 calls of each kind.
        self.assertLess(kilobytes, 1024, growth)
        self.assertLess(blocks, 200, growth)


if __name__ == "__main__":
    unittest.main()
