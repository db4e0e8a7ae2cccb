"""Pages of the site that follow from the project: the gallery, regenerated tables, the API."""

from __future__ import annotations

import inspect
import json
import math
import shutil
import tomllib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import nbformat

import moestat
from moestat.metrics.losses import LOSSES, VoronoiLoss
from moestat.metrics.suitable import suitable_losses
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.members import Likelihood
from moestat.solvers.trust_region.kinks import has_kinks
from moestat.sweep.kinds.fit.figure import loss_symbol

__all__ = [
    "DOCS",
    "MADE",
    "topics",
    "write_alarms",
    "write_api",
    "write_examples",
    "write_figures",
    "write_gallery",
    "write_home",
    "write_likelihoods",
    "write_losses",
    "write_notebooks",
    "write_parameters",
]

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
    "compete_controls": 12,
    "compete_gamma": 5,
    "compete_gaussian": 4,
    "compete_gaussian_starts": 6,
    "compete_language": 20,
    "compete_language_plateau": 34,
    "compete_plateau": 10,
    "compete_readings": 6,
    "compete_schedules": 18,
    "compete_upcycling": 10,
    "coverage_order": 21,
    "coverage_over": 5,
    "coverage_resampling": 7,
    "coverage_selection": 8,
    "coverage_tests": 11,
    "coverage_wald": 15,
    "expert_count_figure1": 64,
    "expert_count_gates": 6,
    "expert_count_sensitivity": 59,
    "gaussian_competition": 89,
    "gaussian_exact_v1": 18,
    "gaussian_published": 16,
    "gaussian_softmax": 17,
    "microscope_floors_attention": 23,
    "microscope_floors_competition": 16,
    "microscope_floors_gaussian": 21,
    "microscope_floors_gaussian_four": 14,
    "microscope_floors_mlmoe": 47,
    "mlmoe_figure1": 70,
    "mlmoe_figure1_softmax_four": 1,
    "mlmoe_sigmoid_vs_softmax": 4,
    "mlmoe_start_sensitivity": 25,
    "mlmoe_table1": 3,
    "quickstart": 1,
}
"""Minutes of one core, without compiling: of the cells of a store, or what ``run --check`` said."""


GROUPS = {
    "quickstart": "A first sweep",
    "mlmoe": "Classes, softmax and sigmoid gates",
    "gaussian": "Gaussian experts",
    "attention": "Attention as a mixture of experts",
    "compete": "Experts that compete, in layers",
    "expert": "Networks on clusters of patches",
    "coverage": "Intervals and tests",
    "microscope": "To n = 1e14",
}
"""Headings of the gallery, by the first word of an experiment's name."""


