"""Sends the values of a Matrix::Samples to each Matrix::Echo of a file, and asks a Matrix::Judge whether they come back.

matrix_client.py FILE SAMPLES JUDGE
A line of FILE is a word and a reference. For each of these and each type, it prints the word, the name of the operation, and "ok", or the
directions that are wrong, or the call that raised an exception and its name. The three are separated by tabulators. The operations are those
of the IDL, so there is no line for a type here.
"""

import sys
from pathlib import Path

import rtorb

Matrix = rtorb.load(Path(__file__).parents[2] / "idl/matrix.idl").Matrix

# The number of values that are sent. The server repeats those of a type with fewer.
VALUES = 4


def said(echo, operation):
    wrong, call = {}, "samples"
    give, take = getattr(samples, operation, None), getattr(judge, operation, None)
    try:
        for index in range(VALUES):
            if operation == "a_user_exception":
                reason, code, at = samples.a_string(index), samples.a_long(index), samples.a_fixed_struct(index)
                call = "echo"
                try:
                    echo.a_user_exception(reason, code, at)
                    wrong["result"] = True
                except Matrix.Trouble as trouble:
                    call = "judge"
                    right = judge.a_string(index, trouble.reason) and judge.a_fixed_struct(index, trouble.at)
                    if not right or trouble.code != code:
                        wrong["result"] = True
                continue
            call = "samples"
            given, both = give(index), give(index + 1)
            call = "echo"
            result, both, made = getattr(echo, operation)(given, both)
            call = "judge"
            for direction, at, value in [("result", index, result), ("inout", index, both), ("out", index + 1, made)]:
                if not take(at, value):
                    wrong[direction] = True
    except Exception as failed:
        print(operation, call, repr(failed), file=sys.stderr)
        return f"{call} {type(failed).__name__}"
    return "differs: " + " ".join(wrong) if wrong else "ok"


samples = rtorb.connect(sys.argv[2], interface=Matrix.Samples)
judge = rtorb.connect(sys.argv[3], interface=Matrix.Judge)
operations = [name for name in vars(Matrix.Echo_skel) if not name.startswith("_")]
for line in Path(sys.argv[1]).read_text().splitlines():
    word, reference = line.split()
    # A connection agrees on code sets once, and all versions of a server have one address.
    with rtorb.ORB() as own:
        echo = own.connect(reference, interface=Matrix.Echo, timeout=120)
        for operation in operations:
            print(word, operation, said(echo, operation), sep="\t", flush=True)
