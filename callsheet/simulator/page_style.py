"""How the page of a simulation looks: for phones and desktops, light and dark."""

from __future__ import annotations

from collections.abc import Sequence

# Told apart also by most who do not see all colours, and on either background.
_LIGHT = ("#0072b2", "#c64a00", "#00805c", "#b04a8b", "#7d6200", "#5b4fb5", "#2a93c8", "#6b6b6b")
_DARK = ("#4da3e0", "#ff8a4c", "#3ccb9d", "#e69ac4", "#e5c54a", "#a79bff", "#8bd0ff", "#a8a8a8")
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "5 5")

_USES_LIGHT = {"useful": "#00805c", "loading": "#d9a400", "wasted": "#c63a2b", "idle": "#c9cdd3"}
_USES_DARK = {"useful": "#3ccb9d", "loading": "#e5c54a", "wasted": "#ff7566", "idle": "#4a5058"}

_RULES = """
*{box-sizing:border-box}
body{margin:0 auto;max-width:80rem;padding:1rem clamp(.75rem,3vw,2rem) 3rem;background:var(--back);
color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:.5rem 0}
h2{font-size:1.2rem;margin:2.5rem 0 .25rem}p{margin:.25rem 0;max-width:50rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:1rem}
figure{margin:.5rem 0;max-width:38rem}figcaption{font-weight:600}
svg{display:block;width:100%;height:auto}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;margin:.5rem 0;padding:0}
.legend li{display:flex;align-items:center;gap:.4rem}.key{width:26px;height:10px}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.band{fill:var(--c);stroke:none}.shade{fill:var(--soft)}
.grid{stroke:var(--soft);stroke-width:1}.tick,.label{fill:var(--quiet);font-size:12px}
.tick{font-variant-numeric:tabular-nums}.x,.label{text-anchor:middle}.y{text-anchor:end}
.fluid{--c:var(--quiet);stroke-dasharray:1 3}
.scroll{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.875rem}
th,td{padding:.2rem .7rem;text-align:left;white-space:nowrap;border-bottom:1px solid var(--soft)}
th{color:var(--quiet);font-weight:600}.n{text-align:right}
"""


def style() -> str:
    """The style sheet."""
    light = "--back:#fff;--text:#1b1f24;--quiet:#59636e;--soft:#e4e7eb;" + _variables(_LIGHT, _USES_LIGHT)
    dark = "--back:#14171a;--text:#e6e8ea;--quiet:#9aa4ae;--soft:#2c3238;" + _variables(_DARK, _USES_DARK)
    kinds = "".join(f".c{place}{{--c:var(--c{place})}}" for place in range(len(_LIGHT)))
    dashes = "".join(f".d{place}{{stroke-dasharray:{dash}}}" for place, dash in enumerate(_DASHES))
    uses = "".join(f".{use}{{--c:var(--{use})}}" for use in _USES_LIGHT)
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{_RULES}{kinds}{dashes}{uses}"
    )


def _variables(colours: Sequence[str], uses: dict[str, str]) -> str:
    named = {f"c{place}": colour for place, colour in enumerate(colours)} | uses
    return "".join(f"--{name}:{colour};" for name, colour in named.items())
