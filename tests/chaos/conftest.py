from tests.sweep.conftest import spec, spec_file, text

__all__ = ["spec", "spec_file", "text"]
