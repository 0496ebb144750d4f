"""The examples of README.md and docs/how-to/python.md, and the modules that `rtorb idl build --python` writes."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

FOLDER = Path(__file__).parent
PAGES = [FOLDER.parent / "README.md", FOLDER.parents[2] / "docs/how-to/python.md"]
COMMAND = os.environ.get("RTORB_COMMAND") or shutil.which("rtorb")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


class Pages(unittest.TestCase):
    def test_the_examples_of_the_pages_run(self):
        for page in PAGES:
            with self.subTest(page=page.name), tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (motor,) = blocks(page, "idl")
                server, *client = blocks(page, "python")
                (folder / "motor.idl").write_text(motor)
                (folder / "server.py").write_text(server)
                (folder / "client.py").write_text("\n".join(client))
                serving = subprocess.Popen([sys.executable, "server.py"], cwd=folder)
                try:
                    until = time.monotonic() + 60
                    while not (folder / "motor.ior").exists() or not (folder / "motor.ior").read_text():
                        self.assertIsNone(serving.poll())
                        self.assertLess(time.monotonic(), until)
                        time.sleep(0.02)
                    program = [sys.executable, "client.py"]
                    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=120)
                finally:
                    serving.terminate()
                    serving.wait(60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.split()[0], "90.0")
                for shown in re.findall(r"# (\d[\d.]*(?: \S+)*)$", "\n".join(client), re.MULTILINE):
                    self.assertIn(shown, done.stdout)


@unittest.skipUnless(COMMAND, "RTORB_COMMAND names the command rtorb")
class Modules(unittest.TestCase):
    def test_a_generated_module_has_what_its_stub_says(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [COMMAND, "idl", "build", "--python", "--out", folder, FOLDER / "robot.idl"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
            stub = Path(folder, "robot_idl.pyi").read_text()
            for line in ["def turn(self, degrees: int) -> float:", "async def turn(self, degrees: int) -> float:", "code: _typing.Optional[int] = None"]:
                self.assertIn(line, stub)
            program = [sys.executable, FOLDER / "typed.py"]
            environment = {**os.environ, "PYTHONPATH": folder}
            done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
            self.assertEqual((done.stdout, done.returncode), ("typed: ok\n", 0), done.stderr)
            # With mypy, if it is there: it is no package that the tests need.
            if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode == 0:
                command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.path.join(folder, "cache")]
                command += [os.path.join(folder, "robot_idl.pyi"), FOLDER / "typed.py"]
                checked = subprocess.run(command, env={**os.environ, "MYPYPATH": folder}, capture_output=True, text=True, timeout=300)
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
