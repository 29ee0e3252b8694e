"""A roofline as SVG: GFLOP/s over FLOP per byte, both logarithmic."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from layoutgen.draw.budgets import Roofline

WIDTH, HEIGHT = 340.0, 216.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 22.0, 34.0


def roofline_svg(roofline: Roofline) -> str:
    """The picture, with its figures in the description and beside its points."""
    intensities = [point.intensity for point in roofline.points]
    low = floor(log10(min([roofline.ridge / 10, *intensities])))
    high = ceil(log10(max([roofline.ridge * 4, *intensities])))
    top = ceil(log10(roofline.peak_gflops * 1.5))
    bottom = floor(log10(roofline.roof(10**low)))

    def x(intensity: float) -> float:
        return LEFT + (log10(intensity) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(gflops: float) -> float:
        return HEIGHT - BOTTOM - (log10(gflops) - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    peak, ridge = roofline.peak_gflops, roofline.ridge
    said = [
        f"{p.name}: {p.intensity:.4g} FLOP per byte, "
        + (f"{p.gflops:,.0f} GFLOP/s" if p.gflops is not None else f"at most {roofline.roof(p.intensity):,.0f} GFLOP/s")
        for p in roofline.points
    ]
    about = (
        f"Peak {peak:,.0f} GFLOP/s, {roofline.bandwidth_gbs:,.0f} GB/s, ridge at {ridge:.3g} FLOP per byte. "
        + " ".join(f"{each}." for each in said)
    )
    parts = [
        f'<svg class="roofline" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-labelledby="roof-title roof-desc">',
        f'<title id="roof-title">Roofline</title><desc id="roof-desc">{escape(about)}</desc>',
        '<g font-size="10">',
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<path class="line" d="M{at:.1f} {TOP:g}V{HEIGHT - BOTTOM:g}"/>')
        parts.append(
            f'<text class="soft" x="{at:.1f}" y="{HEIGHT - BOTTOM + 13:g}" text-anchor="middle">{10.0**power:g}</text>'
        )
    for power in range(bottom, top + 1):
        at = y(10.0**power)
        parts.append(f'<path class="line" d="M{LEFT:g} {at:.1f}H{WIDTH - RIGHT:g}"/>')
        text = f"{10 ** (power - 3):g}T" if power >= 3 else f"{10**power:g}G"
        parts.append(f'<text class="soft" x="{LEFT - 5:g}" y="{at + 3.5:.1f}" text-anchor="end">{text}</text>')
    roof = f"M{x(10.0**low):.1f} {y(roofline.roof(10.0**low)):.1f}L{x(ridge):.1f} {y(peak):.1f}H{WIDTH - RIGHT:g}"
    parts.append(f'<path class="strong" d="{roof}"/>')
    parts.append(f'<text class="soft" x="{LEFT:g}" y="{TOP - 9:g}">FLOP/s</text>')
    parts.append(f'<text class="soft" x="{WIDTH - RIGHT:g}" y="{HEIGHT - 5:g}" text-anchor="end">FLOP per byte</text>')
    parts.append(
        f'<text x="{x(ridge) - 4:.1f}" y="{y(peak) - 3:.1f}" text-anchor="end">{peak / 1000:.3g} TFLOP/s</text>'
    )
    for index, point in enumerate(roofline.points):
        gflops = point.gflops if point.gflops is not None else roofline.roof(point.intensity)
        at_x, at_y = x(point.intensity), y(gflops)
        parts.append(f'<path class="guide" d="M{at_x:.1f} {at_y:.1f}V{HEIGHT - BOTTOM:g}"/>')
        parts.append(f'<circle class="mark" cx="{at_x:.1f}" cy="{at_y:.1f}" r="4.5"/>')
        # At the guide line's foot, where the roof is not, on the side that has more room; above those before.
        place = (at_x + 6, "start") if at_x < (LEFT + WIDTH) / 2 else (at_x - 6, "end")
        foot = HEIGHT - BOTTOM - 32 * index
        for text, weight, above in ((point.name, "bold", 20), (f"{point.intensity:.4g} FLOP/byte", "normal", 7)):
            parts.append(
                f'<text x="{place[0]:.1f}" y="{foot - above:.1f}" text-anchor="{place[1]}" font-weight="{weight}">'
                f"{escape(text)}</text>"
            )
    return "".join([*parts, "</g></svg>"])
