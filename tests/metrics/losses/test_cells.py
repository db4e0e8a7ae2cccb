import numpy as np
import pytest

from moestat.metrics.losses import CellErrors, cell_errors, voronoi_terms
from moestat.model.measure import MixingMeasure


def measure(masses, **blocks):
    atoms = {name: np.array(x, dtype=float) for name, x in blocks.items()}
    return MixingMeasure(np.array(masses, dtype=float), atoms)


@pytest.fixture
def truth():
    return measure(
        [1, 2, 1],
        alpha=[[0, 0], [10, 0], [0, 90]],
        beta=[0, 5, 0],
        a=np.zeros((3, 2, 2)),
        b=np.zeros((3, 2)),
    )


@pytest.fixture
def fit():
    a = np.zeros((3, 2, 2))
    a[0] = [[0.3, 0.4], [0.6, 0.8]]  # norms 0.5 and 1
    a[2, 1] = [0, 2]
    return measure(
        [1, 2, 1],
        alpha=[[3, 4], [10, 1], [10, 2]],
        beta=[-0.25, 6, 5.5],
        a=a,
        b=[[0.25, -0.5], [0, 0], [0.5, 0]],
    )


def test_hand_built_cells(fit, truth):
    terms = voronoi_terms(fit, truth, "D1")
    one, two, empty = cell_errors(fit, truth, terms)
    assert (one.size, two.size, empty.size) == (1, 2, 0)
    assert (one.mass_error, two.mass_error, empty.mass_error) == (0.0, 1.0, 1.0)
    assert one.errors == pytest.approx({"alpha": 5.0, "beta": 0.25, "a": 1.5, "b": 0.75})
    # The largest of each block, from whichever atom: beta's is not the atom of the others.
    assert two.errors == pytest.approx({"alpha": 2.0, "beta": 1.0, "a": 2.0, "b": 0.5})
    assert list(empty.errors) == ["alpha", "beta", "a", "b"]
    assert np.isnan(list(empty.errors.values())).all()
    assert isinstance(one, CellErrors)


def test_labels_do_not_matter(fit, truth):
    expected = cell_errors(fit, truth, voronoi_terms(fit, truth, "D1"))[:2]
    order = [2, 0, 1]
    other = MixingMeasure(fit.masses[order], {name: x[order] for name, x in fit.atoms.items()})
    assert cell_errors(other, truth, voronoi_terms(other, truth, "D1"))[:2] == expected


def test_singleton_cells_give_back_the_loss():
    # Exponent 1 and one atom per cell: mass times error is the block's share of the loss.
    rng = np.random.default_rng(2)
    truth = measure(
        [1, 1], alpha=[[0], [50]], beta=[0, 0], a=np.zeros((2, 2, 1)), b=np.zeros((2, 2))
    )
    fit = measure(
        [1.5, 0.5], **{name: x + rng.normal(size=x.shape) for name, x in truth.atoms.items()}
    )
    terms = voronoi_terms(fit, truth, "D1")
    cells = cell_errors(fit, truth, terms)
    for name, block in terms.block_errors.items():
        assert [cell.errors[name] for cell in cells] == pytest.approx(block / fit.masses)
    assert [cell.mass_error for cell in cells] == pytest.approx(terms.mass_errors)


def test_after_the_translation():
    truth = measure([1, 1, 1], beta1=[[0], [10], [20]], a=np.zeros((3, 1, 1)), b=np.zeros((3, 1)))
    fit = measure([1, 1, 1], beta1=[[5], [15], [26]], a=np.zeros((3, 1, 1)), b=np.zeros((3, 1)))
    cells = cell_errors(fit, truth, voronoi_terms(fit, truth, "softmax-D1"))
    assert [cell.errors["beta1"] for cell in cells] == pytest.approx([0, 0, 1], abs=1e-8)


def test_after_the_scaling():
    zero = {"a": np.zeros((2, 1, 1)), "b": np.zeros((2, 1))}
    truth = measure([1, 1], alpha=[[2], [6]], beta=[0, 0], tau=[1, 1], **zero)
    fit = measure([1, 1], alpha=[[8.2], [24.4]], beta=[0.4, 0], tau=[4, 4], **zero)
    own, identified, orbit = (
        cell_errors(fit, truth, voronoi_terms(fit, truth, name))
        for name in ("D2r", "D2r-identified", "D2r-orbit")
    )
    assert [cell.size for cell in own] == [0, 2]
    assert own[1].errors["alpha"] == pytest.approx(18.4)
    assert own[1].errors["tau"] == pytest.approx(3.0)
    assert [cell.errors["alpha"] for cell in identified] == pytest.approx([0.05, 0.1])
    assert [cell.errors["beta"] for cell in identified] == pytest.approx([0.1, 0.0])
    assert "tau" not in identified[0].errors
    scale = voronoi_terms(fit, truth, "D2r-orbit").scale
    assert orbit[0].errors["tau"] == pytest.approx(abs(4 * scale - 1))
    assert orbit[1].errors["alpha"] == pytest.approx(abs(24.4 * scale - 6))


def test_the_result_must_be_of_the_measures(fit, truth):
    terms = voronoi_terms(fit, truth, "D1")
    fewer = MixingMeasure(fit.masses[:2], {name: x[:2] for name, x in fit.atoms.items()})
    with pytest.raises(ValueError, match=r"result is of 3 fitted and 3 true atoms, .* 2 and 3"):
        cell_errors(fewer, truth, terms)
    with pytest.raises(ValueError, match=r"result is of 3 fitted and 3 true atoms, .* 3 and 2"):
        cell_errors(fit, fewer, terms)
    other = measure([1], beta1=[[0]], a=np.zeros((1, 1, 1)), b=np.zeros((1, 1)))
    with pytest.raises(ValueError, match="'D1' needs the blocks alpha, beta, a, b"):
        cell_errors(other, truth, terms)
