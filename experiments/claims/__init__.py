"""The engine of claims: what a claim is, which checks test it, and the rules that decide.

A claim names the checks that test it; a check names where its evidence comes from and the rule,
fixed beforehand, that reads it.  Nothing here holds a verdict: `experiments.verify` gathers
evidence and the rules decide.
"""
