"""The law of the error of an over-specified estimate, two atoms on one normal law.

    python -m experiments.limit_law fit     # 300 data sets at each of eight sizes, some minutes
    python -m experiments.limit_law page    # the page and its picture, from the kept results

``docs/theory/limit_law.md`` has the theorem and its proof; `fits` maximises the likelihood of
counts on a lattice, `law` draws from the limit, `page` lays one over the other.
"""
