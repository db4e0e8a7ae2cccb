from .errors import SweepError as SweepError
from .kinds.fit.analysis import CurveSummary as CurveSummary, summarise as summarise
from .kinds.fit.comparison import compare_curves as compare_curves
from .kinds.fit.spec import Spec as Spec
from .kinds.kind import KINDS as KINDS
from .kinds.runs.numbers import kind_of_numbers as kind_of_numbers
from .kinds.runs.places import Metrics as Metrics
from .run.cell import run_cell as run_cell
from .run.executors import dask_executor as dask_executor
from .run.runner import open_cells as open_cells, run_cells as run_cells
from .run.status import status_of as status_of
from .spec.keys import Key as Key
from .spec.plan import Cell as Cell, plan_cells as plan_cells
from .spec.read import load_spec as load_spec, parse_spec as parse_spec
from .store.merging import merge as merge
from .store.record import Record as Record
from .store.store import create_store as create_store, open_store as open_store
from .store.verification import verify as verify
