"""``python -m figures.gallery``: a static page of every figure with claim, command and source, and published claims."""

import argparse
import sys
import tomllib
from pathlib import Path

from meanfield.sweeps.records import atomic_file
from meanfield.sweeps.studies import load_study

from . import FIGURES
from .page.build import FOLDER, escaped

#: Published claims, and the marks of their verdicts.
CLAIMS = Path(__file__).parent / "claims.toml"
VERDICTS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "open": "?"}
FIELDS = ("claim", "source", "experiment", "measured", "verdict")

#: From figures/out to the root of the repository.
ROOT = "../.."

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>meanfield: figures</title>
<style>{style}</style>
</head>
<body>
<h1>Figures</h1>
<p class="lead">Every experiment with its claim, its figures, the command that makes them and where they come from. \
Numbers in a title are computed in the record.</p>
{link}
<h2>Published claims</h2>
<div class="scroll"><table>
<thead><tr><th>claim</th><th>source</th><th>measured here</th><th>experiment</th><th>verdict</th></tr></thead>
<tbody>
{claims}
</tbody>
</table></div>
<h2>Experiments</h2>
<div class="cards">
{cards}
</div>
</body>
</html>
"""


def read_claims(path=CLAIMS, figures=FIGURES):
    """The published claims of a file.

    Returns
    -------
    list of dict
        With the texts `FIELDS`.

    Raises
    ------
    ValueError
        If an entry lacks a field or has another, names no experiment of the house, or its verdict is none of VERDICTS.
    """
    claims = tomllib.loads(Path(path).read_text(encoding="utf-8")).get("claim", [])
    for k, entry in enumerate(claims, start=1):
        if set(entry) != set(FIELDS):
            raise ValueError(f"claim {k} of {path} must have {', '.join(FIELDS)}; got {', '.join(sorted(entry))}.")
        if entry["verdict"] not in VERDICTS:
            known = ", ".join(VERDICTS)
            raise ValueError(f"claim {k} of {path}: verdict must be one of {known}; got {entry['verdict']}.")
        if entry["experiment"] not in figures:
            raise ValueError(f"claim {k} of {path}: no experiment is called {entry['experiment']}.")
    return claims


def claim_row(entry):
    """One row of the table."""
    experiment = escaped(entry["experiment"])
    return (
        f"<tr><td>{escaped(entry['claim'])}</td><td>[{escaped(entry['source'])}]</td>"
        f'<td>{escaped(entry["measured"])}</td><td><a href="#{experiment}">{experiment}</a></td>'
        f"<td>{VERDICTS[entry['verdict']]} {escaped(entry['verdict'])}</td></tr>"
    )


def pictures(name, out, figures=FIGURES):
    """PNG files of one figure: ``name.png`` or ``name_key.png``, but not those of a longer name of the registry."""
    longer = [other for other in figures if other.startswith(f"{name}_")]
    found = [path for path in sorted(out.glob(f"{name}*.png")) if path.stem == name or path.stem.startswith(f"{name}_")]
    return [path for path in found if not any(path.stem == o or path.stem.startswith(f"{o}_") for o in longer)]


def card(name, results, out, figures=FIGURES):
    """What is known of one experiment: its claim and figures, or the command that makes them."""
    head = f'<section class="card" id="{name}"><h3>{name}</h3>'
    files = (f"{place}/{name}.py" for place in ("experiments", "figures"))
    sources = " · ".join(f'<a href="{ROOT}/{file}">{file}</a>' for file in files)
    commands = f"<p><code>python -m experiments {name}</code> <code>python -m figures {name}</code></p><p>{sources}</p>"
    record = results / f"{name}.npz"
    if not record.is_file():
        return f'{head}<p class="note">Not run here yet.</p>{commands}</section>'
    study = load_study(record)
    claim = escaped(study.claim)
    shown = "".join(
        f'<a href="{path.with_suffix(".pdf").name}"><img src="{path.name}" loading="lazy" alt="{claim}"></a>'
        for path in pictures(name, out, figures)
    )
    size = "quick run, " if study.quick else ""
    failed = f", {len(study.failed)} failed" if study.failed else ""
    done = f"{size}{len(study.cases)} cases{failed}, seed {study.seed}, {study.seconds:.0f} s of work"
    note = f'<p class="note">{done}</p>'
    return f"{head}<p>{claim}</p>{shown or '<p class=note>Not drawn here yet.</p>'}{note}{commands}</section>"


def gallery(results, out, figures=FIGURES, claims=CLAIMS):
    """The whole page as a string."""
    style = "\n".join((FOLDER / "css" / f"{name}.css").read_text(encoding="utf-8") for name in ("page", "gallery"))
    there = (out / "page.html").is_file()
    return PAGE.format(
        style=style,
        link='<p><a href="page.html">Two views of one layer</a>: an interactive page.</p>' if there else "",
        claims="\n".join(map(claim_row, read_claims(claims, figures))),
        cards="\n".join(card(name, results, out, figures) for name in figures),
    )


def main(argv=None):
    """Write the gallery; exit status 0, or 1 with one line that says what is wrong."""
    line = argparse.ArgumentParser(prog="python -m figures.gallery", description="Write the gallery of the figures.")
    line.add_argument("--results", type=Path, default=Path("experiments/results"), help="folder of the records")
    line.add_argument("--out", type=Path, default=Path("figures/out"), help="folder of the figures, and for index.html")
    options = line.parse_args(argv)
    try:
        text = gallery(options.results, options.out)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    with atomic_file(options.out / "index.html") as handle:
        handle.write(text.encode("utf-8"))
    print(f"{options.out / 'index.html'}: {len(FIGURES)} experiments, {len(list(options.out.glob('*.png')))} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
