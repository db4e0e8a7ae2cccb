"""Specs drawn from the JSON schema that editors check them with."""

import json

from hypothesis import strategies as st

from moestat.sweep.report.keys import json_schema

_NAMES = (
    *(
        "softmax",
        "sigmoid",
        "linear",
        "multinomial",
        "gaussian",
        "least-squares",
        "D1",
        "softmax-D1",
    ),
    *("newton", "em", "t", "uniform", "lattice", "fit", "nope", "", "[/]", "$", "a | b", "\u00e9"),
)
_NUMBERS = st.one_of(
    st.integers(-3, 4), st.integers(), st.floats(), st.sampled_from([0.5, -0.5, 200, 1e9, 10**400])
)
_TEXTS = st.sampled_from(_NAMES)
_LISTS = st.lists(st.one_of(_NUMBERS, _TEXTS, st.lists(_NUMBERS, max_size=3)), max_size=3)
_TABLES = st.dictionaries(
    st.sampled_from(("name", "low", "high", "truth", "start", "stop", "num", "tolerance", "x")),
    st.one_of(_NUMBERS, _TEXTS, _LISTS),
    max_size=3,
)
_OF_KIND = {
    "string": _TEXTS,
    "integer": st.one_of(st.integers(0, 5), st.integers()),
    "number": _NUMBERS,
    "boolean": st.booleans(),
    "array": _LISTS,
    "object": _TABLES,
}
_ANYTHING = st.one_of(*_OF_KIND.values())
_BLOCKS = ("beta0", "beta1", "a", "b", "nu", "alpha", "beta", "noise")


def _value(schema):
    """A value of a key: mostly of its kind, sometimes of any."""
    if "const" in schema:
        return st.just(schema["const"])
    if "properties" in schema:
        return _table(schema)
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
        inner = schema["additionalProperties"]
        own = _table(inner) if "properties" in inner else _LISTS
        return st.dictionaries(st.sampled_from(("t", "other")), own, min_size=1, max_size=2)
    if "items" in schema:
        return st.lists(_value(schema["items"]), min_size=1, max_size=2)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    own = st.one_of(*(_OF_KIND[kind] for kind in kinds))
    if "enum" in schema:
        own = st.one_of(st.sampled_from(schema["enum"]), own)
    if "maximum" in schema:
        own = st.one_of(own, st.sampled_from([schema["maximum"], schema["maximum"] + 1, 2**64]))
    return st.integers(0, 9).flatmap(lambda roll: _ANYTHING if roll == 0 else own)


def _table(schema):
    required = {name: _value(schema["properties"][name]) for name in schema.get("required", ())}
    optional = {
        name: _value(inner) for name, inner in schema["properties"].items() if name not in required
    }
    if isinstance(schema.get("additionalProperties"), dict):
        optional |= dict.fromkeys(_BLOCKS, _LISTS)
    return st.fixed_dictionaries(required, optional=optional)


def toml(value):
    """A value in TOML, every table inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else repr(value)


def specs():
    """Texts of specs of all kinds that have the shape of the schema, and seldom mean anything."""
    return st.one_of(*map(_table, json_schema()["anyOf"])).map(
        lambda top: "\n".join(f"{name} = {toml(value)}" for name, value in top.items())
    )
