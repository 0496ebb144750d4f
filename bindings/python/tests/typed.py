"""A program with the generated module, for type checkers; it runs too."""

import asyncio

import robot_idl
import rtorb


class Motor(robot_idl.Robot.Motor_skel):
    name = "typed"
    speed = 3

    def turn(self, degrees: int) -> float:
        if degrees > robot_idl.Robot.MOST:
            raise robot_idl.Robot.Overheated(temperature=70.0, at=robot_idl.Robot.Pace.fast)
        return degrees / 2


async def turned(motor: robot_idl.Robot.Motor) -> float:
    return await motor.async_.turn(20)


with rtorb.ORB() as orb:
    served = orb.serve(Motor())
    orb.start()
    motor = rtorb.connect(str(served), interface=robot_idl.Robot.Motor)
    degrees: float = motor.turn(90)
    speed: int = motor.speed
    motor.speed = speed + 1
    assert (degrees, motor.speed, asyncio.run(turned(motor))) == (45.0, 4, 10.0)
    try:
        motor.turn(1000)
    except robot_idl.Robot.Overheated as hot:
        temperature: float = hot.temperature
        assert temperature == 70.0
    print("typed: ok")
