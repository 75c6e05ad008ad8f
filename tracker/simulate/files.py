"""The shapes of the artifacts: rows, environments, scores and run objects as InferenceX's workflows write them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from store.records import Role
from tracker.simulate.bench import power
from tracker.simulate.fleet import Config, Job
from tracker.simulate.script import Bump

Json: TypeAlias = dict[str, Any]

REPOSITORY = "example-org/InferenceX"
QUESTIONS = 1319
"""Test questions of GSM8K."""

_LENGTHS = {1024: "1k", 8192: "8k"}


def write(path: Path, content: object) -> None:
    """One artifact file: indented as the collectors write it, NaN as the word `NaN`, as Python writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8", newline="\n")


def digest(*words: object, size: int = 64) -> str:
    """A reproducible hexadecimal word, for fingerprints and commits."""
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()[:size]


def image(config: Config, tag: str) -> str:
    return f"{config.repository}:{tag}"


def fingerprint(job: Job, tag: str, recipe: str) -> str:
    """Hash of what a generated matrix row holds less its concurrency: image, deployment, workload and settings."""
    return digest(job.config.key, image(job.config, tag), job.curve, recipe)


def row(job: Job, metrics: Mapping[str, float], tag: str, recipe: str) -> Json:
    """A row of `agg_bmk.json`."""
    config = job.config
    return {
        "hw": config.hw,
        "conc": job.conc,
        "image": image(config, tag),
        "model": config.model,
        "infmax_model_prefix": config.prefix,
        "framework": config.framework,
        "precision": config.precision,
        "spec_decoding": config.spec,
        "disagg": config.multinode,
        "recipe_fingerprint": fingerprint(job, tag, recipe),
        "isl": job.isl,
        "osl": job.osl,
        "is_multinode": config.multinode,
        **(_split_block(job) if config.multinode else _single_block(job.topology.prefill)),
        **metrics,
        **power(job, metrics),
    }


def _single_block(role: Role) -> Json:
    return {
        **_parallelism(role),
        "dp_attention": str(role.dp_attention).lower(),
    }


def _parallelism(role: Role) -> Json:
    return {"tp": role.tp, "pp": role.pp, "dcp_size": role.dcp, "pcp_size": role.pcp, "ep": role.ep}


def _role_block(side: str, role: Role, dp_attention: object) -> Json:
    block = {**_parallelism(role), "dp_attention": dp_attention, "num_workers": role.workers}
    return {f"{side}_{key}": value for key, value in block.items()}


def _split_block(job: Job) -> Json:
    prefill, decode = job.topology.prefill, job.topology.decode or job.topology.prefill
    return {
        **_role_block("prefill", prefill, str(prefill.dp_attention).lower()),
        **_role_block("decode", decode, str(decode.dp_attention).lower()),
        "num_prefill_gpu": prefill.gpus,
        "num_decode_gpu": decode.gpus,
        "router": {"name": "dynamo-router", "version": "0.8.1"},
        "kv_p2p_transfer": "nixl",
    }


def experiment(job: Job) -> str:
    """`<model prefix>_<sequence>`, the first word of every artifact name."""
    return f"{job.config.prefix}_{_LENGTHS[job.isl]}{_LENGTHS[job.osl]}"


def _deployment(side: str, role: Role, *, workers: bool) -> str:
    sizes = f"tp{role.tp}-pp{role.pp}-dcp{role.dcp}-pcp{role.pcp}-ep{role.ep}"
    return f"{side}{sizes}-dp{'a' * (not workers)}{str(role.dp_attention).lower()}{f'-nw{role.workers}' * workers}"


def result_name(job: Job, tag: str, recipe: str, concs: Sequence[int]) -> str:
    """RESULT_FILENAME of a job; a job on several nodes measures several concurrencies."""
    config, topology = job.config, job.topology
    sides = _deployment("", topology.prefill, workers=False)
    if topology.decode is not None:
        roles = (("prefill-", topology.prefill), ("decode-", topology.decode))
        sides = "_".join(_deployment(side, role, workers=True) for side, role in roles)
    tail = f"disagg-{str(config.multinode).lower()}_spec-{config.spec}_conc{'x'.join(map(str, concs))}_{config.runner}"
    head = f"{experiment(job)}_{config.precision}_{config.framework}_{sides}_{tail}"
    return f"{head}_recipe-{fingerprint(job, tag, recipe)[:16]}"


