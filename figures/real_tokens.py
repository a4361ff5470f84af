"""Real tokens: the simulated observables over depth beside those of the layers, and which settings come near them."""

import numpy as np
from matplotlib import colormaps

from figures.style import PAGE, new_figure
from meanfield.plotting.style import letter_panels, spelt

LAYERS = "#000000"
SPACES = {"euclidean": "in $R^d$", "sphere": "on the sphere"}

#: Place in viridis, line and marker of the temperatures, from the lowest beta.
TEMPERATURES = ((0.85, "-", "o"), (0.45, "--", "s"), (0.1, "-.", "^"))


def draw(study):
    """Two figures: curves over depth for softmax, and the misfits of every setting."""
    return {"depth": over_depth(study), "misfits": misfits(study)}


def settings(study, **wanted):
    """Pairs (case, arrays) with these parameters, the best first."""
    pairs = zip(study.cases, study.arrays, strict=True)
    kept = [pair for pair in pairs if all(pair[0][name] == value for name, value in wanted.items())]
    return sorted(kept, key=lambda pair: pair[1]["score"])


def over_depth(study):
    """A row of observables for each space: the layers with their band, softmax at each temperature."""
    spaces = [space for space in SPACES if settings(study, space=space, variant="softmax")]
    figure = new_figure(PAGE, 0.9 + 1.95 * len(spaces))
    lettered = []
    for part, space in zip(np.atleast_1d(figure.subfigures(len(spaces), 1)), spaces, strict=True):
        runs = sorted(settings(study, space=space, variant="softmax"), key=lambda pair: pair[0]["beta"])
        axes = part.subplots(1, 5)
        for column, one in enumerate(axes):
            draw_observable(one, column, runs)
            one.set_title(str(runs[0][1]["names"][column]))
            one.set_xlabel(r"layer, $t\,/\,\tau$")
        steps = ", ".join(f"{step(run)} for $\\beta$ = {case['beta']:g}" for case, run in runs)
        part.suptitle(f"{SPACES[space]}: softmax, fitted time per layer $\\tau$ = {steps}", fontsize=8)
        lettered += list(axes)
    letter_panels(lettered)
    for one in lettered:
        one.set_title(one.get_title(loc="left"), loc="left", fontsize=8)
    figure.legend(*lettered[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(title(study))
    return figure


def step(run):
    """The fitted time per layer in words: 0 and the end of the search say that no time fits."""
    fitted, most = run["time_per_layer"], run["times"][-1] / (len(run["matched"]) - 1)
    return "0 (at rest)" if fitted == 0 else f"{fitted:.2f}" + (" (limit)" if fitted >= 0.999 * most else "")


def draw_observable(axes, column, runs):
    """One observable over depth."""
    layers = runs[0][1]["layers"][..., column]
    depth = np.arange(layers.shape[1])
    middle, width = layers.mean(axis=0), layers.std(axis=0)
    axes.fill_between(depth, middle - width, middle + width, color=LAYERS, alpha=0.15, linewidth=0)
    label = f"MiniLM, mean and s.d. of {len(layers)} sentences"
    axes.plot(depth, middle, color=LAYERS, linewidth=1.8, label=label)
    for (place, dashes, marker), (case, run) in zip(TEMPERATURES, runs, strict=False):
        line = {"color": colormaps["viridis"](place), "linestyle": dashes, "marker": marker, "markersize": 3}
        axes.plot(depth, run["matched"][:, column], label=f"$\\beta$ = {case['beta']:g}", **line)
    axes.set_xticks(depth[::2])


def title(study):
    """What the best setting of each space follows."""
    told = []
    for space in ("sphere", "euclidean"):
        for case, run in settings(study, space=space)[:1]:
            told.append(
                f"Best {SPACES[space]}, {spelt(case['variant'])} at $\\beta$ = {case['beta']:g}: {run['followed']} of "
                f"{len(run['misfit'])} curves within {100 * run['follows_within']:.0f} % of their range, mean cosine "
                f"{100 * run['misfit'][0]:.0f} % off"
            )
    return "\n".join(told)


def misfits(study):
    """Misfits of every setting, the best on top, with the score and what a simulation at rest would score."""
    ranked = settings(study)
    names = [*(str(name) for name in ranked[0][1]["names"]), "score", "at rest"]
    table = np.array([[*run["misfit"], run["score"], run["score_at_rest"]] for _, run in ranked])
    figure = new_figure(PAGE, 1.3 + 0.19 * len(table))
    axes = figure.add_subplot()
    image = axes.imshow(table, cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.55 else "black")
    axes.axvline(len(names) - 2.5, color="white", linewidth=2)
    rows = [
        f"{SPACES[case['space']]}, {spelt(case['variant'])}, $\\beta$ = {case['beta']:g}, $\\tau$ = {step(run)}"
        for case, run in ranked
    ]
    axes.set_yticks(np.arange(len(rows)), rows)
    axes.set_xticks(np.arange(len(names)), [name.replace(" ", "\n", 1) for name in names])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="misfit / range of the layers", extend="max", pad=0.01, aspect=30)
    good = sum(run["score"] < 0.7 * run["score_at_rest"] for _, run in ranked)
    figure.suptitle(
        f"{good} of {len(ranked)} settings score 30 % better than tokens at rest; "
        f"the best misses the layers by {100 * table[0, -2]:.0f} %"
    )
    return figure
