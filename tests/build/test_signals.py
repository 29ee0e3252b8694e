"""Ctrl-C while a kernel compiles is Python's: NVRTC would end the process, or hang it."""

from __future__ import annotations

from tests.build.test_tools import run

# Prints which handlers of SIGINT are seen while the process's first kernel compiles, then interrupts itself.
WATCH = """
import ctypes, os, signal, threading
from layoutgen.build import compile_ptx

libc, seen, done = ctypes.CDLL(None), [], threading.Event()

def handler():
    action = ctypes.create_string_buffer(256)
    libc.sigaction(int(signal.SIGINT), None, action)
    return int.from_bytes(action.raw[:8], "little")

def watch():
    while not done.wait(0.0005):
        seen.append(handler())

own = handler()
thread = threading.Thread(target=watch)
thread.start()
kernel = "__global__ void k{0}(float* x, int n) {{ for (int j = 0; j < n; ++j) x[j] += {0}; }}"
compile_ptx("".join(kernel.format(i) for i in range(60)), "k.cu")
done.set()
thread.join()
print("foreign handlers:", set(seen) - {own, int(signal.SIG_IGN)})
print("mostly our own:", 2 * seen.count(own) > len(seen) > 10)
print("kept:", handler() == own)
try:
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(5)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_compiling_leaves_ctrl_c_to_python() -> None:
    done = run(WATCH)
    assert done.stdout.splitlines() == [
        "foreign handlers: set()", "mostly our own: True", "kept: True", "interrupted"
    ], done.stderr  # fmt: skip
