"""The five papers: their claims, truths, published numbers, and the pages that judge them.

Code of a clone beside the specs it runs: the library imports nothing of it, and a wheel carries
the specs alone.
"""