def point_file(job: Job, tag: str, recipe: str) -> str:
    """Path of a job's own aggregate below the run's folder: one folder per job, one file per concurrency."""
    concs = job.topology.concs if job.config.multinode else (job.conc,)
    name = result_name(job, tag, recipe, concs)
    prefill, decode = job.topology.prefill, job.topology.decode
    part = f"_conc{job.conc}_gpus_{job.layout.gpus}_ctx_{prefill.gpus}_gen_{decode.gpus}" if decode else ""
    return f"bmk_{name}/agg_{name}{part}.json"


def meta_env(job: Job, tag: str, recipe: str) -> Json:
    """`meta_env.json` of an eval job: real booleans, lengths as text, one engine written into both roles."""
    config, prefill = job.config, job.topology.prefill
    decode = job.topology.decode or prefill
    return {
        "is_multinode": config.multinode,
        "framework": config.framework,
        "precision": config.precision,
        "spec_decoding": config.spec,
        "recipe_fingerprint": fingerprint(job, tag, recipe),
        **_parallelism(prefill),
        "conc": job.conc,
        "dp_attention": prefill.dp_attention,
        **_role_block("prefill", prefill, prefill.dp_attention),
        **_role_block("decode", decode, decode.dp_attention),
        "model": config.model,
        "infmax_model_prefix": config.prefix,
        "hw": config.hw,
        "isl": str(job.isl),
        "osl": str(job.osl),
    }


def standard_error(share: float) -> float:
    """As lm-eval reports it: `sqrt(p (1 - p) / (n - 1))`."""
    return math.sqrt(share * (1 - share) / (QUESTIONS - 1))


def lm_eval(job: Job, flexible: float, strict: float) -> Json:
    """`results_<ISO>.json` of lm-eval-harness."""
    return {
        "results": {
            "gsm8k": {
                "alias": "gsm8k",
                "exact_match,strict-match": strict,
                "exact_match_stderr,strict-match": standard_error(strict),
                "exact_match,flexible-extract": flexible,
                "exact_match_stderr,flexible-extract": standard_error(flexible),
            }
        },
        "configs": {"gsm8k": {"metric_list": [{"metric": "exact_match"}], "num_fewshot": 5}},
        "n-samples": {"gsm8k": {"original": QUESTIONS, "effective": QUESTIONS}},
        "lm_eval_version": "0.4.9",
        "model_name": job.config.model,
    }


def agg_eval(job: Job, flexible: float, strict: float, source: str) -> Json:
    """A row of `agg_eval_all.json`: hardware in capitals, booleans as words, no image."""
    config, prefill = job.config, job.topology.prefill
    decode = job.topology.decode or prefill
    sides = (("prefill", prefill), ("decode", decode))
    return {
        "is_multinode": config.multinode,
        "model_prefix": config.prefix,
        "model": config.model,
        "hw": config.hw.upper(),
        "framework": config.framework,
        "precision": config.precision,
        "spec_decoding": config.spec,
        "isl": job.isl,
        "osl": job.osl,
        "tp": prefill.tp,
        "ep": prefill.ep,
        **{f"{side}_tp": role.tp for side, role in sides},
        **{f"{side}_ep": role.ep for side, role in sides},
        **{f"{side}_num_workers": role.workers for side, role in sides},
        "conc": job.conc,
        "dp_attention": str(prefill.dp_attention).lower(),
        **{f"{side}_dp_attention": str(role.dp_attention).lower() for side, role in sides},
        "task": "gsm8k",
        "em_strict": strict,
        "em_strict_se": standard_error(strict),
        "em_flexible": flexible,
        "em_flexible_se": standard_error(flexible),
        "n_eff": QUESTIONS,
        "source": source,
        "score": strict,
        "score_name": "em_strict",
        "score_se": standard_error(strict),
    }


def changelog(bumps: Iterable[Bump], base_ref: str, head_ref: str) -> Json:
    """`changelog_metadata.json`: one entry per bump."""
    entries = [
        {
            "config-keys": [bump.config],
            "description": [bump.description],
            "pr-link": f"https://github.com/{REPOSITORY}/pull/{bump.pull_request}",
            "evals-only": False,
            "all-evals": False,
            "append-only": False,
        }
        for bump in bumps
    ]
    return {"base_ref": base_ref, "head_ref": head_ref, "entries": entries}


def run_stats(ran: Iterable[tuple[Job, bool]]) -> Json:
    """`run_stats.json`: jobs by machines, from (job, did it succeed)."""
    stats: dict[str, dict[str, int]] = {}
    for job, succeeded in ran:
        count = stats.setdefault(job.config.cluster, {"n_success": 0, "total": 0})
        count["n_success"] += succeeded
        count["total"] += 1
    return dict(sorted(stats.items()))


def stamp(when: datetime) -> str:
    """A time as GitHub writes it."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
