"""Pages of the site that follow from the project: the gallery, regenerated tables, the API."""

from __future__ import annotations

import inspect
import shutil
import tomllib
from pathlib import Path

import moestat
from moestat.metrics.losses import LOSSES, VoronoiLoss
from moestat.metrics.suitable import suitable_losses
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.sweep.kinds.fit.figure import loss_symbol

__all__ = ["write_api", "write_figures", "write_gallery", "write_losses", "write_notebooks"]

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE = DOCS / "generated"


def _head(text: str) -> str:
    """The comment at the top of a spec, without the command that runs it."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").rstrip())
    kept = [line for line in lines if not line.startswith("python -m")]
    return " ".join(" ".join(kept).split())


MINUTES = {
    "attention_figure1": 20,
    "attention_figure2": 20,
    "attention_language": 6,
    "attention_partial": 38,
    "attention_start_sensitivity": 8,
    "attention_table1": 36,
    "compete_clusters": 38,
    "compete_gaussian": 4,
    "compete_language": 20,
    "compete_schedules": 18,
    "compete_upcycling": 10,
    "coverage_order": 21,
    "coverage_over": 5,
    "coverage_resampling": 7,
    "coverage_selection": 8,
    "coverage_tests": 11,
    "coverage_wald": 15,
    "expert_count_figure1": 64,
    "expert_count_sensitivity": 59,
    "gaussian_competition": 12,
    "gaussian_exact_v1": 14,
    "gaussian_published": 16,
    "gaussian_softmax": 2,
    "microscope_floors_attention": 23,
    "microscope_floors_competition": 16,
    "microscope_floors_gaussian": 21,
    "microscope_floors_gaussian_four": 14,
    "microscope_floors_mlmoe": 47,
    "mlmoe_figure1": 7,
    "mlmoe_sigmoid_vs_softmax": 4,
    "mlmoe_start_sensitivity": 25,
    "mlmoe_table1": 3,
    "quickstart": 1,
}
"""Minutes of one core, without compiling: of the cells of a store, or what ``run --check`` said."""


def write_gallery() -> None:
    """A card for every shipped experiment: its figure, what one sees, the command, the time."""
    MADE.mkdir(exist_ok=True)
    pictures = MADE / "pictures"
    pictures.mkdir(exist_ok=True)
    cards = []
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        title = tomllib.loads(text)["title"]
        picture = ROOT / "figures" / f"{path.stem}.png"
        image = ""
        if picture.exists():
            shutil.copy(picture, pictures / picture.name)
            image = f":img-top: pictures/{picture.name}\n"
        cards.append(
            f":::{{grid-item-card}} {title}\n{image}\n{_head(text)}\n\n"
            f"```sh\npython -m moestat.sweep run {path.stem}\n```\n"
            f"{_time(path.stem)}\n:::\n"
        )
    body = "\n".join(cards)
    (MADE / "gallery.md").write_text(
        "# Gallery\n\nEvery shipped experiment: its figure where one is kept, what the spec says of"
        " itself, the command that runs it and how long that takes.\n\n"
        f"::::{{grid}} 1 1 2 2\n:gutter: 3\n\n{body}\n::::\n",
        encoding="utf-8",
    )


def _time(name: str) -> str:
    minutes = MINUTES.get(name)
    if minutes is None:
        return f"How long it takes: `run {name} --check`."
    if minutes < 60:
        return f"About {minutes} minute{'s' * (minutes > 1)} of one core."
    return f"About {minutes / 60:.2g} hours of one core."


def write_figures() -> None:
    """The pages under figures/, with their pictures, as pages of the site."""
    folder = MADE / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for path in sorted((ROOT / "figures").iterdir()):
        if path.suffix in (".md", ".png"):
            shutil.copy(path, folder / path.name)
        if path.suffix == ".md":
            names.append(path.stem)
    listed = "\n".join(f"figures/{name}" for name in names)
    (MADE / "results.md").write_text(
        "# Results\n\nTables and pictures that one command each regenerates, as they are kept in"
        " the folder `figures`.\n\n```{toctree}\n:maxdepth: 1\n\n" + listed + "\n```\n",
        encoding="utf-8",
    )


def write_api() -> None:
    """One page for every public name, in the order of their kind."""
    folder = MADE / "api"
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for name in sorted(moestat.__all__):
        thing = getattr(moestat, name)
        kind = "autoclass" if inspect.isclass(thing) else "autofunction"
        options = "   :members:\n" if kind == "autoclass" else ""
        title = f"moestat.{name}"
        place = f"{thing.__module__}.{thing.__qualname__}"
        (folder / f"{name}.rst").write_text(
            f"{title}\n{'=' * len(title)}\n\n.. {kind}:: {place}\n{options}", encoding="utf-8"
        )
        first = (inspect.getdoc(thing) or "").splitlines()[0].replace("|", "\\|")
        entries.append(f"| [{title}](api/{name}.rst) | {first} |")
    listed = "\n".join(f"api/{name}" for name in sorted(moestat.__all__))
    (MADE / "api.md").write_text(
        "# API reference\n\n:::{div} names\n| name | what it is |\n|---|---|\n"
        + "\n".join(entries)
        + "\n:::\n\n```{toctree}\n:hidden:\n\n"
        + listed
        + "\n```\n",
        encoding="utf-8",
    )


_ORDER = (
    "first_fit",
    "patients",
    "too_many_zeros",
    "how_many_experts",
    "separation",
    "from_spec_to_rate",
    "what_a_truth_allows",
    "to_1e14",
    "attention",
    "competesmoe",
)


def write_notebooks() -> None:
    """The notebooks as they are stored, with their outputs."""
    folder = MADE / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    names = sorted(paths, key=_ORDER.index)
    for name in names:
        shutil.copy(paths[name], folder)
    listed = "\n".join(f"notebooks/{name}" for name in names)
    (MADE / "notebooks.md").write_text(
        "# Notebooks\n\nEach makes what it needs itself and runs in less than half a minute; the"
        " files are in the folder `notebooks`.\n\n```{toctree}\n:maxdepth: 1\n\n"
        + listed
        + "\n```\n",
        encoding="utf-8",
    )


def write_losses() -> None:
    """Which loss fits which gate, each loss with its formula's exponents and source."""
    fits = ["| likelihood | gate | losses |", "|---|---|---|"]
    for likelihood in LIKELIHOODS:
        for gate in GATES:
            names = dict.fromkeys(_losses_of(likelihood, gate))
            if names:
                shown = ", ".join(f"`{name}`" for name in names)
                fits.append(f"| {likelihood} | `{gate}` | {shown} |")
    losses = ["| loss | symbol | in cells of one | in larger cells | source |", "|" + "---|" * 5]
    losses += [_loss_row(name, loss) for name, loss in LOSSES.items()]
    parts = [
        "# Which loss fits which gate",
        "A loss fits if it compares the parameters of the gate and the expert, and sees all that"
        " changes the density. Families that are not in the table have no Voronoi loss;"
        " `moestat.hellinger` and `moestat.regression_error` compare any two.",
        "\n".join(fits),
        "## The losses",
        "Exponents of the errors of parameters, by the number of fitted atoms in a Voronoi cell:"
        " of two, three and so on where several are named.",
        "\n".join(losses),
    ]
    (MADE / "losses.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _loss_row(name: str, loss: VoronoiLoss) -> str:
    if loss.free_order:
        exact = over = "r"
    else:
        several = loss.over_exponent
        orders = several if isinstance(several, tuple) else (several,)
        exact, over = f"{loss.exact_exponent:g}", ", ".join(f"{order:g}" for order in orders)
    return f"| `{name}` | {loss_symbol(name)} | {exact} | {over} | {loss.source} |"


_EXPERTS = ("linear", {"name": "activation", "activation": "gelu", "weighted": False})


def _losses_of(likelihood: str, gate: str) -> list[str]:
    found: list[str] = []
    for expert in _EXPERTS:
        try:
            model = moestat.family(likelihood, gate=gate, expert=expert, n_experts=2)
        except ValueError:
            continue
        names = [loss if isinstance(loss, str) else loss["name"] for loss in suitable_losses(model)]
        found += names
    return found
