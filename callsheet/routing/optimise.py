"""Linear programs, by HiGHS (in scipy).

scipy is loaded at the first call: only controllers and the simulator need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class LinearProgram:
    """Maximise a sum over variables x >= 0 under rows ``sum(coefficient * x) <= bound``.

    Variables are numbered by :meth:`variable`, in order.
    """

    gains: list[float] = field(default_factory=list)
    tops: list[float | None] = field(default_factory=list)
    _rows: list[int] = field(default_factory=list)
    _columns: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)
    _bounds: list[float] = field(default_factory=list)

    def variable(self, gain: float = 0.0, at_most: float | None = None) -> int:
        """A new variable, between 0 and ``at_most``; ``gain`` is its coefficient in the sum."""
        self.gains.append(gain)
        self.tops.append(at_most)
        return len(self.gains) - 1

    def limit(self, terms: Mapping[int, float], at_most: float) -> None:
        """A row: ``sum(terms[x] * x) <= at_most``."""
        row = len(self._bounds)
        self._rows += [row] * len(terms)
        self._columns += terms.keys()
        self._values += terms.values()
        self._bounds.append(at_most)

    def solve(self) -> Sequence[float]:
        """The values of the variables at the best sum.

        Raises ValueError when there is none: the rows contradict each other, or the sum has no upper end.
        """
        from scipy.optimize import linprog  # half a second that most processes never need
        from scipy.sparse import csr_array

        shape = (len(self._bounds), len(self.gains))
        matrix = csr_array((self._values, (self._rows, self._columns)), shape=shape)
        solution = linprog(
            [-gain for gain in self.gains],
            A_ub=matrix,
            b_ub=self._bounds,
            bounds=[(0.0, top) for top in self.tops],
            method="highs",
        )
        if not solution.success:
            raise ValueError(f"the linear program has no solution: {solution.message}")
        return [float(value) for value in solution.x]
