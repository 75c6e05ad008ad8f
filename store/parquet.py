"""Bytes of a Parquet file that anybody may have written, to a frame: a broken one is an error and nothing worse.

Arrow reads and checks it. Polars, faster with a file of our own, ends the whole process over a few changed bytes of
some: it asks for 2 EiB of memory, which no `except` sees. No other module knows the Parquet reader of Arrow.
"""

from __future__ import annotations

from io import BytesIO

import polars as pl
import pyarrow as pa
from pyarrow import parquet


class NotParquet(ValueError):
    """The bytes are no whole Parquet file, or one with more rows than may be."""


def read(content: bytes, most_rows: int) -> pl.DataFrame:
    """The rows of a file. Raises NotParquet; rows are counted by the foot of the file before any is read."""
    try:
        file = parquet.ParquetFile(BytesIO(content))
        if file.metadata.num_rows > most_rows:
            raise NotParquet(f"{file.metadata.num_rows} rows, at most {most_rows} are read")
        table = file.read(use_threads=False)
        table.validate(full=True)
        frame = pl.from_arrow(table)
    except (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as flaw:
        raise flaw if isinstance(flaw, NotParquet) else NotParquet(str(flaw)) from None
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()
