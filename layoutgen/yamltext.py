"""YAML text -> a tree of plain text and the line of every key.

YAML 1.1 gives scalars types of its own: an unquoted ``4:1`` is the number 241 in base 60, ``no`` is False, ``1_000`` is
1000. A layout language can't live with that, so nothing here ever resolves or constructs: the tree is built straight
from the parser's events and its leaves are the characters that the user wrote. With no resolver, composer or
constructor in the loader there is nothing that a tag could run or an alias could blow up.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import ScalarToken

from layoutgen.errors import SpecError, Where

MAX_BYTES: Final = 64 * 1024  # thirty times the longest spec; PyYAML reads that in about a second
MAX_DEPTH: Final = 8  # a spec needs four

TYPE_NAMES: Final[dict[type, str]] = {str: "text", list: "a list", dict: "a mapping"}


class Invalid:
    """Stands in the tree for a value that has been reported already, so that nobody reports it again."""


INVALID: Final = Invalid()


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file describes, as messages name it ("a spec is small"), and where there is one to start from."""

    noun: str
    example: str


SPEC: Final = Kind("spec", "one of the specs in specs/")

Node = str | list["Node"] | dict[str, "Node"] | Invalid


def describe(node: object) -> str:
    """How an error message shows what was found: text as it was written, anything else by its kind."""
    return repr(node) if isinstance(node, str) else TYPE_NAMES.get(type(node), type(node).__name__)


def read(path: str | Path, kind: Kind = SPEC) -> str:
    """The text of the file at `path`. Raises SpecError when it is missing, no file, too large, or not UTF-8."""
    where = Where(str(path))
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError(f"the {kind.noun} must exist", got="no such file", fix="check the path", where=where) from None
    except IsADirectoryError:
        fix = f"name one file, such as {Path(path, 'NAME.yaml')}"
        raise SpecError(f"a {kind.noun} is a file", got="a directory", fix=fix, where=where) from None
    except OSError as error:
        raise SpecError(f"the {kind.noun} must be readable", got=error.strerror, where=where) from None
    if len(data) > MAX_BYTES:
        raise SpecError(f"a {kind.noun} is small", got="a larger file", allowed=f"{MAX_BYTES} bytes", where=where)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError(
            f"a {kind.noun} is UTF-8 text",
            got=f"byte 0x{data[error.start]:02x}",
            fix="save the file as UTF-8",
            where=Where(str(path), line),
        ) from None


class _Events(Reader, Scanner, Parser):
    """PyYAML's event parser alone, and one change of its own: brackets of a layout protect their commas."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def scan_plain(self) -> ScalarToken:
        """Lets ``{a: (128,16):(1,132)}`` mean what it says; plain YAML would end the scalar at its first comma."""
        length = self._bracketed() if self.flow_level else 0
        if not length:
            return super().scan_plain()
        start, text = self.get_mark(), self.prefix(length)
        self.forward(length)
        return ScalarToken(text.rstrip(), True, start, self.get_mark())

    def _bracketed(self) -> int:
        """The length of the scalar that starts here if it has paired ( ) or < >, else 0."""
        length, unpaired, bracketed = 0, 0, False
        while (char := self.peek(length)) not in "\0\r\n[]{}":
            if char in "(<":
                unpaired, bracketed = unpaired + 1, True
            elif char in ")>":
                unpaired = max(unpaired - 1, 0)
            elif not unpaired and (char == "," or self.prefix(length + 2)[-2:] in (": ", " #")):
                break
            length += 1
        if unpaired:
            raise ScannerError(None, None, f"the brackets of {self.prefix(length)!r} don't pair", self.get_mark())
        return length if bracketed else 0


@dataclass(frozen=True, slots=True)
class Places:
    """Where the keys of one document stand: dotted path -> line. The root is the empty path."""

    path: str
    lines: Mapping[str, int]

    def where(self, key: str) -> Where:
        """The place of `key`, or of the nearest key around it when the file doesn't spell `key` out."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return Where(self.path, self.lines.get(key))


class _Stop(Exception):
    """The rest of the document can't be read; the error has been noted."""


