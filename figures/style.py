"""What a figure module needs of the house style; the one table of colours lives in ``meanfield.plotting.style``."""

from meanfield.plotting.style import COLOURS, COLUMN, LINES, MARKERS, PAGE, look, new_figure, save_figure, style

__all__ = ["COLOURS", "COLUMN", "LINES", "MARKERS", "PAGE", "look", "new_figure", "save_figure", "style"]
