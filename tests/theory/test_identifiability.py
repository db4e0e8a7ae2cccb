"""PDEs and conditions: the papers' own, found from the functions, and pairs that have none."""

from __future__ import annotations

import numpy as np
import pytest

from moestat.theory.identifiability import check_condition, find_dependencies
from moestat.theory.identifiability.__main__ import main
from moestat.theory.identifiability.atoms import atom_of
from moestat.theory.identifiability.cancellation import find_cancellation
from moestat.theory.identifiability.derivatives import Term
from moestat.theory.identifiability.rank import numerical_rank
from tests.kinds import each_run


def neuron(activation, weighted=True):
    return {"name": "activation", "activation": activation, "weighted": weighted}


LINEAR = {"name": "polynomial", "degree": 1}
PAIRS = [
    ("softmax", "linear", "multinomial"),
    ("sigmoid", "linear", "multinomial"),
    ("sigmoid-inner", "linear", "multinomial"),
    ("sigmoid-euclidean", "linear", "multinomial"),
    ("softmax", "linear", "gaussian"),
    ("competition", {"name": "ffn", "hidden": 2}, "gaussian"),
    ({"name": "competition", "activation": "silu"}, "linear", "gaussian"),
    ("sigmoid-quadratic", neuron("gelu"), "least-squares"),
    ("sigmoid-partial", neuron("tanh", False), "least-squares"),
    ("softmax-quadratic", neuron("softplus"), "least-squares"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_derivatives_agree_with_differences(pair):
    """Richardson-extrapolated central differences of the function and of its gradient."""
    rng = np.random.default_rng(1)
    atom = atom_of(*pair, n_features=2)
    theta = atom.draw(rng)
    X, y = atom.samples(40, rng, theta)

    def at(values):
        factor, jet = atom.functions(values, X, y)
        return np.exp(factor) * jet.value, np.exp(factor) * jet.first

    factor, jet = atom.functions(theta, X, y)
    for j in range(theta.size):
        steps = {}
        for h in (2e-3, 1e-3):
            e = h * np.eye(theta.size)[j]
            up, down = at(theta + e), at(theta - e)
            steps[h] = [(a - b) / (2 * h) for a, b in zip(up, down, strict=True)]
        value, gradient = (
            (4 * fine - coarse) / 3 for fine, coarse in zip(steps[1e-3], steps[2e-3], strict=True)
        )
        scale = np.exp(factor)
        assert np.allclose(value, scale * jet.first[j], rtol=1e-7, atol=1e-8 * abs(value).max())
        tolerance = 1e-8 * abs(gradient).max()
        assert np.allclose(gradient, scale * jet.second[j], rtol=1e-7, atol=tolerance)


@pytest.mark.parametrize("pair", [*PAIRS, ("sigmoid", neuron("gelu", False), "gaussian")], ids=str)
def test_symbolic_forms_are_the_registered_functions(pair):
    sympy = pytest.importorskip("sympy")
    from moestat.theory.identifiability.derivatives import Term
    from moestat.theory.identifiability.forms import SymbolicAtom, elementary

    rng = np.random.default_rng(2)
    atom = atom_of(*pair, n_features=2 if pair[0] == "sigmoid-euclidean" else 1)
    theta = atom.draw(rng)
    X, y = atom.samples(6, rng, theta)
    jet = atom.functions(theta, X, y)[1]
    forms = SymbolicAtom(atom, {})
    p = theta.size
    classes = atom.n_classes if atom.likelihood is not None and atom.n_classes > 1 else 1
    for term in [(p - 1,), (0, p - 1), (1, 1), (p - 2, p - 1)]:
        expected = jet.first[term] if len(term) == 1 else jet.second[term]
        for s, expression in enumerate(forms.derivatives(Term(term))):
            value = sympy.lambdify(
                [*forms.symbols, *forms.x, forms.y], elementary(expression), ["scipy", "numpy"]
            )
            response = np.zeros(X.shape[1]) if y is None else y
            found = value(*theta, *X, response) * np.ones(X.shape[1])
            assert np.allclose(found[s::classes], expected[s::classes], rtol=1e-9, atol=1e-11), (
                term,
                s,
            )


def texts(found):
    return {str(relation) for relation in found.relations}


def test_pde_8_of_mlmoe_is_found():
    """As printed it lacks the factor 1 / tau of the beta term: the relation says which is right."""
    found = find_dependencies("sigmoid-inner", "linear", "multinomial", n_classes=3)
    assert "∂u/∂tau = -beta/tau·∂u/∂beta - alpha/tau·∂u/∂alpha" in texts(found)
    assert [r.left for r in found.relations if "∂²" not in str(r)] == ["∂u/∂tau"]
    assert found.rank.clear
    assert found.rank.rank == found.exact_rank


def test_pdes_8_of_attention_are_found():
    found = find_dependencies("sigmoid-quadratic", LINEAR)
    assert {
        "∂²F/∂b² = ∂²F/∂c∂A",
        "∂²F/∂A∂beta = ∂²F/∂b∂alpha",
        "∂²F/∂b∂beta = ∂²F/∂c∂alpha",
    } <= texts(found)
    assert all(relation.exact for relation in found.relations)


def test_pdes_8_of_attention_are_found_with_two_inputs():
    found = texts(find_dependencies("sigmoid-quadratic", LINEAR, n_features=2))
    assert {
        "∂²F/∂b[0]∂b[1] = ∂²F/∂c∂A[0,1]",
        "∂²F/∂A[0,0]∂beta = ∂²F/∂b[0]∂alpha[0]",
        "∂²F/∂b[1]∂beta = ∂²F/∂c∂alpha[1]",
    } <= found


def test_the_first_pde_of_attention_holds_for_every_expert():
    """It is a PDE of the gate: no expert is free of it, the named examples included."""
    for expert in (neuron("relu"), neuron("gelu"), neuron("softplus", False)):
        assert "∂²F/∂b² = ∂²F/∂c∂A" in texts(find_dependencies("sigmoid-quadratic", expert))


def test_gaussian_softmax_has_its_two_known_pdes():
    found = find_dependencies("softmax", "linear", "gaussian")
    assert {"∂²u/∂b² = 2·∂u/∂nu", "∂²u/∂beta1∂b = ∂u/∂a"} <= texts(found)
    assert found.cancellation.status == "found"
    assert str(found.cancellation).endswith("along: +1 b")


@pytest.mark.parametrize(
    ("pair", "count"),
    [
        (("competition", "linear", "gaussian"), 9),
        (("competition", {"name": "ffn", "hidden": 1}, "gaussian"), 14),
        (("sigmoid-partial", neuron("softplus", False), "least-squares"), 14),
    ],
    ids=str,
)
def test_independent_pairs_come_out_so(pair, count):
    found = find_dependencies(*pair)
    assert found.independent
    assert found.rank.clear
    assert (found.rank.rank, found.exact_rank) == (count, count)
    assert found.cancellation.status == "none"


# In each run where no test with relations or counts of its own compares the ranks.
COMPARED = [
    ("softmax", "multinomial"),
    ("softmax", "gaussian"),
    ("softmax-quadratic", "least-squares"),
]


@pytest.mark.parametrize(
    "pair", each_run(PAIRS, [pair for pair in PAIRS if (pair[0], pair[2]) in COMPARED])
)
def test_exact_and_numerical_rank_agree(pair):
    found = find_dependencies(*pair)
    assert found.exact_rank == found.rank.rank
    assert all(relation.exact for relation in found.relations)


def test_relations_without_sympy_hold_on_the_functions():
    found = find_dependencies("sigmoid-inner", "linear", "multinomial", exact=False)
    assert found.exact_rank is None
    assert not any(relation.exact for relation in found.relations)
    assert "≈" in str(found.relations[0])


def test_ffn_named_by_compete_fails_its_own_condition():
    found = check_condition("algebraic", {"name": "ffn", "hidden": 1})
    relations = texts(found.parts[0])
    assert {"∂²g/∂W2² = 0", "∂g/∂b1 = W2·∂²g/∂b1∂W2"} <= relations
    assert not found.holds_generically


def test_relu_is_not_even_weakly_identifiable():
    """lambda relu(alpha x + beta) is homogeneous: one relation of first order."""
    found = check_condition("weak", neuron("relu"))
    (relation,) = found.parts[0].relations
    assert str(relation) == "∂F/∂beta = -alpha/beta·∂F/∂alpha + lambda/beta·∂F/∂lambda"


def test_linear_experts_are_weakly_identifiable_for_one_atom_only():
    found = check_condition("weak", LINEAR)
    assert found.holds_generically
    assert [dict(c.pattern) for c in found.coincidences] == [{"gate": "same"}, {"gate": "opposite"}]
    assert found.coincidences[0].example == "∂F₂/∂beta ≈ ∂F₁/∂beta"


def test_no_expert_is_strongly_identifiable():
    """At A = b = 0 the gate alone makes the second derivative in b a multiple of that in A."""
    for expert in (neuron("gelu", False), neuron("relu"), LINEAR):
        found = find_dependencies("sigmoid-quadratic", expert, at={"A": 0, "b": 0})
        assert "∂²F/∂b² = (1 - 2*sigma(c))·∂F/∂A" in texts(found)
    assert not check_condition("strong", LINEAR).holds_generically


def test_the_cancellation_at_the_sparse_point_is_real():
    """Two atoms with b = ±e and A = -(1 - 2 sigma(c)) e^2 / 2: f changes by e^4, the loss by e^2.

    This is against the lower bound of Theorem 1 of Yan et al. (2025).
    """
    x = np.linspace(-1, 1, 201)
    mean = np.logaddexp(0, 0.7 * x - 0.2)
    c = -0.4
    share = 1 / (1 + np.exp(-c))
    errors = []
    for e in (0.2, 0.1, 0.05):
        A = -0.5 * (1 - 2 * share) * e**2
        pair = sum(1 / (1 + np.exp(-(A * x**2 + b * x + c))) for b in (e, -e))
        errors.append(np.abs((pair - 2 * share) * mean).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 3.9)


def test_rank_of_a_matrix_with_a_known_one():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 5))
    rank = numerical_rank(np.column_stack([columns, np.zeros(50)]))
    assert (rank.rank, rank.nullity) == (3, 3)
    assert rank.clear


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gate": "hard"}, "unknown gate 'hard'"),
        ({"order": 3}, "order must be 1 or 2, got 3"),
        ({"at": {"kappa": 0}}, "unknown block 'kappa'"),
        ({"expert": "ffn", "likelihood": "multinomial"}, "has one mean"),
    ],
)
def test_refusals_name_the_argument(arguments, message):
    given = {"gate": "softmax", "expert": "linear", **arguments}
    with pytest.raises(ValueError, match=message):
        find_dependencies(**given)


