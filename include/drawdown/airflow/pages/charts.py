"""Charts as SVG, drawn on the server: with units, a title for each value, and a text for screen readers.

No library draws them: what is well kept either needs a script in the page, or is too slow for a page with ten
charts in 300 ms (docs/decisions/0037). Colours are classes of static/pages.css, so that dark mode is CSS.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_BAR, _GAP, _HEIGHT = 5, 1, 18


def outcomes(bars: Sequence[tuple[str, str]], name: str) -> Markup:
    """Return a strip of equal bars, oldest first.

    Args:
        bars: outcome (a class of the style sheet) and title of each.
        name: what screen readers say.
    """
    width = max(len(bars), 1) * (_BAR + _GAP)
    drawn = Markup("").join(
        Markup('<rect class="{}" x="{}" width="{}" height="{}"><title>{}</title></rect>').format(
            f"of-{outcome}", number * (_BAR + _GAP), _BAR, _HEIGHT, title
        )
        for number, (outcome, title) in enumerate(bars)
    )
    return Markup('<svg class="strip" role="img" aria-label="{}" width="{}" height="{}">{}</svg>').format(
        name, width, _HEIGHT, drawn
    )
