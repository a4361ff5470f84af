"""Mean-field limits: distance of n tokens to their law against n, by variant, start and dimension, and up to a pole."""


from figures.style import COLOURS, PAGE, look, new_figure
from meanfield.plotting.labels import EndLabels
from meanfield.plotting.style import letter_panels, looks, spelt

GREY = "#555555"


def draw(study):
    """Compact and normal starts on a line, dimensions, and the slope on the way to a blow-up."""
    figure = new_figure(PAGE, 5.6)
    axes = list(figure.subplots(2, 2).flat)
    for one, kind, name in ((axes[0], "compact", "uniform on [\N{MINUS SIGN}1, 1]"), (axes[1], "normal", "normal")):
        runs = {case["variant"]: run for case, run in of_kind(study, kind)}
        convergence(one, runs, {name: look(name) for name in runs})
        one.set_title(f"start {name}, at $t$ = {next(iter(runs.values()))['times'][-1]:g}")
    line = study.select(kind="compact", variant="softmax")[0]
    runs = {"$d$ = 1": line} | {f"$d$ = {case['d']}": run for case, run in of_kind(study, "dimension")}
    convergence(axes[2], runs, {name: row._asdict() for name, row in looks(runs).items()})
    axes[2].set_title("softmax, uniform on a ball")
    near_the_pole(axes[3], study)
    letter_panels(axes)
    everything = [run for kind in ("compact", "normal", "dimension") for _, run in of_kind(study, kind)]
    change = max(abs(run["slope"][-1] - run["slope"][0]) for run in everything)
    figure.suptitle(
        "Attention keeps the rate at which $n$ tokens sample their law, under every variant and in every dimension\n"
        f"(from $t$ = 0 to 1 no slope changes by more than {change:.2f}); near a blow-up of the law it is lost"
    )
    return figure


def of_kind(study, kind):
    """Pairs (case, arrays) of one kind."""
    return [pair for pair in zip(study.cases, study.arrays, strict=True) if pair[0]["kind"] == kind]


def convergence(axes, runs, drawn):
    """Errors at the last time against n with confidence band and fitted slope; dashed lines of the sampling rates."""
    ends, names = [], []
    rates = {}
    for name, run in runs.items():
        n, mean = run["sizes"], run["mean"][:, -1]
        axes.fill_between(n, run["low"][:, -1], run["high"][:, -1], color=drawn[name]["color"], alpha=0.12, linewidth=0)
        axes.plot(n, mean, **drawn[name], markersize=3, linewidth=0.9)
        ends.append((n[-1], mean[-1]))
        names.append(f"{spelt(name)} {signed(run['slope'][-1])}")
        rates.setdefault(float(run["rate"]), []).append(run)
    for rate, group in rates.items():
        highest = max(group, key=lambda run: run["mean"][-1, -1])
        n = highest["sizes"]
        line = 1.25 * highest["mean"][-1, -1] * (n / n[-1]) ** rate
        axes.plot(n, line, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        told = f"$n^{{-1/{round(-1 / rate)}}}$"
        at, offset = (1, (0, 2)) if len(rates) == 1 else (-1, (2, -2))
        axes.annotate(told, (n[at], line[at]), offset, textcoords="offset points", color=GREY)
    axes.set(xscale="log", yscale="log", xlabel="number of tokens $n$", ylabel="$W_2(\\mu_n(t), \\mu(t))$")
    axes.set_xticks(n[::2] if len(n) > 4 else n, [str(k) for k in (n[::2] if len(n) > 4 else n)])
    axes.set_xticks([], minor=True)
    low, high = axes.get_ylim()
    marks = [mark for mark in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if low <= mark <= high]
    axes.set_yticks(marks, [f"{mark:g}" for mark in marks])
    axes.set_yticks([], minor=True)
    EndLabels(axes, ends, names, [drawn[name]["color"] for name in runs])


def near_the_pole(axes, study):
    """Fitted slopes over time: softmax from a normal start that blows up at t = 1, and from a bounded one."""
    for kind, color, words, place in (
        ("pole", COLOURS["l2"], "normal start: the law\nblows up at $t$ = 1", -0.3),
        ("bounded", COLOURS["softmax"], "uniform start", -0.57),
    ):
        run = of_kind(study, kind)[0][1]
        times, slope, half = run["times"], run["slope"], run["slope_half"]
        axes.fill_between(times, slope - half, slope + half, color=color, alpha=0.15, linewidth=0)
        axes.plot(times, slope, color=color)
        axes.text(0.06, place, words, color=color, va="center")
    axes.axhline(-0.5, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xlabel="time $t$", ylabel="fitted slope", xlim=(0, 1.02), title="softmax, $Q = K = V = 1$")


def signed(value):
    """Two digits with a true minus sign."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")
