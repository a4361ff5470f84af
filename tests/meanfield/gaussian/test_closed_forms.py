"""The list of closed forms gives every public name of the modules beside it."""

import importlib
import pkgutil

import meanfield.gaussian
from meanfield.gaussian import closed_forms


def test_every_public_closed_form_is_listed():
    made = set()
    for info in pkgutil.iter_modules(meanfield.gaussian.__path__):
        if (info.name.startswith("closed_forms_") and info.name != "closed_forms_doors") or info.name == "scalar_flows":
            module = importlib.import_module(f"meanfield.gaussian.{info.name}")
            made |= {
                name for name, thing in vars(module).items()
                if getattr(thing, "__module__", None) == module.__name__ and not name.startswith("_")
            }
    internal = {"affine_parts", "increasing_root", "quadratic_part"}
    assert made - internal == set(closed_forms.__all__)
    assert all(hasattr(closed_forms, name) for name in closed_forms.__all__)
