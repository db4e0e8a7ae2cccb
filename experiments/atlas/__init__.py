"""The atlas of rates: what is known of each gate, expert, likelihood and number of atoms in a cell.

`cells` lists the families by one rule, `order` computes a cell, `links` reads what the catalogue of
claims says of its family, and `page` writes it all down.
"""
