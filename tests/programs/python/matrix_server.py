"""A Matrix::Echo served by the Python package.

matrix_server.py FILE: FILE is written when the server is ready. It ends by a signal. There is no line for a type.
"""

import os
import sys
from pathlib import Path

import rtorb

Matrix = rtorb.load(Path(__file__).parents[2] / "idl/matrix.idl").Matrix


class Echo:
    def __getattr__(self, operation):
        return lambda given, both: (given, given, both)

    def a_user_exception(self, reason, code, at):
        raise Matrix.Trouble(reason, code, at)


orb = rtorb.ORB()
reference = orb.serve(Echo(), Matrix.Echo)
orb.start()
with open(sys.argv[1] + ".draft", "w") as draft:
    draft.write(reference.ior + "\n")
os.replace(sys.argv[1] + ".draft", sys.argv[1])
orb.run()
