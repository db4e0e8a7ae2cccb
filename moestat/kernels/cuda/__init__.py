"""The same maths on a CUDA device, one thread per sample and one launch per batch of problems.

Importing this package needs numba's CUDA target: on a machine with a device, the package
numba-cuda (extra ``cuda``); with ``NUMBA_ENABLE_CUDASIM=1``, numba's simulator.
"""
