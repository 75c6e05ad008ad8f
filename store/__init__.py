"""Remembers: records, identity, readers, archive, DuckDB."""
