"""Static cases for CuTe C++: expressions of the algebra, drawn by a seed, with what our algebra says they are.

A case becomes ``static_assert(is_same_v<decltype(expression), type>)`` in a file that g++ reads against the headers of
the nvidia-cutlass wheel. All is known at compile time: CuTe's run-time paths give up earlier and return other forms.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, IntTuple, Layout, cute_type
from layoutgen.algebra.int_tuple import flatten, to_text
from layoutgen.build.tools import toolchain
from layoutgen.errors import LayoutError
from tests.algebra.reference import leaves, value, values

PREAMBLE = """\
#include <cute/layout.hpp>
#include <cute/swizzle_layout.hpp>
using namespace cute;
"""
FLAGS = ("-std=c++17", "-fsyntax-only", "-w", "-fmax-errors=0", "-fdiagnostics-color=never")


@dataclass(frozen=True, slots=True)
class Case:
    """One expression: its operation, how we write it, how C++ does, and the C++ type that it should have."""

    op: str
    text: str
    expression: str
    type: str

    def __str__(self) -> str:
        return self.text


# C++ spellings


def type_of(x: Any) -> str:
    """The C++ type whose only value is ``x``."""
    if x is None:
        return "Underscore"
    if isinstance(x, bool):
        return f"C<{str(x).lower()}>"
    if isinstance(x, int):
        return f"Int<{x}>"
    if isinstance(x, tuple):
        return f"cute::tuple<{','.join(map(type_of, x))}>"
    return cute_type(x)


def value_of(x: Any) -> str:
    return type_of(x) + "{}"


def show(x: Any) -> str:
    """As ``algebra.parse`` reads it: tilers in angle brackets, IntTuples in parentheses."""
    if x is None:
        return "_"
    if isinstance(x, tuple) and not all(isinstance(leaf, int) for leaf in flatten(x)):
        return f"<{','.join(map(show, x))}>"
    return to_text(x) if isinstance(x, (int, tuple)) else str(x)


def _call(name: str, *arguments: Any) -> str:
    return f"{name}({','.join(map(value_of, arguments))})"


def _by_number(name: str, layout: Any, n: int) -> str:
    return f"{name}<{n}>({value_of(layout)})"


def _recast(layout: Any, old_bits: int, new_bits: int) -> str:
    return f"recast_layout<uint_bit_t<{old_bits}>,uint_bit_t<{new_bits}>>({value_of(layout)})"


def _get(layout: Layout, *path: int) -> str:
    return f"get<{','.join(map(str, path))}>({value_of(layout)})"


def _with_shape(layout: Any, shape: IntTuple) -> str:
    return f"{value_of(layout)}.with_shape({value_of(shape)})"


def _apply(layout: Any, *coordinate: IntTuple) -> str:
    return f"({value_of(layout)})({','.join(map(value_of, coordinate))})"


def _sliced(name: str, layout: Any, coordinate: Any) -> str:
    return f"{name}({value_of(coordinate)},{value_of(layout)})"


SPELLINGS: dict[str, Callable[..., str]] = {
    "upcast": partial(_by_number, "upcast"),
    "downcast": partial(_by_number, "downcast"),
    "recast_layout": _recast,
    "get": _get,
    "with_shape": _with_shape,
    "apply": _apply,
    "slice": partial(_sliced, "slice"),
    "dice": partial(_sliced, "dice"),
}


def apply(layout: Any, *coordinate: IntTuple) -> int:
    result: int = layout(*coordinate)
    return result


def operation(op: str) -> Callable[..., Any]:
    return apply if op == "apply" else getattr(algebra, op)


def expression(op: str, *arguments: Any) -> str:
    """The call in C++."""
    return SPELLINGS.get(op, partial(_call, op))(*arguments)


def text(op: str, *arguments: Any) -> str:
    """The call in our words."""
    return f"{op}({', '.join(map(show, arguments))})"


def case(op: str, *arguments: Any) -> Case:
    """The case for one call, its type as our algebra has it; LayoutError if it refuses."""
    result = type_of(operation(op)(*arguments))
    if op in {"upcast", "downcast"} or (op == "recast_layout" and arguments[1] != arguments[2]):
        # CuTe multiplies and divides an offset by an unsigned number.
        result = result.replace(",_0,Layout<", ",C<0u>,Layout<")
    return Case(op, text(op, *arguments), expression(op, *arguments), result)


def cases(op: str, count: int, draw: Callable[[Random], tuple[Any, ...]]) -> Iterator[Case]:
    """``count`` different cases, the same ones each time; drawn again where our algebra or CuTe refuses."""
    random = Random(f"layoutgen oracle {op}")
    seen: set[str] = set()
    for _ in range(50 * count):
        if len(seen) == count:
            return
        arguments = draw(random)
        try:
            made = case(op, *arguments)
            inside = all(cute_composes(a, b) for a, b in compositions(op, *arguments))
        except LayoutError:
            continue
        if inside and made.text not in seen:
            seen.add(made.text)
            yield made
    raise AssertionError(f"{op}: only {len(seen)} of {count} cases found")


def compositions(op: str, a: Any, b: Any = None, *_: Any) -> Iterator[tuple[Layout, Layout]]:
    """The compositions of two layouts in one call, as CuTe makes them."""
    if isinstance(a, ComposedLayout):
        yield from compositions(op, a.layout_b, b)
    elif not isinstance(a, Layout) or not isinstance(b, (int, tuple, Layout)):
        return
    elif op == "with_shape":
        assert not isinstance(b, Layout)
        yield a, Layout(b)
    elif op == "composition" or op.endswith(("_divide", "_product")):
        if isinstance(b, tuple):
            for mode, entry in enumerate(b):
                yield from compositions(op, a[mode], entry)
            return
        tile = b if isinstance(b, Layout) else Layout(b)
        if op == "composition":
            yield a, tile
        elif op.endswith("_divide"):
            yield a, algebra.make_layout(tile, algebra.complement(tile, algebra.coalesce(a).shape))
        else:
            yield algebra.complement(a, a.size * tile.cosize), tile


def cute_composes(a: Layout, b: Layout) -> bool:
    """Whether CuTe's static conditions on composition hold, and its result keeps R(i) == A(B(i))."""
    if a.flat_shape[-1] == 1:
        # CuTe, as we do, lets the last mode go on past its end.
        a = Layout((*a.flat_shape[:-1], 2), a.flat_stride)
    whole = algebra.coalesce(a)
    modes = leaves(whole.shape, whole.stride)
    pieces: list[tuple[int, int]] = []
    for n, d in leaves(b.shape, b.stride):
        for extent, step in modes[:-1]:
            if d >= extent and d % extent:
                return False
            fits = -(-extent // abs(d)) if d else 1
            if fits > 1 and n > 1:
                if n % min(fits, n):
                    return False
                pieces.append((min(fits, n), d * step))
                n //= min(fits, n)
            d = -(-abs(d) // extent) * (1 if d > 0 else -1)
        pieces.append((n, d * modes[-1][1]))
    result = Layout(tuple(n for n, _ in pieces), tuple(d for _, d in pieces))
    return values(result) == [value(a, index) for index in values(b)]


# g++


@dataclass(frozen=True, slots=True)
class Verdict:
    """What g++ has against each line, by position (nothing for a line that it accepts), and the CPU seconds it took."""

    refused: dict[int, str]
    seconds: float


def same(expression: str, type: str) -> str:
    return f"static_assert(is_same_v<decltype({expression}), {type}>);"


def compile_lines(lines: Sequence[str], folder: Path) -> Verdict:
    """Let g++ read ``lines`` of C++ after CuTe's headers. It goes on after an error, so that each line is judged."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.fail("the oracle has g++ read CuTe's headers, and there is no g++ here: install g++ 9 or newer")
    source = folder / "oracle.cpp"
    source.write_text(PREAMBLE + "".join(f"{line}\n" for line in lines))
    includes = [f"-I{include}" for include in toolchain().includes]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([compiler, *FLAGS, *includes, source], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = PREAMBLE.count("\n") + 1
    # An error deep inside CuTe names our line too, where its chain of instantiations begins.
    refused: dict[int, str] = {}
    for number, message in re.findall(rf"^{re.escape(str(source))}:(\d+):\d+: +(.*)$", ran.stderr, flags=re.M):
        refused.setdefault(int(number) - first, message)
    if ran.returncode not in (0, 1) or bool(ran.returncode) != bool(refused) or any(k < 0 for k in refused):
        pytest.fail(f"g++ can't read CuTe's headers:\n{ran.stderr[:2000]}")
    return Verdict(refused, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
