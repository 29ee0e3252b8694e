"""YAML -> Device: a GPU that `layoutgen.hw.devices` lacks, or one of its own with other figures.

A file's keys are the fields of Device, and ``base`` may name a known device for what the file leaves out. Without one,
what follows from a compute capability in the table, and what all from 8.0 on have in common, may be left out; nothing
is assumed of older ones or AMD's. As for a spec, every error of a file is reported in one go, with its line.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from layoutgen.errors import LayoutgenError, SpecError
from layoutgen.hw.devices import DEVICES, Device, capability, device, is_arch, limits
from layoutgen.yamltext import INVALID, Document, Kind, describe, read

KIND: Final = Kind("device description", "the one in docs/my_gpu.yaml")
MAX_INT: Final = 1 << 30
ROUNDED: Final = 1.03  # a vendor's peak may be rounded up, and its clock down

_TYPES: Final[dict[str, type]] = get_type_hints(Device)
_KEYS: Final = ("base", *_TYPES)
_MAY_BE_ZERO: Final = {"shared_reserved_per_block", "llc_mb", "mma_flop_per_clock"}
_DEFAULTS: Final[dict[str, Any]] = {each.name: each.default for each in fields(Device) if each.default is not MISSING}
_LIMITS: Final = limits("sm_80").keys()  # the fields that differ between compute capabilities

# What figures must satisfy together: the keys, the rule, and whether it holds.
_TOGETHER: Final[tuple[tuple[tuple[str, ...], str, Callable[[Device], bool]], ...]] = (
    (
        ("max_threads_per_block", "max_threads_per_sm"),
        "a multiprocessor must hold the largest block",
        lambda each: each.max_threads_per_block <= each.max_threads_per_sm,
    ),
    (
        ("max_threads_per_sm", "warp_size"),
        "a multiprocessor must hold whole warps",
        lambda each: each.max_threads_per_sm % each.warp_size == 0,
    ),
    (
        ("shared_reserved_per_block", "shared_per_sm"),
        "a block must have shared memory beside what is reserved",
        lambda each: each.shared_per_block > 0,
    ),
    (
        ("registers_per_block", "registers_per_sm"),
        "a multiprocessor must have the registers of the largest block",
        lambda each: each.registers_per_block <= each.registers_per_sm,
    ),
    (
        ("register_unit", "warp_size"),
        "a unit of registers must hold equally many of each lane of a warp",
        lambda each: each.register_unit % each.warp_size == 0,
    ),
    (
        ("registers_per_sm", "partitions", "register_unit"),
        "each part of a multiprocessor must have whole units of registers",
        lambda each: each.registers_per_sm % (each.partitions * each.register_unit) == 0,
    ),
    (
        ("shared_banks", "bank_bytes"),
        "shared memory must have {shared_banks} banks of {bank_bytes} bytes, as wavefronts are counted for no other"
        "".format(**_DEFAULTS),
        lambda each: all(getattr(each, key) == _DEFAULTS[key] for key in ("shared_banks", "bank_bytes")),
    ),
    (
        ("fp32_tflops", "sms", "boost_mhz", "fp32_lanes_per_sm"),
        "the peak must be no more than the lanes give at their clock, an FMA counted as two",
        lambda each: each.fp32_tflops * 1e6 <= ROUNDED * 2 * each.sms * each.boost_mhz * each.fp32_lanes_per_sm,
    ),
)


def is_path(text: str) -> bool:
    """Whether ``--device`` means a file: a name with a separator, or one that ends in .yaml or .yml.

    >>> is_path("my_gpu.yaml"), is_path("./my_gpu"), is_path("h100-sxm")
    (True, True, False)
    """
    return os.sep in text or "/" in text or text.lower().endswith((".yaml", ".yml"))


def find(name: str) -> Device:
    """The device that a name of the table or a path means.

    Raises:
        SpecError: the file describes no device.
        LayoutgenError: no such name.
    """
    return load(name) if is_path(name) else device(name)


def load(path: str | Path) -> Device:
    """Reads the device description at `path`. Raises SpecError, which carries every error of the file with its line."""
    return loads(read(path, KIND), str(path))


def loads(text: str, path: str = "<text>") -> Device:
    """Reads a device from YAML text; `path` is what its places and errors call it. Raises SpecError."""
    return _Reading(Document(text, path, KIND)).device(path)


class _Refused(Exception):
    """A value is not what its key takes: the end of a sentence that starts with the key, and what is allowed."""

    def __init__(self, rule: str, allowed: str, fix: str | None = None) -> None:
        self.rule, self.allowed, self.fix = rule, allowed, fix


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_.-]{0,63}", text):
        raise _Refused("must be a name", "a lower-case letter, then lower-case letters, digits, _, . and -; at most 64")
    try:
        known = device(text).name
    except LayoutgenError:
        return text
    raise _Refused("must be the device's own", f"a name that is not {known}'s", f"write `name: my-{known}`")


def _arch(text: str) -> str:
    if not is_arch(text):
        raise _Refused("must be an architecture", "sm_ and the compute capability, such as sm_90a; or AMD's, as gfx942")
    return text


def _base(text: str) -> str:
    try:
        return device(text).name
    except LayoutgenError as error:
        raise _Refused("must be a device that layoutgen knows", error.allowed or "", error.fix) from None


def _source(text: str) -> str:
    if not text.strip() or len(text) > 200 or not text.isprintable():
        raise _Refused("must be one line of text", "1 to 200 printable characters")
    return text


def _integer(text: str, least: int) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,9}", text) or not least <= int(text) <= MAX_INT:
        raise _Refused(f"must be {'an' if least == 0 else 'a positive'} integer", f"{least} to {MAX_INT}, in digits")
    return int(text)


def _number(text: str, least: int) -> float:
    zero = least == 0
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or (float(text) == 0 and not zero):
        raise _Refused(f"must be a {'' if zero else 'positive '}number", "decimal digits, such as 66.9")
    return float(text)


_TEXTS: Final[dict[str, Callable[[str], str]]] = {"name": _name, "arch": _arch, "base": _base, "source": _source}


def _value(key: str, text: str) -> Any:
    """One value, read by its key. Raises _Refused."""
    if (read_text := _TEXTS.get(key)) is not None:
        return read_text(text)
    least = 0 if key in _MAY_BE_ZERO else 1
    return _integer(text, least) if _TYPES[key] is int else _number(text, least)


class _Reading:
    """One document on its way to a Device: its errors so far."""

    def __init__(self, document: Document) -> None:
        self.errors = list(document.errors)
        self._root, self._places = document.root, document.places

    def device(self, path: str) -> Device:
        """The Device. Raises SpecError with all errors."""
        given = dict(self._given())
        figures = {"source": path, **self._assumed(given), **given}
        self.errors += self._missing(figures)
        if self.errors:
            raise SpecError.of(self.errors)
        figures.pop("base", None)
        made = Device(**figures)
        self.errors += self._contradictions(made)
        if self.errors:
            raise SpecError.of(self.errors)
        return made

    def _given(self) -> Iterator[tuple[str, Any]]:
        """(key, value) of what the file says; INVALID for a value that has been refused."""
        if isinstance(self._root, str | list):
            self._refuse("", f"a {KIND.noun} is a mapping of keys to values", describe(self._root), ", ".join(_KEYS))
        for key, node in self._root.items() if isinstance(self._root, dict) else ():
            if key not in _KEYS:
                close = difflib.get_close_matches(key.lower(), _KEYS, n=1)
                fix = f"did you mean `{close[0]}`?" if close else "remove it"
                self._refuse(key, f"{key} is not a key of a {KIND.noun}", key, ", ".join(_KEYS), fix)
                continue
            value: Any = INVALID
            if isinstance(node, str):
                try:
                    value = _value(key, node)
                except _Refused as refused:
                    self._refuse(key, f"{key} {refused.rule}", repr(node), refused.allowed, refused.fix)
            elif node is not INVALID:
                self._refuse(key, f"{key} must be one value", describe(node), "text or a number")
            yield key, value

    def _assumed(self, given: dict[str, Any]) -> dict[str, Any]:
        """What the file may leave out."""
        base, arch = given.get("base"), given.get("arch", INVALID)
        if isinstance(base, str):
            return {key: getattr(DEVICES[base], key) for key in _TYPES if key not in ("name", "source")}
        if base is INVALID:
            return dict.fromkeys(_TYPES, INVALID)  # reported already; what it would have said is not missing
        if not isinstance(arch, str):
            return dict.fromkeys(_DEFAULTS.keys() | _LIMITS, INVALID)
        unknown = {"mma_flop_per_clock": 0}  # nothing is worked out from it then
        if (capability(arch) or (0, 0)) < (8, 0):
            return unknown
        return unknown | {key: value for key, value in _DEFAULTS.items() if key not in _LIMITS} | limits(arch)

    def _missing(self, figures: dict[str, Any]) -> Iterator[SpecError]:
        if not isinstance(self._root, dict):
            return
        like = DEVICES["mi300x" if str(figures.get("arch")).startswith("gfx") else "h200"]
        for key in (key for key in _TYPES if key not in figures):
            fix = f"add it, as in `{key}: {getattr(like, key)}` of the {like.name}, or name a known device in `base`"
            if key == "name":
                fix = "add it, as in `name: my-gpu`"
            yield SpecError(f"{key} is missing", fix=fix, where=self._places.where(key))

    def _contradictions(self, made: Device) -> Iterator[SpecError]:
        for keys, rule, holds in _TOGETHER:
            if not holds(made):
                at = next((key for key in keys if key in self._places.lines), "")
                got = ", ".join(f"{key}: {getattr(made, key)}" for key in keys)
                yield SpecError(rule, got=got, fix=f"change {' or '.join(keys)}", where=self._places.where(at))

    def _refuse(self, key: str, rule: str, got: str, allowed: str, fix: str | None = None) -> None:
        self.errors.append(SpecError(rule, got=got, allowed=allowed, fix=fix, where=self._places.where(key)))
