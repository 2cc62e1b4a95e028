"""Tables of results, for pandas, Polars, PyArrow or none of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from outlast import _native


class Table:
    """A table whose columns have types and names.

    It speaks Arrow's PyCapsule protocol: whatever takes that, such as `pyarrow.table(table)`,
    `polars.DataFrame(table)` or DuckDB, takes over its memory without a copy.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._native.num_rows

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, with the unit last where there is one."""
        return self._native.column_names

    def to_dict(self) -> dict[str, list[Any]]:
        """A list of Python values for each column; None is what is missing."""
        return self._native.to_dict()

    def to_arrow(self) -> pyarrow.Table:
        """As a `pyarrow.Table`, without a copy."""
        return library("pyarrow", "to_arrow").table(self)

    def to_polars(self) -> polars.DataFrame:
        """As a `polars.DataFrame`."""
        return library("polars", "to_polars").DataFrame(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """As a `pandas.DataFrame`; options go to `pyarrow.Table.to_pandas`."""
        library("pandas", "to_pandas")
        frame: pandas.DataFrame = library("pyarrow", "to_pandas").table(self).to_pandas(**options)
        return frame

    def __repr__(self) -> str:
        columns = self.column_names
        return f"<outlast.Table: {len(self)} rows, {len(columns)} columns>"


def library(name: str, method: str) -> Any:
    """The module `name`, which `method` needs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = {"pyarrow": "arrow", "matplotlib": "plot"}.get(package, package)
        instead = "table().to_dict()" if method == "plot" else "to_dict()"
        raise ImportError(
            f"{method}() needs {package}, which is not installed: "
            f"`pip install {package}`, or the package as `outlast[{extra}]`; "
            f"{instead} needs nothing",
            name=package,
        ) from error
