"""The operator on a GPU: run with ``pytest -m gpu tests/gpu``. The largest operands take about 10 GiB each."""

from __future__ import annotations

import gc
import math

import pytest
import torch

import layoutgen
from layoutgen.errors import OperandError
from layoutgen.ops import Operator
from tests.ops.operands import (
    SPECS,
    TENSOR,
    Case,
    assert_near,
    assert_right,
    assert_untouched,
    elements,
    every_variant,
    on_device,
    only,
    operands,
    plans,
    reference,
    scalars,
    uniform,
)

pytestmark = pytest.mark.gpu

NAN = float("nan")
CASES = (
    Case(0, 17, 3, out=True),
    Case(17, 0, 3),
    Case(3, 33, 0, beta=-0.5, c="pitched", out=True),
    Case(33, 3, 0, out=True),
    Case(1, 1, 1),
    Case(130, 33, 1000, alpha=-1.5, beta=0.25, c="out"),
    Case(1000, 130, 33, beta=1.0, c="row"),
    Case(257, 1021, 131, alpha=0.5, beta=2.0, c="transposed", out=True),
    Case(1, 4092, 130, c="full"),
    Case(4092, 1, 33, beta=1.0, c="column"),
    Case(521, 257, 61, alpha=0.0, beta=0.75, c="pitched", out=True),
    Case(1000, 1000, 1000, alpha=2.0, beta=-1.0, c="1xN", out=True),
    Case(130, 4092, 4096),
)
PRIMES = (4093, 4099, 4091)
# Of the specs of tensor cores a variant in three, which meets every pair of modes, alignment and type.
OF_ATOMS = list(every_variant(*TENSOR))[::3]


@pytest.fixture(scope="module")
def op() -> Operator:
    return layoutgen.load("warptile_128x128")


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator("cuda").manual_seed(0)


@pytest.fixture(autouse=True)
def free_memory() -> None:
    gc.collect()
    torch.cuda.empty_cache()


# --- right -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "variant"), list(every_variant(*SPECS, *TENSOR)))
def test_every_variant_is_right(name: str, variant: str) -> None:
    operator = only(name, variant)
    for case in CASES:
        try:
            assert_right(operator, case, operator.plans[0], "cuda")
        except Exception as error:
            error.add_note(f"{case}, of {operator}")
            raise


@pytest.mark.parametrize(("name", "variant"), [*every_variant(*SPECS), *OF_ATOMS])
def test_every_variant_has_the_bits_of_the_simulator(name: str, variant: str) -> None:
    operator = only(name, variant)
    case = Case(130, 77, 45, alpha=0.7, beta=-1.3, c="pitched", out=True)
    a, b, c, out = operands(case, operator.plans[0])
    assert c is not None and out is not None
    on_gpu = [on_device(tensor, "cuda") for tensor in (a, b, c, out)]
    alpha, beta = scalars(case, operator.plans[0])
    operator.eager_out(a, b, c, alpha, beta, out=out)
    operator.eager_out(*on_gpu[:3], alpha, beta, out=on_gpu[3])
    assert torch.equal(on_gpu[3].cpu(), out)
    assert_untouched(on_gpu[3])


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (4092, 4092, 4092), PRIMES], ids=str)
@pytest.mark.parametrize("order", ["kn", "kk", "mn", "mk"])
def test_large_problems(name: str, shape: tuple[int, int, int], order: str, random: torch.Generator) -> None:
    operator, (m, n, k) = layoutgen.load(name), shape
    a = uniform(random, m, k) if order[0] == "k" else uniform(random, k, m).t()
    b = uniform(random, k, n) if order[1] == "n" else uniform(random, n, k).t()
    width = "4B" if shape == PRIMES else "16B"
    assert operator.variant_for(a, b).variant == f"a{order[0]}_b{order[1]}_{width}"
    assert_near(operator(a, b), *reference(a, b, None, 1.0, 0.0), k)


