"""YAML -> Spec: what the user asked for, typed and located, and nothing worked out.

A Spec is as far as text alone can go. Whether its levels fit together is for the plan to say; here a layout is only
parsed. Every value arrives as the text the user wrote (see yamltext) and is read by its field's type, every error of a
file is reported in one go, and every key remembers its line so that later stages can point at it.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import ErrorDetails

from layoutgen.epilogue import AnyStep
from layoutgen.errors import SpecError, Where
from layoutgen.hw.devices import capability
from layoutgen.hw.mfma_atoms import WAVEFRONT
from layoutgen.hw.warp_atoms import WARP, WARP_ATOMS, accumulator_of
from layoutgen.spec_fields import (
    ATOMS,
    About,
    Arch,
    Atom,
    Block,
    Count,
    CType,
    DType,
    FfmaOrder,
    Matrix,
    Name,
    SharedMatrix,
    Split,
    Spread,
    Stages,
    Sums,
    Tile,
    is_name,
)
from layoutgen.yamltext import INVALID, Document, Places, describe, read

# ---- the language: a model per mapping, a field per key; the docstrings are the JSON schema's descriptions ----


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class OperandA(_Model):
    """A, of M x K elements."""

    dtype: DType = Field(examples=["f32"])
    contiguous: Literal["m", "k"] = Field(examples=["k"])
    """The mode whose neighbours are neighbours in memory, for the variant the spec is tuned for."""


class OperandB(_Model):
    """B, of N x K elements."""

    dtype: DType = Field(examples=["f32"])
    contiguous: Literal["n", "k"] = Field(examples=["n"])
    """The mode whose neighbours are neighbours in memory, for the variant the spec is tuned for."""


class OperandC(_Model):
    """C and D, of M x N elements, n-contiguous."""

    dtype: CType = Field(examples=["f32"])


class Operands(_Model):
    """What is multiplied, and in which type it is summed."""

    a: OperandA = Field(examples=["{dtype: f32, contiguous: k}"])
    b: OperandB = Field(examples=["{dtype: f32, contiguous: n}"])
    c: OperandC = Field(examples=["{dtype: f32}"])
    accumulate: Sums = Field(examples=["f32"])


def _owners_or_atom(schema: dict[str, Any]) -> None:
    """Lanes and values are asked for where no atom gives them."""
    schema["required"] = [key for key in schema["required"] if key not in ("lanes", "values")]
    schema["anyOf"] = [{"required": ["atom"]}, {"required": ["lanes", "values"]}]


class Tiling(_Model):
    """The levels of the multiply, outside in."""

    model_config = ConfigDict(json_schema_extra=_owners_or_atom)

    block: Block = Field(examples=["[128, 128, 16]"])
    """(M, N, K) of the tile one thread block computes at a time."""
    warp: Tile | None = Field(default=None, examples=["[64, 64]"])
    """(M, N) of one warp's tile: a size, or a layout inside the block tile, per mode."""
    warps: Matrix = Field(examples=["(2,2):(2,1)"])
    """(warp_m, warp_n) -> warp."""
    atom: Atom | None = Field(default=None, examples=["SM80_16x8x16_F32BF16BF16F32_TN"])
    """The MMA atom that a warp multiplies by, by CuTe's name or AMD's mnemonic, repeated over its tile; its
    accumulators say who holds what of C. Without one, threads multiply and add f32."""
    split: Split | None = Field(default=None, examples=["tf32x3"])
    """How an atom of a narrower type multiplies f32: in registers each number becomes a sum of terms of that type, and
    the products of the larger terms are added, smallest first; tf32x3 has two terms and three products, bf16x6 three
    and six."""
    lanes: Matrix = Field(examples=["(8,4):(4,1)"])
    """(lane_m, lane_n) -> lane. A rank-1 layout stands along m: 32:1 is (32,1):(1,0). The atom's where there is one."""
    values: Tile = Field(examples=["[8, 4]"])
    """One thread's values per mode: an integer is a contiguous run, a layout gives their positions inside the warp
    tile. What is left of the warp tile repeats. The atom's where there is one."""
    order: FfmaOrder = Field(default="m", validate_default=True, examples=["serpentine_m"])
    """The order in which a thread issues the FFMAs of one k, or a warp its atoms: the outer mode, or a layout step ->
    value (or atom), m fastest. In a serpentine each mode runs backwards in every other turn of those after it."""

    @model_validator(mode="before")
    @classmethod
    def _of_the_atom(cls, data: Any) -> Any:
        """Lanes and values of an atom's accumulators."""
        if not isinstance(data, dict) or "atom" not in data:
            return data
        # One that isn't known is refused for that alone, and not for what it would have given.
        lanes, values = accumulator_of(WARP_ATOMS.get(str(data["atom"]), WARP_ATOMS[ATOMS[0]]))
        return {"lanes": lanes, "values": values, **data}


