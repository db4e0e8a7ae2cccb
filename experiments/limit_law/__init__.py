"""The law of the error of an over-specified estimate, two to four atoms on one normal law.

    python -m experiments.limit_law fit KEPT     # data sets at eight sizes, half an hour
    python -m experiments.limit_law page KEPT    # the result, the page and its pictures

``docs/theory/limit_law.md`` has the theorem and its proof; `fits` maximises the likelihood of
counts on a lattice, `law` draws from the limit, `page` lays one over the other.
"""
