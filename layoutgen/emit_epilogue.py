"""Plan -> the steps of its epilogue, as the pieces that a template puts together."""

from __future__ import annotations

from layoutgen.emit_accesses import ELEMENT, access_type
from layoutgen.epilogue import CPP, Tensor
from layoutgen.plan.chain import Link
from layoutgen.plan.model import Plan
from layoutgen.plan.storage import ITEMSIZE

# Integers are stored saturated, floats rounded to the nearest before; a NaN becomes 0 (PTX ISA 9.7.9.22, cvt).
_SATURATED = """\
CUTE_DEVICE {cpp} saturated({source} x) {{
  int least;
  asm("cvt.{how}.{to} %0, %1;" : "=r"(least) : "{constraint}"(x));
  return {cpp}(least);
}}"""
# CuTe's bf16 of an int cuts. A float has all that decides how it is rounded: 20 bits, and whether any is set below.
_ROUNDED = """\
CUTE_DEVICE cutlass::bfloat16_t rounded_once(int32_t x) {
  bool const exact = -(1 << 24) <= x && x <= 1 << 24;   // as a float
  return cutlass::bfloat16_t(float(exact ? x : (x & ~4095) | (x & 4095 ? 2048 : 0)));
}"""
_HOW = {"f32": ("float", "f", "rni.sat"), "s32": ("int32_t", "r", "sat")}


def chain_view(plan: Plan) -> dict[str, object]:
    """What the epilogue's template prints: functions, tensors by the modes that they have, and steps in their order."""
    epilogue = plan.epilogue
    functions = [text for link in epilogue.chain for text in link.step.functions(link.value)]
    tensors = [_tensor(plan, link) for link in epilogue.linked]
    saturates = plan.dtype in ("s8", "u8") or (plan.dtype == "s32" != epilogue.last)
    if saturates:
        source, constraint, how = _HOW["s32" if epilogue.last == "s32" else "f32"]
        to = f"{plan.dtype}.{'s32' if epilogue.last == 's32' else 'f32'}"
        functions.append(
            _SATURATED.format(cpp=ELEMENT[plan.dtype], source=source, constraint=constraint, how=how, to=to)
        )
    stored = "saturated" if saturates else ELEMENT[plan.dtype]
    if (epilogue.last, plan.dtype) == ("s32", "bf16"):
        functions.append(_ROUNDED)
        stored = "rounded_once"
    register, steps, value = "rD", [], epilogue.first
    for link in epilogue.chain:
        convert = None
        if link.value != value:
            convert, register, value = register, "rF", link.value
        steps.append({
            "about": link.step.about(),
            "convert": convert,
            "code": link.step.code(link.value).format(x=f"{register}(v)", t=_element(link)),
            "tensor": next((each for each in tensors if link.tensor and each["name"] == link.tensor.name), None),
        })  # fmt: skip
    return {
        "functions": list(dict.fromkeys(functions)),
        "tensors": tensors,
        "of_columns": [each for each in tensors if each["modes"] == "n"],
        "of_rows": [each for each in tensors if each["modes"] == "m"],
        "of_block": [each for each in tensors if "m" not in str(each["modes"])],
        "maxima": [each for each in tensors if each["written"]],
        "of_all": [each for each in tensors if each["modes"] == ""],
        "steps": steps,
        "early": epilogue.early,
        "interleaves": epilogue.turns > 1,
        "rows": plan.tile.value_mode[0].size // epilogue.turns,
        "about": ", then ".join(link.step.about() for link in epilogue.chain),
        "floats": CPP[epilogue.last],
        "register": register,
        "converts": ELEMENT[plan.dtype] != CPP[epilogue.last],
        "stored": stored,
        "lanes": epilogue.row_lanes,
        "others": sum(epilogue.row_lanes),
    }


def _tensor(plan: Plan, link: Link) -> dict[str, object]:
    tensor = link.tensor
    assert tensor is not None
    itemsize = ITEMSIZE[tensor.dtype]
    bits = "uint32_t" if itemsize == 4 else "unsigned long long"
    width = link.bytes // itemsize
    return {
        "name": tensor.name,
        "modes": tensor.modes,
        "about": {
            "": "one element", "m": "(m)", "n": "(n)", "mn": f"(m,n) at {tensor.name}_data[m * {tensor.name}_m + n]",
        }[tensor.modes] + (", written: its largest |x|, as bits" if tensor.written else ""),
        "value": CPP[link.value],
        "parameters": _parameters(tensor, bits if tensor.written else ELEMENT[tensor.dtype]),
        "element": bits if tensor.written else ELEMENT[tensor.dtype],
        "written": tensor.written,
        "access": access_type(tensor.dtype, width),
        "width": width,
        "pieces": plan.epilogue.vector // width if "n" in tensor.modes else 1,
        "columns": plan.epilogue.value_n.size,
        "run": plan.epilogue.vector,
    }  # fmt: skip


def _parameters(tensor: Tensor, element: str) -> str:
    """A tensor's parameters of the kernel. A matrix may be D itself, which __restrict__ would deny."""
    if tensor.modes == "mn":
        return f"{element} const* {tensor.name}_data, int64_t {tensor.name}_m"
    return f"{element}{'*' if tensor.written else ' const* __restrict__'} {tensor.name}_data"


def _element(link: Link) -> str:
    """The tensor's element for value v of a run, in the type in which the step computes."""
    tensor = link.tensor
    if tensor is None:
        return ""
    if tensor.written:
        return f"e_{tensor.name}"
    element = f"e_{tensor.name}" + {"n": "(j + v)", "mn": "(v)"}.get(tensor.modes, "(0)")
    converted = ELEMENT[tensor.dtype] == CPP[link.value] or "m" not in tensor.modes  # before all rows
    return element if converted else f"{CPP[link.value]}({element})"