class Shared(_Model):
    """Shared memory."""

    a: SharedMatrix | None = Field(default=None, examples=["(128,16):(1,132)"])
    """(m, k) -> offset in elements inside one stage, which may be swizzled; the planner's choice when left out."""
    b: SharedMatrix | None = Field(default=None, examples=["(128,16):(1,132)"])
    """(n, k) -> offset in elements inside one stage, which may be swizzled; the planner's choice when left out."""
    stages: Stages = Field(examples=["2"])
    """How many block tiles of A and B are held at a time: with 1, none is fetched while another is multiplied (on AMD's
    it is, into registers); with 0, each thread loads what it multiplies straight from global memory."""


class Copy(_Model):
    """How one operand's block tile travels from global memory."""

    atom: Literal["cp.async", "ldg.sts", "ldg"] = Field(examples=["cp.async"])
    """cp.async goes straight to shared memory, on NVIDIA's; ldg.sts goes there through registers; ldg, without stages
    of shared memory, goes to the registers of the threads that multiply."""
    threads: Matrix | None = Field(default=None, examples=["(16,8):(8,1)"])
    """(m or n, k) -> thread; the planner's choice when left out. Not for ldg, whose threads are tiling's."""
    values: Tile | None = Field(default=None, examples=["[1, 4]"])
    """One thread's elements per step and mode, which no access reaches beyond; the planner's choice when left out."""


class Copies(_Model):
    """The copies of A and B; the planner's choice where left out."""

    a: Copy | None = Field(default=None, examples=["{atom: cp.async}"])
    b: Copy | None = Field(default=None, examples=["{atom: cp.async}"])
    spread: Spread = Field(default=(0, 1), examples=["[1, 15]"])
    """The k of a turn of the main loop, from the first up to the last, over which copies are dealt out; [0, 1] starts
    them all at once."""


class Schedule(_Model):
    """Which block computes which tile of C, and when."""

    kind: Literal["data_parallel", "stream_k"] = Field(default="data_parallel", examples=["stream_k"])
    """data_parallel: each block computes a tile over all of k. stream_k: where whole tiles would leave blocks idle in
    the last wave, as many as the last two waves hold are dealt out evenly, k-tile by k-tile, and partial sums meet."""
    raster: Literal["along_m", "along_n"] = Field(default="along_m", examples=["along_m"])
    """The mode along which consecutive blocks walk within a group of tiles."""
    group: Count = Field(default=1, examples=["8"])
    """How many tiles of that mode (GROUP_M) are walked before the other mode advances; 1 walks the other mode."""
    min_blocks: Count = Field(default=1, examples=["2"])
    """The second argument of __launch_bounds__: blocks that must fit on one multiprocessor of NVIDIA's."""
    waves_per_eu: Count | None = Field(default=None, examples=["2"])
    """Wavefronts that must fit on each SIMD of an AMD device, whose compiler takes it as amdgpu-waves-per-eu."""


class Spec(_Model):
    """One tiling of a matrix multiply, as its author wrote it. Frozen, hashable; equal when its values are."""

    name: Name = Field(examples=["warptile_128x128"])
    """The operator's name, and the stem of the file."""
    about: About = Field(examples=["Boehm's warp tiling"])
    """One line for people."""
    arch: Arch = Field(examples=["sm_80"])
    """The oldest architecture that can run it; gfx942 for an MI300X, whose warps (wavefronts) have 64 lanes."""
    operands: Operands = Field(examples=["{a: {...}, b: {...}, c: {...}, accumulate: f32}"])
    tiling: Tiling = Field(examples=["{block: [...], warps: ..., lanes: ..., values: [...]}"])
    shared: Shared = Field(examples=["{stages: 2}"])
    copies: Copies = Copies()
    schedule: Schedule = Schedule()
    epilogue: tuple[AnyStep, ...] = Field(default=(), examples=["[{bias: {per: column}}, gelu]"])
    """What happens to alpha * A * B + beta * C before it is stored: steps, in their order."""
    _places: Places = PrivateAttr(default=Places("<spec>", {}))

    @property
    def amd(self) -> bool:
        """Whether it is for an architecture of AMD's, for which it is planned, checked and drawn, but not emitted."""
        return capability(self.arch) is None

    @property
    def warp_size(self) -> int:
        """Lanes of a warp, or of a wavefront."""
        return WAVEFRONT if self.amd else WARP

    def where(self, key: str) -> Where:
        """The place of a dotted key such as ``tiling.lanes``, or of the nearest key around it that the file has."""
        return self._places.where(key)

    def spells(self, key: str) -> bool:
        """Whether the file has the dotted key itself; where it has not, its value is the default. One without a file
        spells all."""
        return not self._places.lines or key in self._places.lines

    def to_yaml(self) -> str:
        """The spec as YAML that loads to an equal Spec, defaults spelled out."""
        data = self.model_dump(exclude_none=True)
        return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10**6, default_flow_style=None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.__dict__ == other.__dict__  # the fields, not the places

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))


