"""PTX text -> Module of Kernels of Instructions (PTX ISA 9.0, chapters 4 and 5).

The parser knows statements, scopes and declarations; it does not know what any instruction does. Names declared
inside an inline-asm scope ``{ .reg .pred p; ... }`` are made unique, so that later stages see one flat name space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from layoutgen.errors import SimError, Where

SIZES: Mapping[str, int] = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4, "f32":
    4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
}  # fmt: skip

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
_BRACE = re.compile(r"[{}]")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
_PREFIX = re.compile(
    r"\s*(?:([{}])|\.loc\s+(\d+)\s+(\d+)(?:[^\n]*inlined_at\s+(\d+)\s+(\d+))?[^\n]*|([\w$]+)\s*:(?!:))"
)
_STATEMENT = re.compile(r"(?:@(!?)\s*([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
_OPERAND = re.compile(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]])+")
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s*(?:\.\w+\s+|\.align\s+\d+\s+)*)?([\w$]+)(?:\[(\d+)\])?"
)
_VARIABLE = re.compile(
    r"(?:\.(?:extern|visible|weak|common)\s+)*\.(shared|local|global|const)\s+(?:\.align\s+(\d+)\s+)?"
    r"\.(\w+)\s+([\w$%]+)((?:\[\d*\])*)"
)
_NAME = re.compile(r"%?[A-Za-z_$][\w$]*")
_WORD = re.compile(r"[\w$%]+")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction; ``line`` counts from 1 in the PTX text.

    ``source`` is (file, line) from ``.loc`` or None; ``caller`` is where that line's function was inlined, or None.
    """

    index: int
    opcode: str
    operands: tuple[str, ...]
    guard: str | None
    negated: bool
    text: str
    line: int
    source: tuple[str, int] | None
    caller: tuple[str, int] | None = None

    def __str__(self) -> str:
        origin = "" if self.source is None else f", {self.source[0]}:{self.source[1]}"
        return f"`{self.text}` (PTX line {self.line}{origin})"


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter: bytes [offset, offset + size) of the parameter space; an array of ``b8`` is a struct by
    value.
    """

    name: str
    type: str
    offset: int
    size: int
    is_array: bool


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a state space: its byte offset in that space and its size (None for ``extern .shared x[]``)."""

    name: str
    space: str
    align: int
    offset: int
    size: int | None