def write_gallery() -> None:
    """A card for every shipped experiment: its figure, what one sees, the command, the time."""
    MADE.mkdir(exist_ok=True)
    pictures = MADE / "pictures"
    pictures.mkdir(exist_ok=True)
    cards: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        title = tomllib.loads(text)["title"]
        picture = ROOT / "figures" / f"{path.stem}.png"
        image = ""
        if picture.exists():
            shutil.copy(picture, pictures / picture.name)
            image = f":img-top: pictures/{picture.name}\n"
        cards[GROUPS[path.stem.partition("_")[0]]].append(
            f":::{{grid-item-card}} {title}\n{image}\n{_head(text)}\n\n"
            f"```sh\npython -m moestat.sweep run {path.stem}\n```\n"
            f"{_time(path.stem)}\n:::\n"
        )
    body = "".join(
        f"## {title}\n\n::::{{grid}} 1\n:gutter: 3\n\n" + "\n".join(several) + "\n::::\n\n"
        for title, several in cards.items()
    )
    (MADE / "gallery.md").write_text(
        "# Gallery\n\nEvery shipped experiment: its figure where one is kept, what the spec says of"
        " itself, the command that runs it and how long that takes. A picture opens in full"
        f" size.\n\n{body}",
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


TOPICS: dict[str, tuple[str, ...]] = {
    "Fits": ("fit", "fit_formula", "fit_many", "fit_blocks", "Blocks", "Prior", "compress"),
    "Results": (
        "estimation.results.results.MoEResults",
        "load",
        "compare",
        "estimation.results.comparison.Comparison",
        "estimation.results.summary.Summary",
        "estimation.inference.prediction.Prediction",
        "estimation.inference.diagnostics.Influence",
        "solvers.certificate.Certificate",
        "solvers.solution.Solution",
    ),
    "Models": ("family", "Family", "MixingMeasure"),
    "Inference": (
        "bootstrap",
        "estimation.inference.bootstrap.BootstrapResult",
        "profile",
        "estimation.inference.profile.Profile",
        "lr_test",
        "score_test",
        "estimation.inference.hypotheses.TestResult",
        "fit_constrained",
        "RestrictedFit",
        "required_n",
        "estimation.studies.required.RequiredN",
    ),
    "The number of experts": (
        "select",
        "stepwise",
        "lasso_path",
        "estimation.studies.lasso.LassoPath",
        "estimation.studies.selection.Selection",
        "bootstrap_lrt",
        "estimation.studies.order.OrderTest",
        "em_test",
        "estimation.studies.em_test.EMTest",
        "dendrogram",
        "estimation.inference.dendrogram.Dendrogram",
        "estimation.inference.simpler.Simpler",
    ),
    "Functions of data and parameters": (
        "log_likelihood",
        "score",
        "hessian",
        "gate_probabilities",
        "responsibilities",
    ),
    "scikit-learn": ("MoERegressor", "MoEClassifier"),
    "Samples and designs": ("sample", "sample_weighted", "model.designs.*"),
    "Distances and information": (
        "voronoi_loss",
        "voronoi_terms",
        "hellinger",
        "total_variation",
        "regression_error",
        "expected_information",
        "information_spectrum",
        "metrics.information.Spectrum",
    ),
    "Rates": (
        "fit_rate",
        "rates.rate.RateResult",
        "compare_rates",
        "plot_rates",
        "rates.plots.RateCurve",
        "rates.local_slopes.*",
    ),
    "Solvers": ("solvers.*",),
    "Starts": ("estimation.starts.*",),
    "Sweeps": ("sweep.*",),
    "Data sets": ("datasets.names", "datasets.load", "datasets.describe"),
    "Networks on clusters of patches": ("networks.expert_count.*",),
    "Layers of experts in PyTorch": (
        "networks.smoe.layer.*",
        "networks.smoe.compete.*",
        "networks.smoe.compete_v1.*",
        "networks.smoe.dense.*",
        "networks.smoe.encoder.*",
        "networks.smoe.experts.*",
        "networks.smoe.routers.*",
        "networks.smoe.responses.*",
        "networks.smoe.losses.*",
        "networks.smoe.dispatch.*",
        "networks.smoe.schedule.*",
        "networks.smoe.metrics.*",
        "networks.smoe.attention.*",
        "networks.smoe.upcycling.*",
    ),
    "Experiments with layers of experts": (
        "networks.smoe.training.settings.*",
        "networks.smoe.training.tasks.*",
        "networks.smoe.training.tasks.task.*",
        "networks.smoe.training.blocks.*",
        "networks.smoe.training.decoder.*",
        "networks.smoe.training.loop.*",
    ),
    "Warnings": ("base.warnings.*",),
}
"""The API by topic: public names, or places in moestat; a star is all that a module names."""


def topics() -> dict[str, dict[str, Any]]:
    """Everything public by topic, under the shortest name that a user may write."""
    found: dict[str, dict[str, Any]] = {}
    for topic, places in TOPICS.items():
        found[topic] = {}
        for place in places:
            if place in moestat.__all__:
                found[topic][f"moestat.{place}"] = getattr(moestat, place)
                continue
            module, _, name = f"moestat.{place}".rpartition(".")
            try:
                home = import_module(module)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("moestat"):
                    raise
                continue  # an extra that is not installed
            for each in home.__all__ if name == "*" else (name,):
                thing = getattr(home, each)
                seen = [known for things in found.values() for known in things.values()]
                documented = inspect.isclass(thing) or inspect.isroutine(thing)
                if documented and not any(known is thing for known in seen):
                    short = each in moestat.__all__ and getattr(moestat, each) is thing
                    found[topic][f"moestat.{each}" if short else f"{module}.{each}"] = thing
    return found


def write_api() -> None:
    """One page for every public function and class, by topic."""
    folder = MADE / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts, written = [], set()
    for topic, things in topics().items():
        rows = []
        for name, thing in things.items():
            page = name.removeprefix("moestat.")
            if page not in written:
                _write_name(folder / f"{page}.rst", name, thing, [*things])
            written.add(page)
            first = (inspect.getdoc(thing) or "").splitlines()[0].replace("|", "\\|")
            rows.append(f"| [{name}](api/{page}.rst) | {first} |")
        listed = "\n".join(f"api/{name.removeprefix('moestat.')}" for name in things)
        if rows:
            parts.append(
                f"## {topic}\n\n:::{{div}} names\n| name | what it is |\n|---|---|\n"
                + "\n".join(rows)
                + f"\n:::\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
            )
    (MADE / "api.md").write_text("# API reference\n\n" + "\n".join(parts), encoding="utf-8")


def _write_name(path: Path, name: str, thing: Any, topic: Sequence[str]) -> None:
    """The page of one function or class, of a class with all that users may call; its topic."""
    is_class = inspect.isclass(thing)
    kind = "autoclass" if is_class else "autofunction"
    place = f"{thing.__module__}.{thing.__qualname__}"
    options = "   :members:\n" if is_class else ""
    if is_class and any(base.__module__.startswith("moestat") for base in thing.__mro__[1:]):
        options += f"   :inherited-members: {_foreign(thing)}\n"
    # What is no name of moestat itself is called by its own, short name.
    title = name if name.count(".") == 1 else thing.__name__
    pages = [each.removeprefix("moestat.") for each in topic if each != name]
    see = ", ".join(f":doc:`{page.rpartition('.')[2]} <{page}>`" for page in pages)
    text = f"{title}\n{'=' * len(title)}\n\n.. {kind}:: {place}\n{options}"
    text += f"\n.. seealso::\n\n   {see}\n" if see else ""
    path.write_text(text, encoding="utf-8")


def _foreign(thing: Any) -> str:
    """The classes of other packages from which a class inherits: their members are not ours."""
    return ", ".join(b.__name__ for b in thing.__mro__ if not b.__module__.startswith("moestat"))


def write_home() -> None:
    """The picture and the summary of the first page."""
    from matplotlib import pyplot

    penguins = moestat.datasets.load("penguins").dropna()
    formula = "body_mass_g ~ flipper_length_mm | bill_depth_mm"
    result = moestat.fit_formula(formula, penguins, n_experts=2, rng=0)
    result.plot().figure.savefig(MADE / "home.png", dpi=150)
    pyplot.close("all")
    (MADE / "home.txt").write_text(f"{result.summary()}\n", encoding="utf-8")


def write_examples() -> None:
    """A card for each notebook with its first picture."""
    pictures = MADE / "pictures"
    pictures.mkdir(exist_ok=True)
    cards = []
    for name in _ORDER:
        book = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        shown = [o.data for c in book.cells for o in c.get("outputs", ()) if "data" in o]
        picture = next(data["image/png"] for data in shown if "image/png" in data)
        (pictures / f"example_{name}.png").write_bytes(b64decode(picture))
        title, _, rest = book.cells[0].source.partition("\n\n")
        learnt = rest.partition("What you learn: ")[2].partition(".")[0]
        cards.append(
            f":::{{grid-item-card}} {title.lstrip('# ')}\n:img-top: pictures/example_{name}.png\n"
            f":link: notebooks/{name}\n:link-type: doc\n\n{learnt[:1].upper()}{learnt[1:]}.\n:::\n"
        )
    (MADE / "examples.md").write_text(
        "# Examples\n\nAnalyses from data to answer, each a notebook with its outputs.\n\n"
        "::::{grid} 1 1 2 3\n:gutter: 3\n\n" + "\n".join(cards) + "\n::::\n",
        encoding="utf-8",
    )


def write_alarms() -> None:
    """What fits warn of, with how often they did in `benchmarks/alarms.py`."""
    stored = json.loads((ROOT / "benchmarks" / "results" / "alarms.json").read_text("utf-8"))
    parts = [(DOCS / "guide" / "_alarms.md").read_text(encoding="utf-8")]
    titles = {
        "regular": "Regular data: any alarm",
        "misleading": "Misleading data: the right alarm",
    }
    for group, title in titles.items():
        lines = [f"| {title} | fitted | of data sets |", "|---|---|---|"]
        for row in stored[group]:
            share = f"{row['alarms']} of {row['fits']} ({row['alarms'] / row['fits']:.1%})"
            plural = "s" * (row["experts"] > 1)
            fitted = f"{row['experts']} `{row['likelihood']}` expert{plural}"
            lines.append(f"| {row['situation']} | {fitted} | {share} |")
        parts.append("\n".join(lines))
    columns = {
        "right": "true number of classes chosen",
        "largest": "4 chosen",
        "dependence": "`DependentRowsWarning`",
        "edge": "`EdgeWarning`",
    }
    lines = [f"| `select` of 1 to 4, groups, BIC | {' | '.join(columns.values())} |"]
    lines.append("|---" * (1 + len(columns)) + "|")
    for row in stored["selections"]:
        shares = [f"{row[name]} of {row['data sets']}" for name in columns]
        lines.append(f"| {row['situation']} | {' | '.join(shares)} |")
    parts.append("\n".join(lines))
    (MADE / "alarms.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_parameters() -> None:
    """The equation and the blocks of every gate, expert and likelihood, from their files."""
    parts = [(DOCS / "guide" / "_parameters.md").read_text(encoding="utf-8")]
    for title, registry, room, options in (
        ("Gates", GATES, "gates", {}),
        ("Experts", EXPERTS, "experts", {"gate": "softmax"}),
        ("Likelihoods", LIKELIHOODS, "likelihoods", {"gate": "softmax"}),
    ):
        parts.append(f"## {title}")
        for module, names in _by_module(registry, room).items():
            text = (inspect.getdoc(import_module(module)) or "").replace("``", "`")
            heading = ", ".join(f"`{name}`" for name in names)
            blocks = _own_blocks(title, names[0], options)
            said = f"Parameters: {blocks}." if blocks else "It has no parameters."
            parts += [f"### {heading}", text, said]
    (MADE / "parameters.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _by_module(registry: Any, room: str) -> dict[str, list[str]]:
    """The members of a registry by the module that makes them."""
    folder = import_module(f"moestat.model.{room}")
    modules = [each.name for each in iter_modules(folder.__path__, f"{folder.__name__}.")]
    found: dict[str, list[str]] = {}
    for name in registry:
        member = registry[name]
        made = [getattr(member, part, None) for part in ("reference", "block", "draw")]
        home = next((f.__module__ for f in made if getattr(f, "__module__", None) in modules), "")
        found.setdefault(home, []).append(name)
    return found


def _own_blocks(title: str, name: str, options: Mapping[str, Any]) -> str:
    """The blocks of one member, with their shapes for k experts and d inputs."""
    axis = {"Gates": "gate", "Experts": "expert", "Likelihoods": "likelihood"}[title]
    for likelihood in (name,) if axis == "likelihood" else ("gaussian", "least-squares"):
        try:
            given = {} if axis == "likelihood" else {axis: name}
            model = moestat.family(likelihood, **{**options, **given})
        except ValueError:
            continue
        names = getattr(model, axis).bounds
        shown = [block for block in model.blocks if block in names or block.split("_")[-1] in names]
        if axis != "gate":
            shown = [block for block in shown if not block.startswith("gate_")]
        else:
            shown = [block for block in shown if not block.startswith("expert_")]
        return ", ".join(f"`{block}`" for block in shown)
    return ""


_ORDER = (
    "first_analysis",
    "first_fit",
    "patients",
    "growth",
    "readings",
    "two_eyes",
    "too_many_zeros",
    "how_many_experts",
    "separation",
    "from_spec_to_rate",
    "what_a_truth_allows",
    "to_1e14",
    "rate_of_your_own_gate",
    "attention",
    "competesmoe",
    "expert_count",
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
        "# Notebooks\n\nEach notebook creates or loads the data that it needs, and runs in a"
        " minute or less. The files are in the folder `notebooks`.\n\n```{toctree}\n:maxdepth:"
        " 1\n\n" + listed + "\n```\n",
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
        "A loss fits a gate if it compares the parameters of the gate and of the expert, and"
        " depends on all parameters that change the density. Families that are not in the table"
        " have no Voronoi loss; `moestat.hellinger` and `moestat.regression_error` compare any"
        " two models.",
        "\n".join(fits),
        "## The losses",
        "The table has the exponents of the errors of parameters, by the number of fitted atoms"
        " in a Voronoi cell. If a row has several exponents for larger cells, they are for cells"
        " of two, three and more fitted atoms.",
        "\n".join(losses),
    ]
    (MADE / "losses.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_likelihoods() -> None:
    """Every likelihood of the registry: its responses, parameters, and what goes with it."""
    rows = [
        "| likelihood | responses | parameters besides those of the mean | source |",
        "|---|---|---|---|",
    ]
    for name, one in LIKELIHOODS.items():
        own = ", ".join(
            f"`{channel}`" for channel in dict.fromkeys(c.intercept for c in one.channels)
        )
        rows.append(f"| `{name}` | {_responses_of(one)} | {own or 'none'} | {one.source} |")
    table = ["| gate | groups | equal coefficients |", "|---|---|---|"]
    for gate in GATES:
        try:
            model = moestat.family("gaussian", gate=gate, n_experts=2)
        except ValueError:
            continue
        word = "of two inputs or more" if has_kinks(model) else "yes"
        table.append(f"| `{gate}` | {'no' if model.has_jumps else word} | {word} |")
    parts = [
        "# Likelihoods, and what can be combined",
        "For every likelihood in the table that is a density, all solvers for densities, fixed"
        " coefficients, weights, tests, intervals, selection and files are available. Gates that"
        " depend on the response can be combined only with likelihoods that have one mean.",
        "\n".join(rows),
        "## Groups and constraints by gate",
        "\n".join(table),
        "Groups, equal coefficients and censored responses are available on the processor, for"
        " rows in memory.",
    ]
    MADE.mkdir(exist_ok=True)
    (MADE / "likelihoods.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _responses_of(one: Likelihood) -> str:
    """What a likelihood takes, in words."""
    if one.parts:
        return "two real numbers or more, correlated within an expert"
    if one.support is not None:
        return "classes in an order" if one.chances is not None else "classes"
    words = {(0.0, 1.0): "numbers in (0, 1)", (0.0, math.inf): "positive numbers"}
    kind = words.get(one.ends, "real numbers")
    if one.counts:
        kind = "counts from 1" if one.ends[0] == 0.0 else "counts"
    options = "" if one.configure is None else inspect.signature(one.configure).parameters
    if "trials" in options:
        return "successes of a number of trials; or successes and failures"
    return kind + (", or their bounds" if "censored" in options else "")


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