def test_without_sympy_the_exact_part_says_how_to_get_it(monkeypatch):
    from moestat.theory.identifiability import dependencies

    monkeypatch.setattr(dependencies, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"moestat\[theory\]"):
        find_dependencies("softmax", "linear", exact=True)
    assert find_dependencies("softmax", "linear", order=1).exact_rank is None


def test_ranks_that_disagree_are_not_settled():
    """|relu| has a sign that the exact part takes for a function of its own."""
    found = find_dependencies("competition-top", neuron("relu", False))
    assert found.exact_rank > found.rank.rank
    assert not found.settled
    assert "not settled" in found.summary()


def test_an_expert_that_does_not_see_x_cancels_under_the_sigmoid_gate():
    """With a = 0 an expert does not see x: two copies mix, under the sigmoid gate as well."""
    general = find_dependencies("sigmoid", "linear", "multinomial")
    assert general.cancellation.status == "none"
    held = find_dependencies("sigmoid", "linear", "multinomial", at={"a": 0})
    assert held.cancellation.status == "found"
    assert "∂²u/∂b² = (1 - 2*share(1, b))·∂u/∂b" in texts(held)


def test_the_command_prints_relations_and_refuses_names(capsys):
    arguments = ["softmax", "activation:activation=relu,weighted=false", "--features", "1"]
    assert main(arguments) == 0
    assert "∂²F/∂beta1∂beta = ∂F/∂alpha" in capsys.readouterr().out
    assert main(["softmax", "dense"]) == 2
    assert "unknown expert 'dense'" in capsys.readouterr().err


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rounding_in_a_relation_of_first_order_cancels_nothing(sign):
    """Columns 0 and 3 are equal but for rounding; whether it is positive depends on a processor."""
    x = np.linspace(-1.0, 1.0, 40)
    noise = sign * 1e-16 * np.cos(9.0 * x**2)
    terms = [Term(()), Term((0,)), Term((0, 0)), Term(())]
    rank = numerical_rank(
        np.column_stack([np.exp(x), x, x**2, np.exp(x) + x**2 * sign * 2e-16 + noise])
    )
    assert rank.nullity == 1
    assert find_cancellation(terms, rank.relations(), ["a"]).status == "none"
    exact = numerical_rank(np.column_stack([np.exp(x), x, x**2, np.exp(x) + 0.5 * x**2]))
    assert find_cancellation(terms, exact.relations(), ["a"]).status == "found"
