"""The order of the floors, read off the imports: a module imports only from lines above its own."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: From the ground up. Modules of one line do not import each other; a package itself stands right above its last file.
FLOORS = """
checks  backends
measures  spaces  parameters  verdict
summation.exact  summation.separable  summation.annealing
summation.select
summation.balancing
velocity
attention.base
attention.kernel
attention.softmax  attention.l2  attention.sinkhorn  attention.sigmoid  attention.linear  attention.unnormalised
attention.masked  attention.multihead  perceptron
flows
integration.schemes  integration.adaptive  integration.events  integration.poles  integration.progress
integration.trajectory
integration.integrate
integration.simulate
gaussian.closed_forms_doors
gaussian.closed_forms_affine  gaussian.closed_forms_quadratic  gaussian.closed_forms_sinkhorn  gaussian.scalar_flows
gaussian.closed_forms_fate  gaussian.closed_forms_limits  gaussian.closed_forms_poles
gaussian.closed_forms  gaussian.invariants  gaussian.batched
gaussian.ensemble  gaussian.predictions
analysis.transport  analysis.observables  analysis.lasting
analysis.entropic
analysis.distances  analysis.lipschitz  analysis.draws
analysis.clustering  analysis.blow_up  analysis.stability  analysis.mean_field_limit  analysis.hull_vertices
analysis.merge_tree  analysis.metastability  analysis.rank_collapse  analysis.boolean_attention  analysis.judged_runs
analysis.merging
gradient_flow.base  gradient_flow.spectral
gradient_flow.pairs
gradient_flow.interaction  gradient_flow.kernel_energies  gradient_flow.sinkhorn_energy  gradient_flow.functionals
gradient_flow.sphere  gradient_flow.multihead
gradient_flow.energies  gradient_flow.moving_heads
gradient_flow.metric
gradient_flow.structure  gradient_flow.twisted_distance  gradient_flow.staircase
gradient_flow.twisted  gradient_flow.curvature
gradient_flow.geodesics
encoder.operators
encoder.splitting  encoder.layers  encoder.qwen3  encoder.control
variational.mixture  variational.score_flow  variational.gating  variational.diagnostics
pretrained.gguf  pretrained.minilm  pretrained.smollm
sweeps.records
sweeps.cases
sweeps.store  sweeps.backends  sweeps.summary  sweeps.studies
sweeps.parallel
plotting.style  plotting.paths  plotting.frames
plotting.labels
plotting.cone  plotting.covariances  plotting.curves  plotting.matrices  plotting.polytopes  plotting.tokens
plotting.dendrograms
plotting.animation
cli.values  cli.laws  cli.problem  cli.reports
cli.tokens  cli.runs  cli.plots
cli.options  cli.problems
cli.commands  cli.sweeping
cli.parser
__main__
""".strip().splitlines()

RANK = {name: floor for floor, line in enumerate(FLOORS) for name in line.split()}

#: Imports too heavy for the top of a module, and the rooms that exist for their sake.
HEAVY = {
    "matplotlib": ("plotting",),
    "joblib": ("sweeps",),
    **dict.fromkeys(("ot", "torch", "xarray", "pandas", "PIL", "dask", "ray", "safetensors", "tokenizers"), ()),
}

#: What figures/ may not touch: whatever computes.
COMPUTING = (
    *("flows", "integration", "gaussian.ensemble", "analysis.stability", "analysis.mean_field_limit"),
    *("sweeps.parallel", "cli"),
)


def rank(name):
    """Floor of a module; a package (its __init__) stands half a floor above its highest file."""
    if name in RANK:
        return RANK[name]
    inside = [floor for module, floor in RANK.items() if module.startswith(f"{name}.")]
    return max(inside) + 0.5 if inside else None


def statements(tree, *, top_level=False):
    """Import statements of a module: all of them, or only those that run when it is imported."""
    nodes = list(tree.body) if top_level else list(ast.walk(tree))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif top_level and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += ast.iter_child_nodes(node)  # if, try, with and class bodies run at import


def imported(path, root=ROOT, *, top_level=False):
    """Dotted names that a file imports; ``from a import b`` gives a.b where b is a module of this tree, else a."""
    parts = path.relative_to(root).with_suffix("").parts
    package = parts[:-1]
    found = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), top_level=top_level):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        above = package[: len(package) - node.level + 1] if node.level else ()
        base = [*above, *(node.module.split(".") if node.module else ())]
        for alias in node.names:
            inner = root.joinpath(*base, alias.name)
            is_module = inner.with_suffix(".py").is_file() or (inner / "__init__.py").is_file()
            found.add(".".join([*base, alias.name] if is_module else base))
    return found


def modules(folder):
    """Every Python file under a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def module_name(path, root=ROOT):
    """Name below ``meanfield``: "attention.base", "attention" for a package, "" for the root."""
    parts = path.relative_to(root / "meanfield").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def violations(path, root=ROOT):
    """Sentences on what a module of the package imports against the order."""
    name = module_name(path, root)
    own = rank(name) if name else RANK["plotting.style"]  # the root offers everything but plots and the CLI
    if own is None:
        return [f"{name} stands on no floor: place it in FLOORS "]
    said = []
    for target in imported(path, root):
        if target.split(".")[0] != "meanfield":
            continue
        inner = target.removeprefix("meanfield").removeprefix(".")
        if not inner:
            said.append(f"{name} imports the package root")
        elif rank(inner) is None:
            said.append(f"{name} imports {inner}, which stands on no floor")
        elif rank(inner) >= own:
            said.append(f"{name or 'the root'} imports {inner}, which is not above it")
    return said


