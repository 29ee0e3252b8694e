"""The colours can be told apart, and read, in both themes and with each kind of colour blindness."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from layoutgen.draw.palette import DARK, LIGHT, TONES, Palette, rules, tone

# Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# severity 1: linear RGB -> linear RGB as it is seen.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
JUST_NOTICEABLE = 2.3  # CIE 1976 distance
THEMES = {"light": LIGHT, "dark": DARK}


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    t = XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a: str, b: str) -> float:
    """WCAG 2.2, "contrast ratio"."""
    low, high = sorted(float(XYZ[1] @ linear(each)) for each in (a, b))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHT)
def test_tones_are_far_apart(theme: str, sight: str) -> None:
    seen = [lab(SIGHT[sight] @ linear(colour)) for colour in THEMES[theme].tones]
    assert len(seen) == TONES
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 5 * JUST_NOTICEABLE


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme: str) -> None:
    p = THEMES[theme]
    for ground in (*p.tones, p.paper, p.panel):
        assert contrast(p.ink, ground) >= 4.5
    for ground in (p.paper, p.panel):
        assert contrast(p.soft, ground) >= 4.5
    assert contrast(p.mark_ink, p.mark) >= 4.5
    assert min(contrast(p.mark, ground) for ground in p.tones) >= 1.5
    assert contrast(p.strong, p.paper) >= 3


def test_every_look_has_a_rule() -> None:
    css = rules(LIGHT)
    for look in (*(tone(i) for i in range(2 * TONES)), "panel", "paper", "mark", "hatch", "box", "line", "strong"):
        assert f".{look}{{" in css
    assert all(f".s-{look}{{" in css for look in ("t0", "t7", "panel", "paper", "mark"))
    assert all(getattr(LIGHT, name) in css for name in Palette.__slots__ if name != "tones")
