"""Rows of one file have the same keys: what each key is for is worked out once and not on every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from store.metrics import POINT_METRICS
from store.readers.values import Row

IDENTITY = frozenset(
    (
        "hw hardware infmax_model_prefix model_prefix model framework precision spec_decoding spec_method mtp"
        " scenario_type benchmark_type isl osl kv_offloading offloading offload_mode disagg is_multinode"
        " tp pp dcp_size pcp_size ep dp_attention num_prefill_gpu num_decode_gpu num_gpus num_aggregate_gpu"
        " prefill_tp prefill_pp prefill_dcp_size prefill_pcp_size prefill_ep prefill_dp_attention"
        " prefill_num_workers prefill_hw"
        " decode_tp decode_pp decode_dcp_size decode_pcp_size decode_ep decode_dp_attention"
        " decode_num_workers decode_hw"
        " image image_digest recipe_fingerprint recipe-fingerprint"
    ).split()
)
"""Fields that say who was measured: all that is the same for every concurrency of a curve."""

PROVENANCE = frozenset(
    (
        "conc users router kv_p2p_transfer kv_offload_backend allocated_cpu_dram_gb workers benchmark_outcome"
        " result_schema_version qps_window_seconds qps_samples dataset request_accounting label"
        " records_profiled records_error_dropped"
        " run_id run_attempt run_url created_at date id config_id server_log_id"
        " client_image"
        " curve_date curve_workflow_run_id curve_run_started_at warnings power_audit power_invalid_reasons"
    ).split()
)
"""Fields that are neither identity nor measurement."""

TEXTS = ("client_image", "kv_offload_backend", "kv_p2p_transfer", "router")
"""Fields that name what else ran beside the engine: kept as text among the further values of a point."""

_METRICS = frozenset(POINT_METRICS)
Picker: TypeAlias = Callable[[Row], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The keys of a row by their use; `further` are those that no table knows."""

    identity: Picker
    metrics: tuple[str, ...]
    values: Picker
    further: tuple[str, ...]
    texts: tuple[str, ...]


@lru_cache(maxsize=1024)
def columns(keys: tuple[str, ...]) -> Columns:
    """Sort the keys of a row.

    >>> columns(("hw", "conc", "tput_per_gpu", "frobnication_rate")).further
    ('frobnication_rate',)
    """
    metrics = tuple(key for key in keys if key in _METRICS)
    further = tuple(sorted(set(keys) - IDENTITY - PROVENANCE - _METRICS))
    texts = tuple(key for key in TEXTS if key in keys)
    return Columns(picker(key for key in keys if key in IDENTITY), metrics, picker(metrics), further, texts)


def picker(keys: Iterable[str]) -> Picker:
    """A function that takes the values of these keys out of a row (`itemgetter` gives no tuple for fewer than two).

    >>> picker(["a"])({"a": 1}), picker([])({"a": 1})
    ((1,), ())
    """
    wanted = tuple(keys)
    if len(wanted) > 1:
        return itemgetter(*wanted)
    return lambda row: tuple(row[key] for key in wanted)