class Document:
    """One YAML document as text.

    Attributes:
        root: nested dicts and lists whose leaves are str (or INVALID, where an error has been reported).
        places: where each key (or list item) stands.
        errors: what is wrong with the YAML itself.
    """

    def __init__(self, text: str, path: str, kind: Kind = SPEC) -> None:
        self._noun, self._example = kind.noun, kind.example
        self.root: Node = INVALID
        self.lines: dict[str, int] = {"": 1}
        self.places = Places(path, self.lines)
        self.errors: list[SpecError] = []
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            self._refuse(None, f"a {self._noun} is small", got="a longer text", allowed=f"{MAX_BYTES} bytes")
        elif not self._has_tabs(text):
            try:
                self._read(_Events(text))
            except ReaderError as error:
                line = text.count("\n", 0, error.position) + 1
                self._refuse(line, f"a {self._noun} holds printable characters only", got=f"U+{error.character:04X}")
            except yaml.MarkedYAMLError as error:
                self._refuse_syntax(error, text)
            except _Stop:
                pass

    def _refuse(self, line: int | None, rule: str, **about: str) -> None:
        self.errors.append(SpecError(rule, where=Where(self.places.path, line), **about))

    def _refuse_syntax(self, error: yaml.MarkedYAMLError, text: str) -> None:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        lines = text.splitlines()
        source = textwrap.shorten(lines[line - 1], 90) if line <= len(lines) else ""
        about = {"got": f"{source!r}: {error.problem}" if source else str(error.problem)}
        if re.search(r"[)\d]\s*:\s+[(\d]|[)\d]\s+:\s*[(\d]", source):
            about["fix"] = "write a layout without spaces around its colon, or put it in quotes"
        elif error.context_mark and "flow" in str(error.context):
            about["fix"] = f"close the bracket that opens on line {error.context_mark.line + 1}"
        elif "don't pair" in str(error.problem):
            about["fix"] = "close each bracket of a layout; put other text with brackets in quotes"
        self._refuse(line, f"a {self._noun} must be valid YAML", **about)

    def _has_tabs(self, text: str) -> bool:
        for number, line in enumerate(text.splitlines(), 1):
            indent = line[: len(line) - len(line.lstrip())]
            if "\t" in indent and line.strip():
                self._refuse(number, "YAML is indented with spaces", got="a tab", fix="replace the tab by spaces")
        return bool(self.errors)

    def _read(self, events: _Events) -> None:
        events.get_event()  # the stream's start
        if events.check_event(yaml.StreamEndEvent):
            self._refuse(1, f"a {self._noun} needs keys", got="an empty file", fix=f"start from {self._example}")
            return
        events.get_event()  # the document's start
        root = self._node(events, "", depth=0)
        events.get_event()  # the document's end
        if not events.check_event(yaml.StreamEndEvent):
            line = events.peek_event().start_mark.line + 1
            fix = f"give each {self._noun} its own file"
            self._refuse(line, f"a file holds one {self._noun}", got="a second document", fix=fix)
        self.root = root

    def _node(self, events: _Events, key: str, depth: int) -> Node:
        """Consumes one node and returns it."""
        event = events.get_event()
        line = event.start_mark.line + 1
        self.lines.setdefault(key, line)
        valid = self._is_plain_data(event, line)
        if isinstance(event, yaml.CollectionStartEvent) and depth >= MAX_DEPTH:
            got, allowed = f"more than {MAX_DEPTH} levels", f"{MAX_DEPTH} levels"
            self._refuse(line, f"a {self._noun} is shallow", got=got, allowed=allowed)
            raise _Stop
        node: Node = INVALID
        if isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(events, key, depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(events, key, depth)
        elif isinstance(event, yaml.ScalarEvent):
            node = str(event.value)
            if event.style is None and node in ("", "~", "null", "Null", "NULL"):
                rule = f"{key} needs a value" if key else f"a {self._noun} is a mapping of keys to values"
                self._refuse(self.lines[key], rule, got=node or "nothing", fix="give it a value or remove the key")
                valid = False
        return node if valid else INVALID

    def _is_plain_data(self, event: yaml.NodeEvent, line: int) -> bool:
        """Reports what has no place in a spec: anchors, aliases and tags."""
        if event.anchor is not None:
            got = ("*" if isinstance(event, yaml.AliasEvent) else "&") + event.anchor
            self._refuse(line, f"a {self._noun} has no anchors or aliases", got=got, fix="write the value out")
            return False
        if getattr(event, "tag", None) is not None:
            got = event.tag  # type: ignore[attr-defined]
            rule = f"a {self._noun} has no tags: every value is read as text"
            self._refuse(line, rule, got=got, fix="remove the tag")
            return False
        return True

    def _mapping(self, events: _Events, key: str, depth: int) -> Node:
        items: dict[str, Node] = {}
        while not events.check_event(yaml.MappingEndEvent):
            line = events.peek_event().start_mark.line + 1
            name = self._key(events, line)
            child = ".".join(filter(None, (key, name)))
            if name is None or name in items:
                if name is not None:
                    got = f"{child}, which line {self.lines[child]} has already set"
                    self._refuse(line, "a key appears once", got=got, fix="remove one of the two")
                self._node(events, child, depth + 1)  # read for the errors inside it, then dropped
                continue
            self.lines.setdefault(child, line)
            items[name] = self._node(events, child, depth + 1)
        events.get_event()
        return items

    def _key(self, events: _Events, line: int) -> str | None:
        event = events.get_event()
        if isinstance(event, yaml.CollectionStartEvent):
            self._refuse(line, "a key is text", got="a list or mapping as a key", fix="start the line with a key")
            raise _Stop
        return str(event.value) if self._is_plain_data(event, line) else None

    def _sequence(self, events: _Events, key: str, depth: int) -> Node:
        items: list[Node] = []
        while not events.check_event(yaml.SequenceEndEvent):
            items.append(self._node(events, f"{key}.{len(items)}", depth + 1))
        events.get_event()
        return items
