#!/usr/bin/env python3
"""Chooses the starting grids of the affine search (GRIDS_15, GRIDS_31, GRIDS_3 in src/encoding/affine.rs).

Usage: choose_grids.py TOP WIDTH COUNT [STEP]        (needs numpy), e.g. 15 32 12

A grid (stretch, start) puts TOP + stretch steps over the range of a sub-block's values, with its 0 `start` steps above the smallest.
Out of all grids STEP apart, takes COUNT one after the other, each the one that lowers the total squared error of sample
sub-blocks most (half bell-shaped, a quarter each Student t with four degrees of freedom and Laplace); then exchanges each for a
better one as long as there is one. Prints the relative RMS error after each step, and that of all grids together.
"""
import sys

import numpy as np

top, width, count = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
step = float(sys.argv[4]) if len(sys.argv) > 4 else 0.25
rng = np.random.default_rng(1)
x = np.concatenate([
    rng.standard_normal((1500, width)),
    rng.standard_t(4, (750, width)) / 2**0.5,
    rng.laplace(size=(750, width)) / 2**0.5,
])
low, high = np.minimum(x.min(1), 0), x.max(1)
power = (x * x).sum()


def gain(stretch, start):
    """By how much the best line for this grid's whole numbers lowers each sub-block's squared error below the sum of squares."""
    by = (top + stretch) / (high - low)
    q = np.clip(np.round(x * by[:, None] - (low * by + start)[:, None]), 0, top)
    n, sq, sqq, sqx, sx = width, q.sum(1), (q * q).sum(1), (q * x).sum(1), x.sum(1)
    determinant = n * sqq - sq * sq
    a = np.where(determinant > 0, (n * sqx - sq * sx) / np.maximum(determinant, 1), 0)
    b = (sx - a * sq) / n
    above = b > 0
    a, b = np.where(above, sqx / np.maximum(sqq, 1), a), np.where(above, 0, b)
    return a * sqx + b * sx


reach = max(1.0, top * 0.35)
grids = [(s, o) for s in np.arange(-0.1 * top - 0.5, reach, step) for o in np.arange(-1.5, reach + 0.5, step) if -1 <= s - o <= reach + 1]
gains = np.stack([gain(*grid) for grid in grids])


def error(total):
    return np.sqrt((power - total) / power)


chosen = []
for _ in range(count):
    best = gains[chosen].max(0) if chosen else np.full(len(x), -np.inf)
    chosen.append(int(np.maximum(gains, best).sum(1).argmax()))
    print(len(chosen), error(gains[chosen].max(0).sum()))
changed = True
while changed:
    changed = False
    for place in range(count):
        others = gains[chosen[:place] + chosen[place + 1 :]].max(0)
        better = int(np.maximum(gains, others).sum(1).argmax())
        if np.maximum(gains[better], others).sum() > gains[chosen].max(0).sum() * (1 + 1e-12):
            chosen[place], changed = better, True
print("exchanged", error(gains[chosen].max(0).sum()), "all", error(gains.max(0).sum()))
print(", ".join(f"({grids[i][0]:.2f}, {grids[i][1]:.2f})" for i in chosen))