@pytest.mark.parametrize("path", modules("meanfield"), ids=module_name)
def test_a_module_imports_only_from_floors_above_its_own(path):
    assert violations(path) == []


@pytest.mark.parametrize("path", modules("meanfield"), ids=module_name)
def test_heavy_imports_are_lazy_and_stay_in_their_rooms(path):
    room = module_name(path).split(".")[0]
    early = {name.split(".")[0] for name in imported(path, top_level=True)}
    assert {name for name in early & set(HEAVY) if room not in HEAVY[name]} == set()
    anywhere = {name.split(".")[0] for name in imported(path)}
    assert {name for name in anywhere & {"matplotlib", "joblib"} if room not in HEAVY[name]} == set()


@pytest.mark.parametrize("path", modules("meanfield") + modules("experiments") + modules("figures"), ids=str)
def test_nothing_imports_pyplot(path):
    assert not {name for name in imported(path) if name.startswith(("matplotlib.pyplot", "pylab"))}


@pytest.mark.parametrize("path", modules("experiments"), ids=lambda path: path.stem)
def test_experiments_compute_and_draw_nothing(path):
    forbidden = ("figures", "matplotlib", "meanfield.plotting", "tests", "benchmarks")
    assert {name for name in imported(path) if name.startswith(forbidden)} == set()


@pytest.mark.parametrize("path", modules("figures"), ids=lambda path: path.stem)
def test_figures_draw_and_integrate_nothing(path):
    names = imported(path)
    assert "meanfield" not in names, "import the room itself: the root also offers simulate"
    forbidden = ("experiments", "tests", "benchmarks", *(f"meanfield.{room}" for room in COMPUTING))
    assert {name for name in names if name.startswith(forbidden)} == set()


def test_the_table_names_a_module_once_and_reads_like_the_house():
    names = " ".join(FLOORS).split()
    assert len(names) == len(set(names))
    assert rank("attention.softmax") < rank("attention.masked") < rank("attention") < rank("flows")
    assert rank("somewhere.else") is None


@pytest.mark.parametrize(
    ("where", "line", "said"),
    [
        ("checks.py", "from .measures import Measure", "not above"),
        ("measures.py", "def f():\n    from . import spaces", "not above"),
        ("measures.py", "import meanfield as mf", "package root"),
        ("checks.py", "from .. import meanfield", "package root"),
        ("attention/softmax.py", "from . import masked", "not above"),
        ("attention/softmax.py", "from ..attention import ATTENTION", "not above"),
        ("flows.py", "from .nowhere.room import x", "no floor"),
        ("nowhere.py", "import numpy", "no floor"),
        ("__init__.py", "from .plotting import style", "not above"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path, where, line, said):
    for name in ("__init__", "measures", "spaces", "attention/__init__", "attention/masked", "plotting/style"):
        file = tmp_path / "meanfield" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "meanfield" / where).write_text(line)
    assert [said in sentence for sentence in violations(tmp_path / "meanfield" / where, tmp_path)] == [True]


def test_a_right_import_is_accepted(tmp_path):
    path = tmp_path / "meanfield" / "attention" / "softmax.py"
    path.parent.mkdir(parents=True)
    path.write_text("import numpy as np\nfrom ..checks import number\nfrom .base import Attention\n")
    assert violations(path, tmp_path) == []
