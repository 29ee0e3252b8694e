"""Devices in YAML: what a file may leave out and where that comes from, and how each of tests/bad_device is refused."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
import yaml

from layoutgen import device_file, facts
from layoutgen.device_file import find, is_path, load, loads
from layoutgen.errors import LayoutgenError, SpecError
from layoutgen.hw import devices
from layoutgen.hw.devices import DEVICES, Device, device

ROOT = Path(__file__).resolve().parents[2]
BAD = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/bad_device").glob("*.yaml"))

RTX3080 = """
name: rtx3080
arch: sm_86
sms: 68
boost_mhz: 1710
fp32_tflops: 29.8
memory_gbs: 760.3
l2_mb: 5
"""


def changed(made: Device, known: Device) -> dict[str, object]:
    """The figures of `made` that differ from those of `known`."""
    return {key: value for key, value in asdict(made).items() if value != getattr(known, key)}


def test_there_are_bad_devices_and_each_expectation_has_one() -> None:
    assert len(BAD) >= 20
    assert {path.stem for path in BAD} == {path.stem for path in (ROOT / "tests/bad_device").glob("*.expected")}


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_device(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # so that messages show the path from the repository's root
    with pytest.raises(SpecError) as caught:
        load(path)
    assert str(caught.value) == (ROOT / path).with_suffix(".expected").read_text().rstrip("\n")
    for error in caught.value.errors:
        assert error.where is not None and error.where.line is not None
        assert error.got is not None or error.fix is not None


def test_the_example_of_the_docs() -> None:
    made = load(ROOT / "docs/my_gpu.yaml")
    assert set(changed(made, device("rtxa6000"))) == {"name", "fp32_tflops", "source"}
    assert round(made.ridge, 2) == 39.06


def test_what_a_base_gives_is_kept_but_for_what_the_file_says() -> None:
    made = loads(
        "{name: slow-mi300x, base: MI300X, sms: 38, fp32_tflops: 20.4, memory_gbs: 662.5, shared_reserved_per_block: 0}"
    )
    assert changed(made, device("mi300x")) == {
        "name": "slow-mi300x", "sms": 38, "fp32_tflops": 20.4, "memory_gbs": 662.5, "source": "<text>",
    }  # fmt: skip


def test_a_peak_may_be_lower_than_the_lanes_allow_and_not_higher() -> None:
    """84 multiprocessors of 128 lanes at 1.8 GHz: 38.7 TFLOP/s. A vendor may round that up."""
    mine = "name: mine\nbase: rtxa6000\nfp32_tflops: {}\n"
    assert loads(mine.format(30)).flop_per_clock == pytest.approx(30e12 / (84 * 1.8e9))
    assert loads(mine.format(39)).flop_per_clock == 2 * 128
    with pytest.raises(SpecError, match="no more than the lanes give") as caught:
        loads(mine.format(41))
    assert caught.value.errors[0].where is not None and caught.value.errors[0].where.line == 3


@pytest.mark.parametrize("banks", ["shared_banks: 16", "bank_bytes: 8"])
def test_other_banks_than_wavefronts_are_counted_for_are_refused(banks: str) -> None:
    known = device("rtxa6000")
    assert (known.shared_banks, known.bank_bytes) == (facts.BANKS, facts.BANK_BYTES)
    with pytest.raises(SpecError, match="must have 32 banks of 4 bytes"):
        loads(f"name: mine\nbase: rtxa6000\n{banks}\n")


def test_a_block_s_registers_are_a_limit() -> None:
    """A quarter of a multiprocessor's 65,536 for the block: 128 of a thread of 128, 64 of one of 256."""
    mine = loads("name: mine\nbase: rtxa6000\nregisters_per_block: 16384\n")
    assert [facts.register_cap(threads, 1, mine) for threads in (64, 128, 256)] == [255, 128, 64]
    assert facts.register_cap(128, 8, mine) == facts.register_cap(128, 8, device("rtxa6000")) == 64


def test_a_compute_capability_gives_its_limits() -> None:
    made, same = loads(RTX3080, "mine.yaml"), device("rtx3090")  # of the same compute capability
    assert made.source == "mine.yaml"
    of_the_product = {"name", "sms", "boost_mhz", "fp32_tflops", "memory_gbs", "l2_mb", "source"}
    assert set(changed(made, same)) == of_the_product
    assert loads(RTX3080 + "max_blocks_per_sm: 8").max_blocks_per_sm == 8  # the file has the last word


@pytest.mark.parametrize("known", DEVICES.values(), ids=DEVICES)
def test_every_device_survives_a_file_of_all_its_figures(known: Device) -> None:
    mine = replace(known, name="mine")
    made = loads(yaml.safe_dump(asdict(mine)))
    assert made == mine
    assert [type(getattr(made, each.name)) for each in fields(Device) if each.type == "int"] == [
        int for each in fields(Device) if each.type == "int"
    ]


@pytest.mark.parametrize(
    ("arch", "left_out"),
    [
        ("gfx942", {"warp_size", "shared_reserved_per_block", "fp32_lanes_per_sm"}),
        ("sm_75", {"shared_unit", "shared_reserved_per_block", "fp32_lanes_per_sm"}),  # 256, 0 and 64, as it happens
        ("sm_120", {"shared_per_sm", "max_threads_per_sm", "max_blocks_per_sm", "fp32_lanes_per_sm"}),
    ],
)
def test_nothing_is_assumed_of_what_the_table_does_not_know(arch: str, left_out: set[str]) -> None:
    whole = asdict(device("h200")) | {"name": "mine", "arch": arch}
    loads(yaml.safe_dump(whole))
    with pytest.raises(SpecError) as caught:
        loads(yaml.safe_dump({key: value for key, value in whole.items() if key not in left_out}))
    assert {error.rule.split()[0] for error in caught.value.errors} == left_out


def test_what_all_newer_ones_have_in_common_may_be_left_out() -> None:
    common = {"max_threads_per_block", "registers_per_sm", "warp_size", "shared_unit", "shared_reserved_per_block"}
    whole = asdict(device("h200")) | {"name": "mine", "arch": "sm_120"}
    assert loads(yaml.safe_dump({key: value for key, value in whole.items() if key not in common})) == Device(**whole)


def test_each_fix_of_a_missing_key_mends_it() -> None:
    text = "name: mine\n"
    for _ in range(8):
        try:
            made = loads(text)
            break
        except SpecError as error:
            assert error.fix is not None
            text += error.fix.split("`")[1] + "\n"
    assert set(changed(made, device("h200"))) == {"name", "source"}


def test_a_path_is_told_from_a_name(tmp_path: Path) -> None:
    assert [is_path(each) for each in ("h200", "my.yml", "MY.YAML", "dir/gpu", "h100-pcie")] == [
        False, True, True, True, False,
    ]  # fmt: skip
    file = tmp_path / "gpu"
    file.write_text(RTX3080)
    assert find(str(file)) == load(file)
    assert find("RTX 3090") == device("rtx3090")
    with pytest.raises(LayoutgenError, match="did you mean h200"):
        find("h20")
    with pytest.raises(SpecError, match="the device description must exist"):
        find("h200.yaml")


@pytest.mark.parametrize("module", [devices, device_file], ids=lambda module: module.__name__)
def test_docstring_examples(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.failed == 0
    assert result.attempted == inspect.getsource(module).count(">>> ") > 0  # type: ignore[arg-type]
