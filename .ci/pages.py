"""Runs the Python of pages with what is installed, not with the checkout."""

import re
import sys
from pathlib import Path

for page in sys.argv[1:]:
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", Path(page).read_text(), flags=re.DOTALL):
        exec(compile(block, page, "exec"), names)
