"""How often to save a running job in the background. Pure."""

from __future__ import annotations

import math

OVERHEAD = 0.008  # largest share of the run that saves may take
GUESSED_SAVE_S = 0.02  # before any save was measured: a first one within a minute


def interval_s(save_s: float, mean_s_between_losses: float) -> float:
    """Seconds from one save to the next, for the least time lost to saves and crashes together.

    ``save_s`` is what one save costs, seconds, on the denoising thread and beside it: on a machine without
    idle cores both slow the run. Daly's estimate for a mean time M between losses and a cost d,
    sqrt(2dM) (1 + sqrt(d/2M)/3 + (d/2M)/9) - d, or M when d >= 2M: J. T. Daly, "A higher order estimate of
    the optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22 (2006) 303-312,
    equation 37. Its first factor is J. W. Young's, "A first order approximation to the optimum checkpoint
    interval", Communications of the ACM 17 (1974) 530-531. Never so often that saves take more than OVERHEAD.
    """
    if save_s >= 2 * mean_s_between_losses:
        best = mean_s_between_losses
    else:
        ratio = save_s / (2 * mean_s_between_losses)
        first = math.sqrt(2 * save_s * mean_s_between_losses)
        best = first * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s
    return max(best, save_s / OVERHEAD)
