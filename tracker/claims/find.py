"""Text to claims: passages, tokens, rules, binding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tracker.claims import tables
from tracker.claims.binder import Surroundings, bind
from tracker.claims.blocks import Passage, passages
from tracker.claims.records import Claim
from tracker.claims.rules import Sentence, drafts
from tracker.claims.tokens import Token, scan


def find_claims(text: str) -> tuple[Claim, ...]:
    """Every number that a text claims about performance or accuracy, in reading order; English, Chinese, Markdown.

    Versions, tags, hashes, run ids, dates, concurrencies, sizes, settings, thresholds, plans and targets are no claims.

    >>> [(c.kind.value, c.values, c.unit) for c in find_claims("8k1k peak ~2085 -> ~6003 tok/s/gpu (~2.9x)")]
    [('from_to', (2085.0, 6003.0), 'tok/s/GPU'), ('ratio', (2.9,), 'x')]
    >>> [(c.metric, c.direction.value, c.values) for c in find_claims("吞吐量下降约 38%")]
    [('tput_per_gpu', 'down', (38.0,))]
    """
    plain = text.translate(_BLANKS)
    return tuple(replace(claim, text=text[slice(*claim.span)]) for claim in _find(plain))


_BLANKS = dict.fromkeys(map(ord, "\u00a0\u2009\u202f\u3000"), " ")


def _find(text: str) -> Iterator[Claim]:
    above: dict[tuple[int, int], tuple[Token, ...]] = {}
    for passage in passages(text):
        for span in passage.above:
            if span not in above:
                above[span] = scan(text, *span)
        context = tuple(above[span] for span in passage.above)
        found = (
            _in_sentence(text, passage, context)
            if isinstance(passage, Passage)
            else tables.claims(text, passage, context)
        )
        yield from found


def _in_sentence(text: str, passage: Passage, context: tuple[tuple[Token, ...], ...]) -> tuple[Claim, ...]:
    tokens = scan(text, passage.start, passage.end)
    sentence = Sentence.of(text, tokens, (token.code for tokens_above in context for token in tokens_above))
    return bind(Surroundings(sentence, drafts(sentence), context))
