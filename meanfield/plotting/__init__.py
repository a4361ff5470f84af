"""The only room that imports matplotlib: each function takes results and returns a Figure."""

from .animation import animate
from .cone import cone_coordinates, disc_coordinates, plot_cone, plot_disc
from .covariances import ellipse, plot_ellipses, plot_gaussian_trajectory
from .curves import plot_cluster_counts, plot_convergence, plot_observables, power_law
from .dendrograms import plot_merge_tree
from .frames import box_around
from .labels import EndLabels
from .matrices import plot_attention
from .polytopes import hull_faces, plot_hulls
from .style import (
    COLOURS,
    COLUMN,
    DPI,
    LINES,
    LOOKS,
    MARKERS,
    PAGE,
    letter_panels,
    look,
    looks,
    new_figure,
    panel,
    save_figure,
    style,
)
from .tokens import plot_measure, plot_trajectory

__all__ = [
    "COLOURS",
    "COLUMN",
    "DPI",
    "LINES",
    "LOOKS",
    "MARKERS",
    "PAGE",
    "EndLabels",
    "animate",
    "box_around",
    "cone_coordinates",
    "disc_coordinates",
    "ellipse",
    "hull_faces",
    "letter_panels",
    "look",
    "looks",
    "new_figure",
    "panel",
    "plot_attention",
    "plot_cluster_counts",
    "plot_cone",
    "plot_convergence",
    "plot_disc",
    "plot_ellipses",
    "plot_gaussian_trajectory",
    "plot_hulls",
    "plot_measure",
    "plot_merge_tree",
    "plot_observables",
    "plot_trajectory",
    "power_law",
    "save_figure",
    "style",
]