@pytest.mark.parametrize("name", TENSOR)
@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (4092, 4092, 4092), PRIMES], ids=str)
@pytest.mark.parametrize("order", ["kn", "kk", "mn", "mk"])
def test_large_problems_on_tensor_cores(
    name: str, shape: tuple[int, int, int], order: str, random: torch.Generator
) -> None:
    operator, (m, n, k) = layoutgen.load(name), shape
    plan = operator.plans[0]
    a = elements(random, plan.a.dtype, m, k) if order[0] == "k" else elements(random, plan.a.dtype, k, m).t()
    b = elements(random, plan.b.dtype, k, n) if order[1] == "n" else elements(random, plan.b.dtype, n, k).t()
    assert operator.variant_for(a, b).variant.startswith(f"a{order[0]}_b{order[1]}")
    assert_near(operator(a, b), *reference(a, b, None, 1.0, 0.0), k, plan)


def test_views_of_every_kind(op: Operator, random: torch.Generator) -> None:
    a, b, c = uniform(random, 260, 300), uniform(random, 300, 200), uniform(random, 260, 200)
    for left, right, what, variant in (
        (a[:, 1:], b[1:], c, "ak_bn_16B"),
        (a[:, :200], b[:200, 1:], c[:, 1:], "ak_bn_4B"),
        (a.reshape(-1)[1:].as_strided((64, 64), (64, 1)), b[:64, :64], c[:64, :64], "ak_bn_16B"),
        (b[:64, :60].t(), a.reshape(-1)[1:].as_strided((64, 64), (64, 1)), c[:60, :64], "am_bn_4B"),
        (a[::2, ::3], b[::3, ::2], c[::2, ::2], "any"),
        (a[:1].expand(130, 300), b, c[0], "ak_bn_16B"),
        (a[:, :1].expand(260, 300), b[:, :1].expand(300, 33), c[:, :1], "any"),
    ):
        exact, scale = reference(left, right, what, -1.5, 0.5)
        assert op.variant_for(left, right).variant == variant
        assert_near(op(left, right, what, -1.5, 0.5), exact, scale, left.shape[1])


def test_what_is_not_read_does_not_reach_the_result(op: Operator, random: torch.Generator) -> None:
    a, b, c = uniform(random, 257, 133), uniform(random, 133, 130), uniform(random, 257, 130)
    expected = op(a, b)
    nan = torch.full((257, 130), NAN, device="cuda")
    assert torch.equal(op(a, b, nan, 1.0, 0.0, out=nan), expected)
    wide = torch.full((257, 160), NAN, device="cuda")
    wide[:, :133] = a
    below = torch.full((160, 130), NAN, device="cuda")
    below[:133] = b
    assert torch.equal(op(wide[:, :133], below[:133]), expected)
    a[0, 0], b[1, 1] = NAN, math.inf
    assert torch.equal(op(a, b, c, 0.0, 1.0), c)
    assert torch.equal(op(a, b, alpha=0.0), torch.zeros_like(c))


def test_the_bits_do_not_depend_on_spec_batch_or_run(random: torch.Generator) -> None:
    a, b, c = uniform(random, 1000, 516), uniform(random, 516, 400), uniform(random, 400)
    alone = [name for name in SPECS if layoutgen.load(name).spec.schedule.kind == "data_parallel"]
    assert set(SPECS) - set(alone) == {
        "sgemm_mn_128x256x16",
        "sgemm_stream_128x256x16",
    }  # whose blocks share these tiles
    results = [layoutgen.load(name)(a, b, c, 1.1, 0.3) for name in (*alone, *alone)]
    assert all(torch.equal(results[0], result) for result in results[1:])
    for m in (1, 2, 17, 128, 257):
        assert torch.equal(layoutgen.load(alone[0])(a[:m], b, c, 1.1, 0.3), results[0][:m])


# --- large -----------------------------------------------------------------------------------------------------------

LONG, WIDE = 70001, 32768  # their product is 2.29e9 > 2^31


