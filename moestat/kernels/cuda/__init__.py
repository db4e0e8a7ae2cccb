"""The same maths on a CUDA device, one thread per sample and one launch per batch of problems.

Kernels are compiled by the package numba-cuda (extra ``cuda``) on a machine with a device; with
``NUMBA_ENABLE_CUDASIM=1`` numba's simulator runs them in plain Python.
"""
