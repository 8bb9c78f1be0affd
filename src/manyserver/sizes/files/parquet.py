"""Columns of Parquet files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manyserver.sizes.files.shown import one_of, shortened, shown

__all__ = ["read"]


def read(path: Path, where: str, column: object) -> tuple[np.ndarray, Callable[[int], str]]:
    """Read a column of numbers; see :func:`manyserver.sizes.files.read_sizes`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            chosen = one_of(where, column, schema.names)
            kind = schema.field(chosen).type
            is_ = pa.types
            if not (is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind)):
                raise ValueError(
                    f"{where}, {shown(chosen)}: has type {shortened(str(kind))}; must be numbers"
                )
            values = file.read([chosen]).column(0).cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise ValueError(f"{where}: cannot be read: the Parquet file is damaged") from None
    return values.to_numpy(), lambda index: f"{where}, {shown(chosen)}[{index}]"