@pytest.mark.parametrize("name", SPECS)
def test_a_result_of_more_than_2_to_31_elements(name: str, random: torch.Generator) -> None:
    operator = layoutgen.load(name)
    a, b = uniform(random, LONG, 8), uniform(random, 8, WIDE)
    d = operator(a, b)
    ends = (slice(0, 200), slice(LONG // 2, LONG // 2 + 200), slice(LONG - 200, LONG))
    first = [d[rows].clone() for rows in ends]
    for rows, part in zip(ends, first, strict=True):
        assert_near(part, *reference(a[rows], b, None, 1.0, 0.0), 8)
    operator(a, b, d, 1.0, -0.5, out=d)  # C's last rows lie as far away
    for rows, part in zip(ends, first, strict=True):
        assert_near(d[rows], *reference(a[rows], b, part, 1.0, -0.5), 8)


@pytest.mark.parametrize("name", SPECS)
def test_an_out_whose_rows_lie_far_apart(name: str, random: torch.Generator) -> None:
    a, b = uniform(random, 4, 20), uniform(random, 20, 36)
    pitch = 2**30 + 4
    memory = torch.empty(3 * pitch + 40, device="cuda")
    out = memory.as_strided((4, 36), (pitch, 1), 4)
    memory.fill_(NAN)
    layoutgen.load(name)(a, b, out=out)
    assert_near(out, *reference(a, b, None, 1.0, 0.0), 20)
    assert int(memory.isnan().sum()) == memory.numel() - out.numel()


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("order", ["k", "x"])
def test_operands_of_more_than_2_to_31_elements(name: str, order: str, random: torch.Generator) -> None:
    """Both of A's and of B's orders: the last row, and the last k, lie more than 2^31 elements from the first."""
    operator = layoutgen.load(name)
    big = uniform(random, LONG, WIDE) if order == "k" else uniform(random, WIDE, LONG).t()
    small = uniform(random, WIDE, 8)
    last = slice(LONG - 300, LONG)
    assert_near(operator(big, small)[last], *reference(big[last], small, None, 1.0, 0.0), WIDE)
    assert_near(operator(small.t(), big.t())[:, last], *reference(small.t(), big.t()[:, last], None, 1.0, 0.0), WIDE)


@pytest.mark.parametrize("name", SPECS)
def test_more_than_65535_tiles_in_either_mode(name: str, random: torch.Generator) -> None:
    operator = layoutgen.load(name)
    block_m, block_n, _ = plans(name)[0].tile.block
    for m, n in ((65537 * block_m + 3, 5), (5, 65537 * block_n + 3)):
        a, b = uniform(random, m, 3), uniform(random, 3, n)
        assert_near(operator(a, b), *reference(a, b, None, 1.0, 0.0), 3)


# --- streams, devices, graphs ----------------------------------------------------------------------------------------


def test_a_call_follows_what_its_stream_has_done(op: Operator) -> None:
    a, b = torch.empty(130, 33, device="cuda"), torch.ones(33, 70, device="cuda")
    op(a, b)  # built and loaded
    torch.cuda.synchronize()
    stream, results = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
        for i in range(100):
            torch.cuda._sleep(100_000)  # what ran on another stream would read a too early
            a.fill_(float(i))
            results.append(op(a, b))
    stream.synchronize()
    for i, d in enumerate(results):
        assert d.unique().tolist() == [33.0 * i]


def test_a_call_runs_on_the_device_of_its_operands(op: Operator) -> None:
    """Whichever is current. With one GPU this is an ordinary call."""
    count = torch.cuda.device_count()
    for ordinal in range(count):
        where = f"cuda:{ordinal}"
        generator = torch.Generator(where).manual_seed(0)
        a, b = uniform(generator, 130, 33), uniform(generator, 33, 70)
        for current in range(count):
            with torch.cuda.device(current):
                d = op(a, b)
                assert d.device == torch.device(where) and torch.cuda.current_device() == current
            assert_near(d, *reference(a, b, None, 1.0, 0.0), 33)
        with torch.cuda.device(ordinal):
            op.warm_up()
        op.warm_up(ordinal)


def test_a_graph_replays_on_new_values(op: Operator, random: torch.Generator) -> None:
    op.warm_up()
    a, b, c = uniform(random, 260, 132), uniform(random, 132, 200), uniform(random, 200, 260).t()
    out = torch.empty(260, 201, device="cuda")[:, :200]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        d = op(a, b, c, 1.5, 0.5)
        op(d, b[:1, :1].expand(200, 200), out=out)
    for _ in range(2):
        a.copy_(uniform(random, 260, 132))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(d, op(a, b, c, 1.5, 0.5))
        assert torch.equal(out, op(d, b[:1, :1].expand(200, 200)))


def test_a_first_call_inside_a_capture_is_refused_and_breaks_nothing(op: Operator, random: torch.Generator) -> None:
    op.warm_up()
    a, b = uniform(random, 130, 33), uniform(random, 33, 70)
    fresh, graph = Operator(op.spec, op.plans), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(OperandError, match="loaded before a CUDA graph is captured"):
            fresh.eager(a, b)
        d = op(a, b)
    a.copy_(uniform(random, 130, 33))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(d, op(a, b))
    assert torch.equal(fresh.eager(a, b), d)


def test_an_operator_dropped_inside_a_capture_leaves_its_kernel(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 130, 33), uniform(random, 33, 70)
    out, graph, fresh = torch.empty(130, 70, device="cuda"), torch.cuda.CUDAGraph(), Operator(op.spec, op.plans)
    fresh.eager(a, b)
    with torch.cuda.graph(graph):
        fresh.eager_out(a, b, out=out)
        del fresh
        gc.collect()
    out.fill_(NAN)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, op(a, b))


# --- torch.compile ---------------------------------------------------------------------------------------------------


def test_compiled_by_the_default_backend(op: Operator, random: torch.Generator) -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return op(op(a, b, c, alpha=0.5, beta=2.0), b.t())

    torch.compiler.reset()
    a, b, c = uniform(random, 130, 33), uniform(random, 33, 70), uniform(random, 70)
    assert torch.equal(torch.compile(function, fullgraph=True)(a, b, c), function(a, b, c))


def test_compiled_with_padded_products(op: Operator) -> None:
    """Inductor pads rows of 2049 floats to whole 128 bytes. All numbers are small integers, so that sums are exact."""

    def function(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return op(x @ w, b)

    torch.compiler.reset()
    generator = torch.Generator("cuda").manual_seed(0)
    x, w, b = (
        torch.randint(-1, 2, shape, generator=generator, device="cuda").float()
        for shape in ((512, 256), (256, 2049), (2049, 64))
    )
    assert torch.equal(torch.compile(function, fullgraph=True)(x, w, b), (x.double() @ w.double() @ b.double()).float())


# --- refusals --------------------------------------------------------------------------------------------------------


def test_a_mix_of_cpu_and_gpu_names_the_operand(op: Operator) -> None:
    a, b, c = torch.ones(4, 3), torch.ones(3, 5), torch.ones(4, 5)
    there = [tensor.cuda() for tensor in (a, b, c)]
    for call, message in (
        (lambda: op(a, there[1]), "b must be on the device of a\n  got: a on cpu, b on cuda:0"),
        (lambda: op(there[0], b), "b must be on the device of a\n  got: a on cuda:0, b on cpu"),
        (lambda: op(there[0], there[1], c, 1.0, 1.0), "c must be on the device of a"),
        (lambda: op(there[0], there[1], torch.tensor(1.0), 1.0, 1.0), "c must be on the device of a"),
        (lambda: op(there[0], there[1], out=c), "out must be on the device of a"),
        (lambda: op(a, b, out=there[2]), "out must be on the device of a"),
    ):
        with pytest.raises(OperandError, match=message):
            call()


def test_what_is_refused_on_the_cpu_is_refused_here(op: Operator) -> None:
    a, b, square = torch.ones(4, 3, device="cuda"), torch.ones(3, 5, device="cuda"), torch.ones(8, 8, device="cuda")
    for call, message in (
        (lambda: op(a.half(), b), "a must be float32"),
        (lambda: op(a, b.t()), "the columns of a must match"),
        (lambda: op(a.clone().requires_grad_(), b), "a must not require grad"),
        (lambda: op(a, b, beta=1.0), "beta needs c"),
        (lambda: op(square, square.clone(), out=square), "out must not overlap a"),
        (lambda: op(a, b, out=torch.ones(5, 4, device="cuda").t()), "out must have rows of neighbouring elements"),
    ):
        with pytest.raises(OperandError, match=message):
            call()


def test_more_tiles_than_a_grid_has_blocks_are_refused(op: Operator) -> None:
    one, long = torch.ones(1, 1, device="cuda"), 2**31 - 2048
    with pytest.raises(OperandError, match="no more tiles than a grid has blocks"):
        op(one.expand(long, 1), one.expand(1, long))
