"""Figures of the product, measured side by side: `make bench`, or `python -m bench.NAME`."""
