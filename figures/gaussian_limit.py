"""Errors of mean and covariance of n tokens against the Gaussian reduction, with slopes and a band over replicas."""

import numpy as np

from figures.style import COLOURS, PAGE, new_figure
from meanfield.plotting.curves import plot_convergence, power_law
from meanfield.plotting.style import letter_panels

VARIANTS = ("softmax", "l2", "sinkhorn")
QUANTITIES = {"mean": "error of the mean, in standard deviations", "covariance": "relative error of the covariance"}


def draw(study):
    """One panel for the mean, one for the covariance."""
    runs = study.arrays
    figure = new_figure(PAGE, 3.3)
    panels = figure.subplots(1, 2)
    slopes = []
    for quantity, axes in zip(QUANTITIES, panels, strict=True):
        errors = {v: (runs[0][f"n_{v}"], np.stack([run[f"{quantity}_{v}"] for run in runs], axis=1)) for v in VARIANTS}
        plot_convergence(errors, ylabel=QUANTITIES[quantity], axes=axes)
        for variant, (n, values) in errors.items():
            band = np.quantile(values, (0.125, 0.875), axis=1)
            axes.fill_between(n, *band, color=COLOURS[variant], alpha=0.12, linewidth=0, zorder=0)
            slopes.append(power_law(n, np.exp(np.log(values).mean(axis=1)))[0])
        stepping = max(float(run[f"stepping_{v}"]) for run in runs for v in VARIANTS)
        axes.set_title(f"{quantity}")
    letter_panels(panels)
    time, pole = float(runs[0]["time"]), float(runs[0]["blow_up_time"])
    low, high = (f"{slope:.2f}".replace("-", "\N{MINUS SIGN}") for slope in (min(slopes), max(slopes)))
    figure.suptitle(
        f"Tokens follow their Gaussian reduction up to a constant over $\\sqrt{{n}}$: slopes {low} to {high}\n"
        f"$t$ = {time:g}, softmax blow-up at $t^*$ = {pole:.3g}; {len(runs)} samples, band: middle 3/4 of them; "
        f"time stepping errs by {stepping:.0e}"
    )
    return figure
