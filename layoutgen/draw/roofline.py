"""A roofline as SVG: TFLOP/s over FLOP per byte, both logarithmic."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

from layoutgen.draw.budgets import Roofline

WIDTH, HEIGHT = 340.0, 216.0
LEFT, RIGHT, TOP, BOTTOM = 30.0, 12.0, 22.0, 34.0
CEILING, FOOT = 68.0, 32.0  # the width of the ceiling's name, the height of a point's


def roofline_svg(roofline: Roofline) -> str:
    """The picture, with its figures in the description and beside its points."""
    intensities = [point.intensity for point in roofline.points]
    low = floor(log10(min([roofline.ridge / 10, *intensities])))
    high = ceil(log10(max([roofline.ridge * 4, *intensities])))
    top = roofline.peak * 1.4
    bottom = min([roofline.roof(10**low), *([roofline.ceiling / 2] if roofline.ceiling else [])])

    def x(intensity: float) -> float:
        return LEFT + (log10(intensity) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(tflops: float) -> float:
        return HEIGHT - BOTTOM - log10(tflops / bottom) / log10(top / bottom) * (HEIGHT - TOP - BOTTOM)

    peak, ridge = roofline.peak, roofline.ridge
    parts = [
        f'<svg class="roofline" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-labelledby="roof-title roof-desc">',
        f'<title id="roof-title">Roofline</title><desc id="roof-desc">{escape(_about(roofline))}</desc>',
        '<g font-size="10">',
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<path class="line" d="M{at:.1f} {TOP:g}V{HEIGHT - BOTTOM:g}"/>')
        parts.append(
            f'<text class="soft" x="{at:.1f}" y="{HEIGHT - BOTTOM + 13:g}" text-anchor="middle">{10.0**power:g}</text>'
        )
    for tick in _ticks(bottom, top):
        parts.append(f'<path class="line" d="M{LEFT:g} {y(tick):.1f}H{WIDTH - RIGHT:g}"/>')
        parts.append(f'<text class="soft" x="{LEFT - 5:g}" y="{y(tick) + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
    begin = max(10.0**low, bottom / roofline.roof(1.0)) if roofline.ridge > 1 else 10.0**low
    roof = f"M{x(begin):.1f} {y(roofline.roof(begin)):.1f}L{x(ridge):.1f} {y(peak):.1f}H{WIDTH - RIGHT:g}"
    parts.append(f'<path class="strong" d="{roof}"/>')
    parts.append(f'<text class="soft" x="6" y="{TOP - 9:g}">TFLOP/s</text>')
    parts.append(f'<text class="soft" x="{WIDTH - RIGHT:g}" y="{HEIGHT - 5:g}" text-anchor="end">FLOP per byte</text>')
    # Both named at the left of their lines, where the slope leaves room; a low ceiling has none there.
    parts.append(f'<text x="{x(ridge) - 5:.1f}" y="{y(peak) - 3:.1f}" text-anchor="end">peak {peak:.3g}</text>')
    feet = HEIGHT - BOTTOM
    if roofline.ceiling is not None:
        meets, level = max(LEFT, x(1e3 * roofline.ceiling / roofline.bandwidth)), y(roofline.ceiling)
        aside = 13 * (x(10.0) - x(1.0)) / (y(1.0) - y(10.0))  # how far the slope runs left while it falls by the label
        parts.append(f'<path class="ceiling" d="M{meets:.1f} {level:.1f}H{WIDTH - RIGHT:g}"/>')
        at_x, below = (meets - aside - 4, 10) if meets - aside > LEFT + CEILING else (WIDTH - RIGHT, 12)
        parts.append(
            f'<text x="{at_x:.1f}" y="{level + below:.1f}" text-anchor="end" font-weight="bold">'
            f"ceiling {roofline.ceiling:.3g}</text>"
        )
        if level > feet - FOOT * len(roofline.points):
            feet = level - 1
    for index, point in enumerate(roofline.points):
        at_x, at_y = x(point.intensity), y(point.tflops)
        parts.append(f'<path class="guide" d="M{at_x:.1f} {at_y:.1f}V{HEIGHT - BOTTOM:g}"/>')
        parts.append(f'<circle class="mark" cx="{at_x:.1f}" cy="{at_y:.1f}" r="4.5"/>')
        # At the guide line's foot, where the roof is not, or above a ceiling that runs there, on the side that has more
        # room; above those before.
        place = (at_x + 6, "start") if at_x < (LEFT + WIDTH) / 2 else (at_x - 6, "end")
        foot = feet - FOOT * index
        for text, weight, above in ((point.name, "bold", 20), (f"{point.intensity:.4g} FLOP/byte", "normal", 7)):
            parts.append(
                f'<text x="{place[0]:.1f}" y="{foot - above:.1f}" text-anchor="{place[1]}" font-weight="{weight}">'
                f"{escape(text)}</text>"
            )
    return "".join([*parts, "</g></svg>"])


def _about(roofline: Roofline) -> str:
    """The picture in words."""
    said = [
        f"Peak {roofline.peak:,.1f} TFLOP/s, {roofline.bandwidth:,.0f} GB/s, ridge at {roofline.ridge:.3g} FLOP/byte."
    ]
    if roofline.ceiling is not None:
        said.append(f"Ceiling {roofline.ceiling:,.1f} TFLOP/s, set by {roofline.limiter}.")
    said += [f"{p.name}: {p.intensity:.4g} FLOP/byte, at most {p.tflops:,.5g} TFLOP/s." for p in roofline.points]
    return " ".join(said)


def _ticks(bottom: float, top: float) -> list[float]:
    """1, 2, 5, 10, .. between the two."""
    powers = range(floor(log10(bottom)), ceil(log10(top)) + 1)
    return [step * 10.0**power for power in powers for step in (1, 2, 5) if bottom <= step * 10.0**power <= top]
