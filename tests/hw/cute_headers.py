"""Reads thread-value layouts out of CuTe's traits headers: text in, (shape, stride) out; it knows none of our atoms."""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import cutlass_library

ATOM = Path(cutlass_library.__file__).parent / "source" / "include" / "cute" / "atom"
_TOKEN = re.compile(r"[A-Za-z_][\w:]*|\d+|[<>,/]")


@cache
def text(header: str) -> str:
    return re.sub(r"//.*", "", (ATOM / header).read_text())


class Types:
    """The ``using X = ...;`` of some headers, and of one struct on top."""

    def __init__(self, *headers: str) -> None:
        self.source = "\n".join(text(header) for header in headers)
        outside = re.sub(r"struct\s[^;{]*\{.*?\n\};", "", self.source, flags=re.S)
        self.names = dict(re.findall(r"using\s+(\w+)\s*=\s*([^;]+);", outside))
        aliases = re.findall(r"template\s*<(int[^>]*)>\s*using\s+(\w+)\s*=\s*([^;]+);", self.source)
        self.templates = {name: (re.findall(r"int\s+(\w+)", heads), body) for heads, name, body in aliases}

    @cached_property
    def traits(self) -> dict[str, tuple[str, str]]:
        """Operation -> (base, body), of ``struct MMA_Traits<Operation<..>> : base { body };``, or Copy_Traits."""
        pattern = r"struct\s+(?:MMA|Copy)_Traits<\s*(\w+)[^{;]*?>\s*(?::\s*(?:MMA|Copy)_Traits<(\w+)>)?\s*\{(.*?)\};"
        return {name: (base, body) for name, base, body in re.findall(pattern, self.source, flags=re.S)}

    def member(self, operation: str, name: str) -> Any:
        """The value of a member type, looked up in base classes and through other members."""
        start = operation
        while operation:
            base, body = self.traits[operation]
            found = re.search(rf"using\s+{name}\s*=\s*([^;]+);", body)
            if found:
                other = re.fullmatch(r"(?:typename\s+Copy_Traits<(\w+)>::)?(\w+Layout)", found[1].strip())
                return self.member(other[1] or start, other[2]) if other else self.value(found[1])
            operation = base
        raise KeyError(name)

    def value(self, expression: str) -> Any:
        """Evaluate Layout<..>, Shape<..>, Stride<..>, _8, Int<8>, a name, or a quotient of those."""
        tokens = _TOKEN.findall(expression.replace("typename", ""))
        result, rest = self._parse(tokens, {})
        assert not rest, expression
        return result

    def _parse(self, tokens: list[str], bound: dict[str, int]) -> tuple[Any, list[str]]:
        head, rest = tokens[0].split("::")[-1], tokens[1:]
        arguments: list[Any] = []
        if rest and rest[0] == "<":
            rest = rest[1:]
            while True:
                argument, rest = self._parse(rest, bound)
                arguments.append(argument)
                separator, rest = rest[0], rest[1:]
                if separator == ">":
                    break
        result = self._apply(head, arguments, bound)
        if rest and rest[0] == "/":
            divisor, rest = self._parse(rest[1:], bound)
            result //= divisor
        return result, rest

    def _apply(self, head: str, arguments: list[Any], bound: dict[str, int]) -> Any:
        if head in bound:
            return bound[head]
        if head.isdigit() or re.fullmatch(r"_\d+", head):
            return int(head.removeprefix("_"))
        if head == "Int":
            return arguments[0]
        if head in ("Shape", "Stride"):
            return tuple(arguments)
        if head == "Layout":
            return tuple(arguments)
        if head in self.templates:
            parameters, body = self.templates[head]
            return self._parse(_TOKEN.findall(body), dict(zip(parameters, arguments, strict=True)))[0]
        return self._parse(_TOKEN.findall(self.names[head]), {})[0]
