"""The five papers: their claims, truths, published numbers, and the pages that judge them.

The library never imports this package.
"""