# ---- loading ----


def load(path: str | Path) -> Spec:
    """Reads the spec at `path`. Raises SpecError, which carries every error of the file with its line."""
    return _loads(read(path), str(path), stem=Path(path).stem)


def loads(text: str, path: str = "<text>") -> Spec:
    """Reads a spec from YAML text; `path` is what its places and errors call it. Raises SpecError."""
    return _loads(text, path, stem=None)


def _loads(text: str, path: str, stem: str | None) -> Spec:
    document = Document(text, path)
    errors = list(document.errors)
    spec: Spec | None = None
    try:
        spec = Spec.model_validate(document.root)
    except ValidationError as found:
        details = found.errors(include_url=False)
        errors += [_error(document, detail) for detail in details if not _is_reported(detail)]
    name = document.root.get("name") if isinstance(document.root, dict) else None
    if stem is not None and isinstance(name, str) and is_name(name) and name != stem:
        fix = f"rename the file to {name}.yaml" + (f" or write `name: {stem}`" if is_name(stem) else "")
        rule, where = "name must equal the file's stem", document.places.where("name")
        errors.append(SpecError(rule, got=repr(name), allowed=stem, fix=fix, where=where))
    if spec is None or errors:
        raise SpecError.of(errors)
    spec._places = document.places
    return spec


def _is_reported(detail: ErrorDetails) -> bool:
    """Whether the YAML reader has already said what is wrong with this value."""
    value = detail["input"]
    if detail["type"] in ("extra_forbidden", "reported"):
        return detail["type"] == "reported"
    return value is INVALID or (isinstance(value, list) and INVALID in value)


def _error(document: Document, detail: ErrorDetails) -> SpecError:
    """One of pydantic's findings in layoutgen's terms."""
    loc = tuple(map(str, detail["loc"]))
    key, found = ".".join(loc), detail["input"]
    got: object = describe(found)
    allowed: str | None = None
    fix: str | None = None
    match detail["type"]:
        case "missing":
            (example,) = _fields(loc[:-1])[loc[-1]].examples or ["..."]
            rule, got, fix = f"{key} is missing", None, f"add `{loc[-1]}: {example}`"
        case "extra_forbidden":
            known = list(_fields(loc[:-1]))
            rule, got, allowed = f"{key} is not a key of a spec", loc[-1], ", ".join(known)
            fix = _did_you_mean(loc[-1], known) or _belongs(loc[-1]) or "remove it"
        case "literal_error":
            words = _words(_fields(loc[:-1])[loc[-1]].annotation)
            rule, allowed, fix = f"{key} must be one of these words", ", ".join(words), _did_you_mean(found, words)
        case "tuple_type":
            rule, allowed = f"{key} must be a list", "one step a line, each after a -"
            fix = f"write {key}: [{found}]" if isinstance(found, str) else "begin each step with a -"
        case "model_type":
            rule = f"{key} must be a mapping" if key else "a spec is a mapping of keys to values"
            allowed = ", ".join(_fields(loc))
        case _:  # _refuse
            said = detail["ctx"]
            what = f"step {int(loc[1]) + 1} of the epilogue" if loc[0] == "epilogue" else key
            rule, got, allowed, fix = f"{what} {said['rule']}", said["got"], said["allowed"], said["fix"]
            key += said.get("at", "")
    return SpecError(rule, got=got, allowed=allowed, fix=fix, where=document.places.where(key))


def _words(annotation: Any) -> list[str]:
    """Those of a Literal, or of one that may be left out."""
    return [
        word
        for each in get_args(annotation)
        for word in (_words(each) if get_args(each) else [each])
        if isinstance(word, str)
    ]


def _models(annotation: Any) -> list[type[BaseModel]]:
    return [t for t in (annotation, *get_args(annotation)) if isinstance(t, type) and issubclass(t, BaseModel)]


def _fields(loc: tuple[str, ...]) -> dict[str, Any]:
    """The fields of the mapping at `loc`."""
    model: type[BaseModel] = Spec
    for name in loc:
        (model,) = _models(model.model_fields[name].annotation)
    return model.model_fields


def _did_you_mean(word: object, known: list[str]) -> str | None:
    number = re.sub(r"\D", "", str(word))  # sm_70 is no misspelling of sm_90, nor f16 of f32
    close = difflib.get_close_matches(str(word).lower(), [k for k in known if re.sub(r"\D", "", k) == number], n=1)
    return f"did you mean `{close[0]}`?" if close else None


def _belongs(name: str, model: type[BaseModel] = Spec, under: str = "") -> str | None:
    """Where in the language a misplaced key would be right."""
    for key, field in model.model_fields.items():
        if key == name and under:
            return f"move it under `{under}`"
        for inner in _models(field.annotation):
            if fix := _belongs(name, inner, f"{under}.{key}".strip(".")):
                return fix
    return None
