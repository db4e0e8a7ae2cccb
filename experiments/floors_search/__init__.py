"""How high the likelihood of the floored microscopes is beyond what their shipped starts reach.

``python -m experiments.floors_search run`` searches each data set until a share of independent
starts agrees; ``page`` tells what that changes in the slopes of microscope_floors.md.
"""