@dataclass(frozen=True, eq=False)
class Kernel:
    """One ``.entry``: parameters, declarations and instructions in text order.

    ``labels`` maps a label to the index of the instruction it stands before; ``registers`` maps a register, or the
    prefix of a range such as ``%f<8>``, to its declared type; ``limits`` holds ``maxntid`` and ``reqntid`` as thread
    counts.
    """

    name: str
    target: str
    params: tuple[Param, ...]
    param_bytes: int
    static_shared_bytes: int
    local_bytes: int
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    registers: Mapping[str, str]
    variables: Mapping[str, Variable]
    limits: Mapping[str, tuple[int, int, int]]

    def where(self, ins: Instruction) -> Where:
        """The place of an instruction, as errors name it."""
        return Where(f"{self.name}.ptx", ins.line)


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed PTX text: its target architecture and its kernels by name."""

    target: str
    kernels: Mapping[str, Kernel]


def parse(ptx: str) -> Module:
    """PTX text -> Module. Raises SimError where the text is not PTX that this parser can follow."""
    if not ptx.isascii():
        raise SimError("PTX is ASCII text", got="a character outside ASCII")
    text = _COMMENT.sub(lambda m: "\n" * m[0].count("\n"), ptx)
    target = re.search(r"\.target\s+(\w+)", text)
    if target is None:
        raise SimError(
            "a PTX module names its .target", got="no .target directive", fix="pass the text that nvcc -ptx writes"
        )
    files = {int(m[1]): m[2] for m in _FILE.finditer(text)}
    kernels: dict[str, Kernel] = {}
    spans: list[tuple[re.Match[str], int]] = []
    outside, last = [], 0
    for head in _ENTRY.finditer(text):
        end = _closing_brace(text, head.end())
        spans.append((head, end))
        outside.append(text[last : head.start()])
        last = end
    outside.append(text[last:])
    module_scope = [m for part in outside for m in _VARIABLE.finditer(part)]
    for head, end in spans:
        kernels[head[1]] = _Body(
            head, text[head.end() : end], text.count("\n", 0, head.end()) + 1, files, module_scope
        ).kernel(target[1])
    return Module(target[1], kernels)


def split_operands(text: str) -> tuple[str, ...]:
    """Operands between commas, where a ``{vector}`` and an ``[address]`` each stay whole."""
    if "{" in text or "[" in text:
        return tuple(s.strip() for s in _OPERAND.findall(text))
    return tuple(s.strip() for s in text.split(",")) if text else ()


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for m in _BRACE.finditer(text, start):
        depth += 1 if m[0] == "{" else -1
        if depth == 0:
            return m.start()
    raise SimError("every kernel body ends with its closing brace", got="the end of the text")


def _up(offset: int, align: int) -> int:
    return -(-offset // align) * align


class _Token(NamedTuple):
    kind: str  # {, }, label, loc or statement
    text: str
    line: int


class _Body:
    """Collects one kernel's declarations and instructions; ``scopes`` is the stack of name tables of open ``{``
    blocks.
    """

    def __init__(
        self, head: re.Match[str], body: str, line: int, files: Mapping[int, str], outer: list[re.Match[str]]
    ) -> None:
        self.name = head[1]
        self.body, self.first_line, self.files = body, line, files
        self.params, self.param_bytes = self._parameters(head[2] or "")
        self.limits = {
            m[1]: (int(m[2]), int(m[3] or 1), int(m[4] or 1))
            for m in re.finditer(r"\.(maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", head[3])
        }
        self.registers: dict[str, str] = {}
        self.labels: dict[str, int] = {}
        self.variables: dict[str, Variable] = {}
        self.used = {"shared": 0, "local": 0, "global": 0, "const": 0}
        self.scopes: list[dict[str, str]] = []
        self.instructions: list[Instruction] = []
        names = set(_WORD.findall(body)) if outer else set()
        for m in outer:
            if m[4] in names:  # most of a module's variables are never used
                self._variable(m)

    def _parameters(self, text: str) -> tuple[tuple[Param, ...], int]:
        found: list[Param] = []
        offset = 0
        for item in text.split(","):
            if not item.strip():
                continue
            m = _PARAM.fullmatch(item.strip())
            if m is None or m[2] not in SIZES:
                raise SimError(
                    "a kernel parameter is a .param declaration", got=item.strip(), where=Where(f"{self.name}.ptx")
                )
            size = SIZES[m[2]] * int(m[4] or 1)
            offset = _up(offset, int(m[1] or SIZES[m[2]]))
            found.append(Param(m[3], m[2], offset, size, m[4] is not None))
            offset += size
        return tuple(found), offset

    def kernel(self, target: str) -> Kernel:
        tokens = list(self._tokens())
        tables = self._scope_tables(tokens)
        source: tuple[str, int] | None = None
        caller: tuple[str, int] | None = None
        for token in tokens:
            if token.kind == "{":
                self.scopes.append(next(tables))
            elif token.kind == "}":
                self.scopes.pop()
            elif token.kind == "label":
                self.labels[self._resolve(token.text)] = len(self.instructions)
            elif token.kind == "loc":
                source, caller = self._places(token.text)
            elif token.text.startswith("."):
                self._directive(token.text, token.line)
            else:
                self._instruction(token, source, caller)
        return Kernel(
            self.name, target, self.params, self.param_bytes, self.used["shared"], self.used["local"],
            tuple(self.instructions), self.labels, self.registers, self.variables, self.limits,
        )  # fmt: skip

    def _tokens(self) -> Iterator[_Token]:
        """The body in order: braces of scopes, labels and .loc, which take no ``;``, and statements."""
        line = self.first_line
        for chunk in self.body.split(";"):
            at = 0
            while m := _PREFIX.match(chunk, at):
                here = line + chunk.count("\n", 0, m.end())
                if m[1]:
                    yield _Token(m[1], "", here)
                elif m[6]:
                    yield _Token("label", m[6], here)
                else:
                    yield _Token("loc", " ".join(filter(None, m.group(2, 3, 4, 5))), here)
                at = m.end()
            text = chunk[at:].lstrip()
            if text:
                yield _Token("statement", text.rstrip(), line + chunk.count("\n", 0, len(chunk) - len(text)))
            line += chunk.count("\n")

    def _scope_tables(self, tokens: list[_Token]) -> Iterator[dict[str, str]]:
        """For each scope, in order of its opening, the names declared directly in it -> unique names.

        They are collected ahead because a branch may name a label that comes later in its scope.
        """
        tables: list[dict[str, str]] = []
        stack: list[dict[str, str]] = []
        for token in tokens:
            names: list[str] = []
            if token.kind == "{":
                stack.append({})
                tables.append(stack[-1])
            elif token.kind == "}":
                if not stack:
                    raise SimError("braces pair up", got="an extra }", where=Where(f"{self.name}.ptx", token.line))
                stack.pop()
            elif token.kind == "label":
                names = [token.text]
            elif token.kind == "statement" and stack and token.text.startswith(".reg"):
                names = [re.sub(r"<\d+>", "", n).strip() for n in token.text.split(None, 2)[-1].split(",")]
            if stack:
                number = next(i for i, table in enumerate(tables) if table is stack[-1])
                stack[-1].update({name: f"{name}${number}" for name in names})
        if stack:
            raise SimError("braces pair up", got="a { without its }", where=Where(f"{self.name}.ptx"))
        return iter(tables)

    def _places(self, text: str) -> tuple[tuple[str, int], tuple[str, int] | None]:
        """Of a .loc: its file and line, and those that its function was inlined at."""
        numbers = list(map(int, text.split()))
        places = [
            (self.files.get(file, f"file {file}"), line) for file, line in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        return places[0], places[1] if len(places) > 1 else None

    def _instruction(self, token: _Token, source: tuple[str, int] | None, caller: tuple[str, int] | None) -> None:
        m = _STATEMENT.fullmatch(token.text)
        if m is None:
            rule = "a statement is a label, a directive or an instruction"
            raise SimError(rule, got=token.text, where=Where(f"{self.name}.ptx", token.line))
        guard, operands = m[2], m[4]
        if self.scopes:
            guard = None if guard is None else self._resolve(guard)
            operands = _NAME.sub(lambda n: self._resolve(n[0]), operands)
        flat = " ".join(token.text.split())
        index = len(self.instructions)
        self.instructions.append(
            Instruction(index, m[3], split_operands(operands), guard, m[1] == "!", flat, token.line, source, caller)
        )

    def _resolve(self, name: str) -> str:
        for table in reversed(self.scopes):
            if name in table:
                return table[name]
            prefix = name.rstrip("0123456789")
            if prefix != name and prefix in table:
                return table[prefix] + "_" + name[len(prefix) :]
        return name

    def _directive(self, text: str, line: int) -> None:
        words = text.split(None, 2)
        if words[0] == ".reg" and len(words) == 3:
            for item in words[2].split(","):
                name, _, count = item.strip().partition("<")
                resolved = self._resolve(name)
                if count and resolved != name:
                    resolved += "_"
                self.registers[resolved] = words[1].lstrip(".")
        elif m := _VARIABLE.match(text):
            self._variable(m)
        elif words[0] not in (".pragma", ".loc", ".file", ".section"):
            raise SimError("the simulator knows this directive", got=text, where=Where(f"{self.name}.ptx", line))

    def _variable(self, m: re.Match[str]) -> None:
        space, element, name = m[1], m[3], m[4]
        if element not in SIZES:
            raise SimError("a variable has a PTX type", got=m[0], where=Where(f"{self.name}.ptx"))
        align = int(m[2] or SIZES[element])
        if m[5] == "[]":
            self.variables[name] = Variable(name, space, align, 0, None)
            return
        size = SIZES[element]
        for extent in re.findall(r"\[(\d+)\]", m[5]):
            size *= int(extent)
        offset = _up(self.used[space], align)
        self.variables[name] = Variable(name, space, align, offset, size)
        self.used[space] = offset + size
