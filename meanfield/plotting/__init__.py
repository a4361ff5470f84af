"""The only room that imports matplotlib: each function takes results and returns a Figure."""

from .style import COLOURS, COLUMN, DPI, LINES, LOOKS, MARKERS, PAGE, look, new_figure, save_figure, style

__all__ = [
    "COLOURS",
    "COLUMN",
    "DPI",
    "LINES",
    "LOOKS",
    "MARKERS",
    "PAGE",
    "look",
    "new_figure",
    "save_figure",
    "style",
]
