"""Old names of modules that have moved, for pickles and programmes that use them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["Moved"]

_HOME = "moestat.networks."
_TARGETS = {
    **{
        f"{room}{name}": f"expert_count.{name.partition('.')[0]}"
        for room in ("", "expert_count.")
        for name in (
            "experts.cnn", "experts.expert", "experts.mlp", "optimisers.adam",
            "optimisers.gradient_descent", "optimisers.normalised", "optimisers.optimiser",
        )
    },
    **{
        name: f"expert_count.{name}"
        for name in (
            "activations", "data", "experts", "metrics", "network", "optimisers", "packing",
            "passes", "rows", "training",
        )
    },
    "smoe.build": "smoe.training.blocks",
    "smoe.experts.gated": "smoe.experts.mlp",
    "smoe.routers.fixed": "smoe.routers.softmax",
    "smoe.routers.stable": "smoe.routers.softmax",
    "smoe.settings": "smoe.training.settings",
    "smoe.tasks": "smoe.training.tasks",
    "smoe.transformer": "smoe.training.decoder",
}  # fmt: skip


def _target(name: str) -> str | None:
    """The present name of a module, if it has moved."""
    path = name.removeprefix(_HOME)
    if path == name:
        return None
    for old, new in _TARGETS.items():
        if path == old or path.startswith(f"{old}."):
            return _HOME + new + path[len(old) :]
    return None


class Moved(MetaPathFinder, Loader):
    """Finds a module by its old name and returns the module with the present name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        return None if _target(fullname) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """See `importlib.abc.Loader`."""
        module = import_module(str(_target(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run; the module keeps its own specification."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state
