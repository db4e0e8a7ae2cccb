"""Five gates and experts of one's own: what `moestat.theory.rates` says, beside sweeps.

`members` registers them as a user would; `python -m experiments.own_gates` asks for their rates,
runs the sweeps that the answers write, and puts both on one page.
"""
