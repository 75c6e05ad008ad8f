"""The description of a changelog entry: what the findings of one config support, and nothing else.

Each item is one phrase, so that its Chinese twin carries the same numbers, runs and identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from reports import numbers
from reports.facts import badness, curve_text, is_eval
from reports.language import BILINGUAL, N_, Language, Phrase, listing, phrase
from reports.phrases import STRICT, amount, told, verdict_cell
from store.images import Sameness, compare
from store.records import Comparison, Finding, Scope, Verdict

SINGLE_NODE, SEVERAL_NODES = "tput_per_gpu", "median_tpot"
"""The metric that decides a curve, and so the one that an entry quotes."""

_SUPPORTED = frozenset(
    {Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.MIXED, Verdict.RECOVERY, Verdict.EQUIVALENT}
    | {Verdict.SUSPECTED, Verdict.INCONCLUSIVE, Verdict.NOISY}
)


def changed_configs(comparison: Comparison) -> tuple[str, ...]:
    """The configs whose image or recipe differs between the sides, in the order of the alphabet."""
    return tuple(sorted({one.config for one in comparison.findings if one.config and _differs(one)}))


def _differs(finding: Finding) -> bool:
    image = compare(finding.baseline_image, finding.candidate_image) is Sameness.CHANGED
    return image or any(caveat.code == "recipe_changed" for caveat in finding.caveats)


def items(comparison: Comparison, config: str) -> tuple[Phrase, ...]:
    """The items of a config: its image from A to B, each measured curve, each metric of its evals."""
    mine = [one for one in comparison.findings if one.config == config]
    curves = [one for one in mine if one.scope is Scope.CURVE and one.metric == _decisive(one)]
    measured = (one for one in sorted(curves, key=lambda one: one.key) if one.verdict in _SUPPORTED)
    return (
        *_images(mine),
        *(_curve(one, mine) for one in measured),
        *_scores(_evals(mine)),
    )


def _scores(evals: Sequence[Finding]) -> Iterator[Phrase]:
    """One sentence per eval; the flexible match is named where its task has the strict one beside it."""
    strict = {one.task for one in evals if one.metric == STRICT}
    yield from (told(one, beside_strict=one.task in strict) for one in evals)


def _evals(findings: Iterable[Finding]) -> list[Finding]:
    """The pooled evals of a config, or those of its jobs for a task and metric that were not pooled."""
    measured = [one for one in findings if is_eval(one) and one.effect is not None]
    pooled = {(one.task, one.metric) for one in measured if one.scope is Scope.CONFIG}
    chosen = [one for one in measured if one.scope is Scope.CONFIG or (one.task, one.metric) not in pooled]
    return sorted(chosen, key=lambda one: (one.key, one.metric))


def _decisive(finding: Finding) -> str:
    return SEVERAL_NODES if finding.series is not None and finding.series.layout.multinode else SINGLE_NODE


def _images(findings: Iterable[Finding]) -> Iterator[Phrase]:
    """Each image change once, as the rows say it."""
    pairs = {(one.baseline_image, one.candidate_image) for one in findings}
    for before, after in sorted((a, b) for a, b in pairs if a and b):
        if compare(before, after) is Sameness.CHANGED:
            yield phrase(N_("Update image from %(before)s to %(after)s"), before=before, after=after)


def _curve(curve: Finding, findings: Sequence[Finding]) -> Phrase:
    """A curve's verdict in words and numbers, with the points that it stands on; a mixed one names its worst point."""
    points = [one for one in findings if one.scope is Scope.POINT and one.metric == curve.metric]
    mine = [one for one in points if one.effect is not None and curve_text(one) == curve.key]
    effects = [one.effect for one in mine if one.effect is not None]
    concurrencies = [one.series.conc for one in mine if one.series and one.series.conc is not None]
    said = phrase(N_("%(verdict)s: %(sentence)s"), verdict=verdict_cell(curve), sentence=told(curve))
    if not effects or not concurrencies:
        return said
    how = numbers.kind(curve)
    item = phrase(
        N_(
            "%(told)s Points: %(number)s, concurrency %(low)s to %(high)s, median %(median)s,"
            " range %(least)s to %(most)s; baseline runs: %(runs)s."
        ),
        told=said,
        number=numbers.count(len(effects)),
        low=str(min(concurrencies)),
        high=str(max(concurrencies)),
        median=amount(median(effects), how),
        least=amount(min(effects), how),
        most=amount(max(effects), how),
        runs=listing([*map(str, curve.baseline_runs)]) or numbers.NOTHING,
    )
    if curve.verdict is not Verdict.MIXED:
        return item
    return phrase(N_("%(item)s Worst point: %(told)s"), item=item, told=told(max(mine, key=badness)))


def description(comparison: Comparison, config: str, lang: str) -> tuple[str, ...]:
    """The items as texts: English alone (`en`), or each English item followed by its Chinese twin (`both`)."""
    codes = BILINGUAL if lang == "both" else (lang,)
    return tuple(Language(code).say(item) for item in items(comparison, config) for code in codes)
