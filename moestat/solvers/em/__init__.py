"""Expectation-maximisation, plain and accelerated."""
