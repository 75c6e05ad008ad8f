"""Who was measured: the identity fields of a flat row, in every era's spelling, to a `Series` and its pool."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from store import identity, images
from store.readers.columns import Columns
from store.readers.values import Flaw, Row, flag, integer, length, shown, word
from store.records import Caveat, Layout, Role, Series

SCENARIOS = {
    "": "single_turn",
    "single_turn": "single_turn",
    "fixed-seq-len": "single_turn",
    "agentic-coding": "agentic_traces",
    "agentic_traces": "agentic_traces",
}

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CACHE_SIZE = 65536


@dataclass(frozen=True, slots=True)
class Deployment:
    """A series less its concurrency, what ran on it, the pool if the row names one, and doubts about the identity."""

    curve: Series
    image: str | None
    recipe: str | None
    pool: str | None
    caveats: tuple[Caveat, ...]
    members: dict[int, Series] = field(default_factory=dict, compare=False)
    """Series by concurrency, kept since a history names each of them once per run."""

    def at(self, conc: int) -> Series:
        """The series of the curve at one concurrency."""
        known = self.members.get(conc)
        if known is None:
            known = self.members[conc] = replace(self.curve, conc=conc)
        return known


_cache: dict[Hashable, Deployment] = {}


def deployment(row: Row, keys: Columns) -> Deployment:
    """The identity of a flat row; `Flaw` where a field is no value of its kind.

    Kept by the raw fields and their types: True, 1 and 1.0 are equal to Python, but True is no tensor parallelism.
    """
    raw = keys.identity(row)
    key = keys.identity, raw, tuple(map(type, raw))
    try:
        known = _cache.get(key)
    except TypeError:  # a list or an object where a word belongs: reading it names the field
        return _resolve(row)
    if known is None:
        known = _resolve(row)
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        _cache[key] = known
    return known


def _resolve(row: Row) -> Deployment:
    hardware = identity.hardware(word(row, "hw") or word(row, "hardware"))
    curve = _curve(row, hardware.gpu)
    return Deployment(
        curve=curve,
        image=images.canonical(word(row, "image"), _digest(row)),
        recipe=word(row, "recipe_fingerprint") or word(row, "recipe-fingerprint") or None,
        pool=hardware.pool,
        caveats=_unmapped(curve) + _gpu_counts(row, curve.layout),
    )


def _curve(row: Row, gpu: str) -> Series:
    engine = identity.framework(word(row, "framework"))
    scenario = _scenario(row)
    single = scenario == "single_turn"
    return Series(
        model=identity.model(word(row, "infmax_model_prefix") or word(row, "model_prefix"), word(row, "model")),
        gpu=gpu,
        framework=engine,
        precision=identity.precision(word(row, "precision")),
        spec=identity.speculation(_speculation(row)),
        scenario=scenario,
        isl=length(row, "isl") if single else None,
        osl=length(row, "osl") if single else None,
        offload=_offload(row),
        layout=_layout(row, engine, gpu),
    )


def _digest(row: Row) -> str | None:
    digest = word(row, "image_digest").lower()
    if digest and not _DIGEST.fullmatch(digest):
        raise Flaw("image_digest", "bad_value", shown(digest))
    return digest or None


def _scenario(row: Row) -> str:
    raw = word(row, "scenario_type") or word(row, "benchmark_type")
    return SCENARIOS.get(raw.lower(), identity.UNKNOWN + raw)


def _speculation(row: Row) -> str:
    """The GB200 rows of autumn 2025 said `mtp: on` where later ones name the method."""
    named = word(row, "spec_decoding") or word(row, "spec_method")
    if named or row.get("mtp") is None:
        return named
    return "mtp" if flag(row, "mtp") else "none"


def _offload(row: Row) -> bool:
    """`kv_offloading` and `offloading` name a place or "none", `offload_mode` says on or off."""
    place = word(row, "kv_offloading") or word(row, "offloading") or word(row, "offload_mode")
    return place.lower() not in {"", "none", "off", "false"}


def _layout(row: Row, engine: str, gpu: str) -> Layout:
    multinode, disagg = flag(row, "is_multinode"), flag(row, "disagg")
    if row.get("prefill_tp") is not None:
        decode = _role(row, "decode_", gpu, 0) if row.get("decode_tp") is not None else None
        prefill = _role(row, "prefill_", gpu, 1)
        return identity.layout(prefill, decode, multinode=multinode, disagg=disagg, engine=engine)
    engine_role = _role(row, "", gpu, 1)
    return _early_pools(row, disagg) or Layout(engine_role, None, multinode)


def _role(row: Row, side: str, gpu: str, least: int) -> Role:
    """One side of a row. Zero is legal on the decode side: an aggregated deployment has no decode pool."""
    elsewhere = word(row, f"{side}hw") if side else ""
    hardware = identity.hardware(elsewhere).gpu if elsewhere else gpu
    return Role(
        tp=integer(row, f"{side}tp", 1, least),
        ep=max(integer(row, f"{side}ep", 1, 0), 1),
        dp_attention=_dp_attention(row, side),
        workers=integer(row, f"{side}num_workers", 1, 0) if side else 1,
        pp=max(integer(row, f"{side}pp", 1, least), 1),
        dcp=max(integer(row, f"{side}dcp_size", 1, least), 1),
        pcp=max(integer(row, f"{side}pcp_size", 1, least), 1),
        hardware=hardware if hardware != gpu else None,
    )


def _dp_attention(row: Row, side: str) -> bool:
    """A flag, or in eval aggregates both sides in one text: `prefill=true,decode=false`."""
    name = f"{side}dp_attention"
    raw = row.get(name)
    if not isinstance(raw, str) or "=" not in raw:
        return flag(row, name)
    parts = dict(part.partition("=")[::2] for part in raw.lower().replace(" ", "").split(","))
    if parts.keys() - {"prefill", "decode"}:
        raise Flaw(name, "bad_value", raw[:80])
    return flag(parts, side.rstrip("_") or "prefill")


def _early_pools(row: Row, disagg: bool) -> Layout | None:
    """Disaggregated rows before 2025-12 carry one `tp`, the sum of all GPUs; their two pools are known by size only."""
    if not disagg:
        return None
    prefill, decode = integer(row, "num_prefill_gpu", 0, 0), integer(row, "num_decode_gpu", 0, 0)
    if not prefill or not decode:
        return None
    side = Role(prefill, integer(row, "ep", 1), _dp_attention(row, ""))
    return Layout(side, replace(side, tp=decode), flag(row, "is_multinode"))


def _unmapped(series: Series) -> tuple[Caveat, ...]:
    """Spellings that no table knows, each by name, and in one caveat the fields that the row does not have at all."""
    pairs = identity.unmapped(series)
    if series.scenario.startswith(identity.UNKNOWN):
        pairs = (*pairs, ("scenario", series.scenario[1:]))
    absent = " ".join(name for name, spelling in pairs if not spelling)
    said = tuple(Caveat.of("unmapped", field=name, spelling=spelling) for name, spelling in pairs if spelling)
    return (*said, Caveat.of("identity_incomplete", fields=absent)) if absent else said


def _gpu_counts(row: Row, layout: Layout) -> tuple[Caveat, ...]:
    """Counts that the row gives and its topology contradicts: published rows of EP configs say tp x ep GPUs."""
    expected = {
        "num_gpus": layout.gpus,
        "num_aggregate_gpu": 0 if layout.decode else layout.gpus,
        "num_prefill_gpu": layout.prefill.gpus,
        "num_decode_gpu": layout.decode.gpus if layout.decode else 0,
    }
    said = {name: integer(row, name, 0, 0) for name in expected}
    return tuple(
        Caveat.of("gpu_count_disagrees", field=name, said=said[name], topology=gpus)
        for name, gpus in expected.items()
        if said[name] and gpus and said[name] != gpus
    )
