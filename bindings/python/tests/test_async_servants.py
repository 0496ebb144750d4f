"""Servants whose methods are coroutines, on the event loop of `ORB.run_async`."""

import asyncio
import contextlib
import logging
import threading
import unittest
from pathlib import Path

import rtorb

IDL = Path(__file__).parent / "robot.idl"
Robot = rtorb.load(IDL).Robot
PATIENCE = 60


class Motor(Robot.Motor_skel):
    """A servant of coroutines. It is made on the event loop."""

    def __init__(self):
        self.resting = asyncio.Event()
        self.released = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.stopped = asyncio.Event()
        self.part = None
        self.threads = set()

    @property
    async def speed(self):
        await asyncio.sleep(0)
        return 5

    # It answers at once, beside the coroutines.
    def change(self, given):
        return given

    async def turn(self, degrees):
        self.threads.add(threading.current_thread())
        await asyncio.sleep(0)
        if degrees > Robot.MOST:
            raise Robot.Overheated(temperature=99.5, at=Robot.fast)
        if degrees < 0:
            raise rtorb.CORBA.BAD_PARAM(7, rtorb.CompletionStatus.NO)
        return degrees * 2

    async def go(self, path, count):
        await asyncio.sleep(0)
        return path[-1], count + len(path), Robot.fast

    async def remark(self, given):
        return "no note"

    async def rest(self, milliseconds):
        self.resting.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def stop(self):
        self.stopped.set()

    async def break_down(self):
        raise ZeroDivisionError("broken")

    async def whole(self):
        # A call within a call ends by the same deadline.
        await self.part.async_.rest(0)

    async def echo(self, given):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def served():
    """A servant on this loop, and its proxy through another ORB."""
    orb = rtorb.ORB()
    servant = Motor()
    reference = orb.serve(servant)
    serving = asyncio.create_task(orb.run_async())
    try:
        yield servant, rtorb.connect(reference.ior, interface=Robot.Motor), orb, serving
    finally:
        orb.shutdown()
        await asyncio.wait([serving], timeout=PATIENCE)


def within(awaitable):
    return asyncio.wait_for(awaitable, PATIENCE)


class Coroutines(unittest.TestCase):
    def test_results_and_exceptions_come_when_the_coroutine_is_done(self):
        async def calls():
            async with served() as (servant, motor, _, _):
                tasks = motor.async_
                self.assertEqual(await within(tasks.turn(45)), 90.0)
                self.assertEqual(servant.threads, {threading.main_thread()})
                self.assertEqual(await within(tasks.go([Robot.Position(1, 2)], 5)), (Robot.Position(1.0, 2.0), 6, Robot.fast))
                self.assertEqual(await within(tasks.speed), 5)
                self.assertEqual(await within(tasks.change(Robot.Motor.busy)), Robot.Motor.busy)
                with self.assertRaises(Robot.Overheated) as hot:
                    await within(tasks.turn(1000))
                self.assertEqual(hot.exception.temperature, 99.5)
                with self.assertRaises(rtorb.CORBA.BAD_PARAM) as wrong:
                    await within(tasks.turn(-1))
                self.assertEqual((wrong.exception.minor, wrong.exception.completed), (7, rtorb.CompletionStatus.NO))
                # A call of another thread waits while the loop runs.
                self.assertEqual(await within(asyncio.get_running_loop().run_in_executor(None, motor.turn, 10)), 20.0)

        asyncio.run(calls())

    def test_undeclared_exceptions_and_wrong_results_are_logged(self):
        async def calls():
            async with served() as (_, motor, _, _):
                for call, text in ((motor.async_.break_down(), "ZeroDivisionError: broken"), (motor.async_.remark(Robot.Note("x")), "'no note' (str)")):
                    with self.assertLogs("rtorb", logging.ERROR) as logged, self.assertRaises(rtorb.CORBA.UNKNOWN):
                        await within(call)
                    self.assertIn(text, logged.output[0])

        asyncio.run(calls())

    def test_calls_of_one_client_are_carried_out_together(self):
        async def calls():
            async with served() as (servant, motor, _, _):
                resting = asyncio.create_task(motor.async_.rest(0))
                await within(servant.resting.wait())
                self.assertEqual(await within(motor.async_.turn(1)), 2.0)
                self.assertFalse(resting.done())
                servant.released.set()
                self.assertIsNone(await within(resting))

        asyncio.run(calls())

    def test_a_deadline_or_a_cancelled_call_cancels_the_coroutine(self):
        async def late():
            async with served() as (servant, motor, _, _):
                await within(motor.async_.turn(0))
                with self.assertRaises(rtorb.CORBA.TIMEOUT), rtorb.timeout(0.5):
                    await motor.async_.rest(0)
                if servant.resting.is_set():
                    await within(servant.cancelled.wait())

        async def given_up():
            async with served() as (servant, motor, _, _):
                resting = asyncio.create_task(motor.async_.rest(0))
                await within(servant.resting.wait())
                resting.cancel()
                await within(servant.cancelled.wait())

        for test in (late, given_up):
            with self.subTest(test=test.__name__):
                asyncio.run(test())

    def test_calls_of_a_coroutine_end_by_its_deadline(self):
        async def nested():
            async with served() as (outer, outer_motor, _, _), served() as (inner, inner_motor, _, _):
                outer.part = inner_motor
                await within(outer_motor.async_.turn(0))
                await within(inner_motor.async_.turn(0))
                with self.assertRaises(rtorb.CORBA.TIMEOUT), rtorb.timeout(0.5):
                    await outer_motor.async_.whole()
                if inner.resting.is_set():
                    await within(inner.cancelled.wait())

        asyncio.run(nested())

    def test_a_coroutine_that_is_cancelled_answers_no_response(self):
        async def calls():
            async with served() as (_, motor, _, _):
                with self.assertLogs("rtorb", logging.WARNING) as logged, self.assertRaises(rtorb.CORBA.NO_RESPONSE):
                    await within(motor.async_.echo(1))
                self.assertIn("echo was cancelled", logged.output[0])

        asyncio.run(calls())

    def test_a_oneway_may_be_a_coroutine(self):
        async def calls():
            async with served() as (servant, motor, _, _):
                await within(motor.async_.stop())
                await within(servant.stopped.wait())

        asyncio.run(calls())

    def test_cancelling_run_async_ends_the_orb_and_its_calls(self):
        async def cancelled():
            async with served() as (servant, motor, _, serving):
                resting = asyncio.create_task(motor.async_.rest(0))
                await within(servant.resting.wait())
                serving.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await within(serving)
                with self.assertRaises(rtorb.SystemException):
                    await within(resting)
                await within(servant.cancelled.wait())

        asyncio.run(cancelled())

    def test_a_coroutine_without_a_loop_is_an_error_that_says_so(self):
        class Plain:
            async def turn(self, degrees):
                return 1.0

        with rtorb.ORB() as orb:
            motor = rtorb.connect(orb.serve(Plain(), Robot.Motor).ior, interface=Robot.Motor)
            orb.start()
            with self.assertLogs("rtorb", logging.ERROR) as logged, self.assertRaises(rtorb.CORBA.BAD_INV_ORDER) as raised:
                motor.turn(1)
            self.assertIn("run_async", logged.output[0])
            self.assertEqual(raised.exception.completed, rtorb.CompletionStatus.NO)


if __name__ == "__main__":
    unittest.main()
