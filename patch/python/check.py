"""Compiles each text on standard input, writes nothing and runs none of it.

The question is JSON: a list of {"name", "text"} with the bytes in base64, as
they will be on disk, so that a coding line counts. The answer is a list of
messages, "" where the text compiles.
"""
import base64
import json
import sys
import warnings


def check(name, text):
    try:
        compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        line = getattr(error, "lineno", None)
        where = " in line %d" % line if line else ""
        return "%s%s: %s" % (type(error).__name__, where, getattr(error, "msg", None) or error)
    return ""


warnings.simplefilter("ignore")
answer = [check(q["name"], base64.b64decode(q["text"])) for q in json.load(sys.stdin)]
sys.stdout.write("\n\x1e" + json.dumps(answer) + "\n")
