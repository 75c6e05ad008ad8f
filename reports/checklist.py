"""Which words, tables and JSON tell the checked rows of a sign-off. Chooses words only; every fact comes from outside.

The evidence sentence is English in every language: people paste it into a sign-off that a machine reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from reports import evidence
from reports.blocks import Block, Cell, Linked, Said, Several, Table, Title
from reports.language import N_, Language, Phrase, Value, listing, phrase, slots
from reports.numbers import NOTHING, count, score
from reports.phrases import task_name
from store.checks import Check, Proof, PullEvidence, State, Statement

SCHEMA_VERSION = 1

STATES: Mapping[State, str] = MappingProxyType(
    {
        State.HOLDS: N_("holds"),
        State.DOES_NOT_HOLD: N_("does not hold"),
        State.FLAGGED: N_("flagged"),
        State.NOT_KNOWN: N_("not known"),
        State.NOT_APPLICABLE: N_("not applicable"),
    }
)

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "owner": N_("The signer is a code owner of the changed files"),
        "sweep": N_("A sweep and its evals passed on a commit of the pull request"),
        "evals": N_("The scores pass, with the image of the config"),
        "recipe": N_("The recipe upstream is linked and merged"),
        "command": N_("The reuse was asked for by somebody who may"),
        "checklist": N_("The sign-off has the items of the current checklist"),
        "image": N_("Images of vLLM and SGLang come from their projects"),
        "order": N_("vLLM or SGLang stands before another engine"),
        "lineup": N_("No deprecated model or scenario"),
        "overrides": N_("Overrides of the model architecture"),
        "templates": N_("Speculative decoding and chat templates"),
        "patches": N_("Patches of the engine, and the waiver"),
        "acceptance": N_("The acceptance length of AgentX is the golden one"),
        "append_only": N_("An append-only entry only adds points"),
        "changelog_keys": N_("The changelog names the keys that changed"),
        "from_to": N_("What the changelog says of images is what changed"),
        "router": N_("The router's version is the one that is installed"),
        "container": N_("The container of each recipe is the image of its config"),
        "points": N_("Every promised point has arrived"),
        "topology": N_("Every layout has a baseline of the same key"),
        "attempt": N_("The run is a first attempt"),
        "changelog": N_("The changelog was only appended to"),
    }
)
"""Subjects of the rows."""

PROOFS: Mapping[str, str] = MappingProxyType(
    {
        "not_read": N_("Not read: %(part)s (%(reason)s)."),
        "more": N_("Further: %(count)s."),
        # people
        "no_owners_file": N_("There is no CODEOWNERS file on the base branch."),
        "no_sign_off": N_("No sign-off has been posted."),
        "may_sign": N_("Owners of the changed files who are named: %(owners)s."),
        "signer": N_("Signed by %(login)s."),
        "owned": N_("Owner of %(path)s by line %(line)s of %(file)s (changed paths: %(count)s)."),
        "owned_by_team": N_(
            "%(path)s belongs to %(owners)s by line %(line)s of %(file)s (changed paths: %(count)s);"
            " who is in a team is not known."
        ),
        "owned_by_others": N_(
            "%(path)s belongs to %(owners)s by line %(line)s of %(file)s (changed paths: %(count)s), not to the signer."
        ),
        "catch_all": N_(
            "Line %(line)s of %(file)s owns everything else (changed paths: %(count)s): any listed owner may sign."
        ),
        "catch_all_team": N_(
            "Line %(line)s of %(file)s owns everything else (changed paths: %(count)s);"
            " the signer is not listed by name, and who is in a team is not known."
        ),
        "catch_all_stranger": N_(
            "Line %(line)s of %(file)s owns everything else (changed paths: %(count)s);"
            " the signer is not listed at all."
        ),
        "unowned": N_("Changed paths without an owner: %(count)s."),
        "no_command": N_("No comment asks for the reuse of the sweep."),
        "command": N_("Asked for by %(login)s (%(association)s)."),
        "command_unauthorised": N_("Asked for by %(login)s (%(association)s), who may not."),
        "command_pins": N_("It names run %(run)s, which is looked at here."),
        "command_pins_other": N_("It names run %(run)s, which is not the run that is looked at here."),
        "no_checklist": N_("There is no %(file)s on the base branch, or it holds no template."),
        "items_same": N_("Items of %(file)s that stand there in the same words: %(count)s of %(total)s."),
        "item_missing": N_("Missing: %(item)s"),
        "item_reworded": N_("In other words: %(item)s"),
        "items_unchecked": N_("Items left unchecked: %(count)s; whether the details explain them is for a person."),
        # the run
        "no_run": N_("No sweep ran on any commit of the pull request (commits: %(commits)s)."),
        "exact_head": N_("Run %(run)s measured the head, %(commit)s."),
        "commit_in_pull": N_(
            "Run %(run)s measured commit %(commit)s of the pull request;"
            " the head is %(head)s (commits since: %(count)s)."
        ),
        "commit_gone": N_("Run %(run)s measured commit %(commit)s, which is not in the pull request any more."),
        "commit_unknown": N_("Run %(run)s measured commit %(commit)s; whether it is in the pull request is not known."),
        "called_exact": N_("The sign-off calls the run exact-head, which it is not."),
        "jobs_passed": N_("Throughput jobs passed: %(passed)s of %(total)s."),
        "evals_passed": N_("Eval jobs passed: %(passed)s of %(total)s."),
        "no_jobs": N_("No throughput job was executed (skipped jobs: %(skipped)s; a skipped job has passed nothing)."),
        "no_evals": N_("No eval job was executed (skipped jobs: %(skipped)s; a skipped job has passed nothing)."),
        "no_evals_due": N_("The configs of the run promise no eval."),
        "job_not_passed": N_("%(job)s: %(conclusion)s."),
        "named_not_taken": N_("Run %(run)s is named too; another one is looked at here."),
        "named_gone": N_("Run %(run)s is named; its commit is not in the pull request."),
        "run_not_shown": N_("Run %(run)s is named, and GitHub does not show it."),
        "no_rows": N_("There is no run whose results could be read."),
        "results_expired": N_("Results that GitHub has thrown away: %(count)s."),
        "no_scores": N_("The run holds no scores."),
        "scores": N_("%(task)s scores of %(count)s evals: %(low)s to %(high)s, threshold %(mark)s."),
        "score_below": N_("%(task)s of %(config)s at concurrency %(conc)s: %(score)s, below the threshold %(mark)s."),
        "score_invalid": N_("%(task)s of %(config)s at concurrency %(conc)s holds no finite score."),
        "evals_absent": N_("Promised evals without a score: %(count)s."),
        "few_scores": N_("Scores: %(scores)s, eval jobs: %(jobs)s; what was promised is not known."),
        "no_mark": N_("There is no threshold for %(task)s."),
        "image_untold": N_("The results do not say which image ran."),
        "config_untold": N_("No config of the pull request says which image should run."),
        "image_differs": N_("%(ran)s ran; the configs say %(config)s."),
        "image_same": N_("%(image)s ran, as the config says."),
        "image_moving": N_("%(image)s is a moving tag without a digest."),
        "nothing_promised": N_("What the run was asked to measure is not known."),
        "points_arrived": N_("Points that arrived: %(arrived)s of %(total)s."),
        "point_missing": N_("Not there: %(config)s %(sequence)s at concurrency %(conc)s."),
        "first_attempt": N_("Attempt %(attempt)s."),
        "further_attempt": N_("Attempt %(attempt)s: a part was run again."),
        # configs
        "no_configs_concerned": N_("No config is changed or asked for."),
        "no_single_node": N_("No single-node vLLM or SGLang config is concerned."),
        "no_recipe_link": N_("No recipe upstream is linked for %(keys)s."),
        "recipe_page": N_("A published page is linked; whether it covers the config is for a person."),
        "recipe_merged": N_("The linked pull request is merged; whether it covers the config is for a person."),
        "recipe_not_merged": N_("The linked pull request is not merged (%(state)s)."),
        "recipe_state_unknown": N_("The state of the linked pull request is not known."),
        "no_open_engine": N_("No vLLM or SGLang config is concerned."),
        "other_image": N_("%(key)s runs %(image)s."),
        "upstream_image": N_("%(image)s."),
        "no_new_engine": N_("No config of another engine is new."),
        "engine_precedes": N_("%(key)s is new; %(other)s stands on the base branch."),
        "engine_first": N_(
            "%(key)s is new, and no vLLM or SGLang config stands for its model and GPU; the order is not known."
        ),
        "no_lineup": N_("There is no MODELS.md on the base branch whose tables could be read."),
        "lineup_active": N_("%(model)s in %(scenario)s is active."),
        "lineup_deprecated": N_("%(model)s in %(scenario)s is deprecated: %(cell)s"),
        "lineup_bounded": N_("%(model)s in %(scenario)s stands under a condition: %(cell)s"),
        "lineup_unknown": N_("MODELS.md does not list %(model)s in %(scenario)s."),
        "no_append_only": N_("No new entry is append-only."),
        "append_only_mixed": N_("Append-only entries stand beside ordinary ones."),
        "key_unknown": N_("No config has the key %(key)s."),
        "append_to_nothing": N_("%(key)s is new: there is no curve to append to."),
        "append_other_image": N_("%(key)s changes its image from %(before)s to %(after)s."),
        "points_removed": N_("%(key)s loses or changes points: %(count)s (concurrency %(concs)s)."),
        "nothing_appended": N_("%(key)s has the same points as before: %(count)s."),
        "points_added": N_("%(key)s keeps its points (%(before)s) and adds %(count)s, with the same image."),
        "layouts_same": N_("Configs whose layouts are the same as before: %(count)s."),
        "new_config": N_("%(key)s is new."),
        "layout_renamed": N_("%(key)s %(sequence)s: %(before)s is now called %(after)s."),
        "layout_reshaped": N_("%(key)s %(sequence)s: %(before)s was reshaped to %(after)s."),
        "layout_new": N_("%(key)s %(sequence)s: %(after)s is new."),
        "layout_retired": N_("%(key)s %(sequence)s: %(before)s is asked for no more."),
        # entries
        "key_not_listed": N_("%(key)s changed (%(by)s) and no new entry names it."),
        "key_unchanged": N_("%(key)s is named, and neither its config nor a recipe of it changed."),
        "script_unassigned": N_("%(path)s changed; which keys use it is not known."),
        "keys_same": N_("Keys named: %(count)s (%(keys)s)."),
        "no_from_to": N_("No new entry says from what to what an image changed."),
        "moved_so": N_("From %(old)s to %(new)s: so did %(key)s."),
        "not_moved_so": N_("From %(old)s to %(new)s: no config of the entry did so; seen: %(seen)s."),
        "moved_elsewhere": N_("From %(old)s to %(new)s: what this is about is not known."),
        "no_router": N_("No config names a router."),
        "router_differs": N_("%(key)s names %(name)s %(named)s; %(installed)s is installed."),
        "router_same": N_("%(key)s names %(name)s %(named)s, which is installed."),
        "router_unknown": N_("%(key)s names %(name)s %(named)s; what is installed is not known."),
        "no_recipes": N_("No concerned config names a recipe that could be read."),
        "no_container": N_("None of the recipes names a container: %(count)s."),
        "containers_same": N_("Recipes whose container is the image: %(count)s of %(total)s."),
        "container_differs": N_("%(path)s of %(key)s runs %(container)s; the config says %(image)s."),
        "too_many_recipes": N_("The configs name %(count)s recipes; at most %(most)s are read."),
        "changelog_untouched": N_("The changelog is not changed."),
        "entries_added": N_("Entries added: %(count)s."),
        "history_changed": N_("Changed history: %(what)s"),
        "entry_flaw": N_("Flaw: %(what)s"),
        "placeholder": N_("A placeholder is left: %(what)s"),
        # texts
        "found_at": N_("%(place)s: %(text)s"),
        "nothing_found": N_("No pattern was found in what is added (files: %(files)s), which proves no absence."),
        "not_scanned": N_("GitHub shows no changes of %(path)s: not read."),
        "no_scripts": N_("No script, recipe or config is changed."),
        "no_speculation": N_("No concerned config decodes speculatively."),
        "speculative": N_(
            "Configs that decode speculatively: %(count)s (%(keys)s); how they are driven is for a person."
        ),
        "no_template": N_("Nothing that is added speaks of a chat template (files: %(files)s)."),
        "label": N_("The pull request has the label %(label)s."),
        "patch_file": N_("A patch file: %(path)s."),
        "waiver": N_("The waiver %(path)s is there; whether it covers the patch is for a person."),
        "no_waiver": N_("There is no %(path)s."),
        "no_agentic_speculation": N_("No concerned AgentX config decodes speculatively."),
        "no_length": N_("No acceptance length was found for %(key)s."),
        "no_golden": N_("%(key)s pins %(value)s; there is no golden table of its model."),
        "length_golden": N_("%(key)s pins %(value)s, as in %(table)s."),
        "length_not_golden": N_("%(key)s pins %(value)s, which does not stand in %(table)s."),
        # caveats
        "from_fork": N_("The head is in another repository: %(repository)s."),
        "run_behind": N_("Run %(run)s did not measure the head (commits since: %(count)s)."),
        "run_attempt": N_("Run %(run)s is in attempt %(attempt)s."),
        "run_concluded": N_("Run %(run)s concluded as %(conclusion)s."),
    }
)
"""Sentences by code of a proof."""

_MARKS: Mapping[State, str] = MappingProxyType(
    {
        State.HOLDS: "+",
        State.DOES_NOT_HOLD: "x",
        State.FLAGGED: "!",
        State.NOT_KNOWN: "?",
        State.NOT_APPLICABLE: "-",
    }
)
"""Signs of the states on a terminal, which may show no more than ASCII."""
_ENGLISH = Language("en")
_FRACTIONS = frozenset({"low", "high", "score", "mark"})


# ---------------------------------------------------------------- words


def sentence(proof: Proof) -> Value:
    """The words of one fact; a code without words is said by its name."""
    msgid = PROOFS.get(proof.code)
    told = dict(proof.values)
    if msgid is None:
        said = ", ".join(f"{name}={value}" for name, value in told.items())
        return f"{proof.code} ({said})" if said else proof.code
    return phrase(msgid, **{name: _value(name, told.get(name), told) for name in slots(msgid)})


def _value(name: str, value: Any, told: Mapping[str, Any]) -> Value:
    if value is None:
        return NOTHING
    if name in _FRACTIONS:
        return score(float(value), None if name == "mark" else told.get("mark"))
    if name == "task":
        return task_name(str(value))
    return str(value)


def statement(found: PullEvidence) -> list[Phrase]:
    """The evidence sentence of a sign-off, where it may be written."""
    one = found.statement
    return [] if one is None else [*_run(one), *evidence.lanes(one.jobs, one.eval_jobs), *_scores(one)]


def _pasted(said: Sequence[Phrase]) -> str:
    """The sentences in English, whatever the language around them."""
    return " ".join(map(_ENGLISH.say, said))


def _run(one: Statement) -> list[Phrase]:
    head = "Exact-head Run Sweep %(run)s (attempt %(attempt)s, commit %(commit)s) passed."
    other = "Run Sweep %(run)s (attempt %(attempt)s, commit %(commit)s, not the head) passed."
    said = {"run": str(one.run.id), "attempt": str(one.run.attempt), "commit": one.commit[:12]}
    return [phrase(head if one.exact else other, **said)]


def _scores(one: Statement) -> list[Phrase]:
    images: list[Value] = [*one.images]
    return [
        *(
            phrase(
                "%(task)s scores ranged from %(low)s to %(high)s against the %(mark)s threshold.",
                task=task_name(found.task),
                low=score(found.low, found.mark),
                high=score(found.high, found.mark),
                mark=score(found.mark),
            )
            for found in one.ranges
        ),
        phrase("Using %(images)s.", images=listing(images)),
    ]


# ---------------------------------------------------------------- blocks


def blocks(found: PullEvidence, form: str) -> list[Block]:
    """Caveats, counts and the sentence; then every row, as a table in Markdown and as paragraphs on a terminal."""
    title = phrase(N_("Evidence of pull request %(pull)s at %(head)s"), pull=str(found.pull), head=found.head[:12])
    parts: list[Block] = [Title(title, 1)]
    if found.caveats:
        parts += [Title(Phrase(N_("Know first"))), *(Said(_linked(one)) for one in found.caveats)]
    parts += [Said(_counts(found)), Title(Phrase(N_("Evidence sentence"))), *_sentence(found)]
    parts.append(Title(Phrase(N_("Checked rows"))))
    parts += [_table(found.checks)] if form == "markdown" else list(_paragraphs(found.checks))
    return parts


def _counts(found: PullEvidence) -> Value:
    parts: list[Value] = [
        phrase(N_("%(state)s: %(count)s"), state=Phrase(STATES[state]), count=count(found.count(state)))
        for state in State
        if found.count(state)
    ]
    return listing(parts)


def _sentence(found: PullEvidence) -> list[Block]:
    said = statement(found)
    if said:
        return [Said(_pasted(said))]
    names: list[Value] = [Phrase(NAMES[name]) for name in found.lacking]
    return [Said(phrase(N_("It may not be written; rows that are not shown to hold: %(rows)s."), rows=listing(names)))]


def _table(checks: Sequence[Check]) -> Table:
    heads = (N_("No."), N_("Row"), N_("State"), N_("Proof"))
    rows = tuple((_number(one), Phrase(NAMES[one.name]), Phrase(STATES[one.state]), _proof(one)) for one in checks)
    return Table(tuple(map(Phrase, heads)), rows, len(heads))


def _proof(check: Check) -> Cell:
    return Several(tuple(map(_linked, check.proof))) if check.proof else NOTHING


def _number(check: Check) -> str:
    return NOTHING if check.number is None else str(check.number)


def _linked(proof: Proof) -> Value | Linked:
    return Linked(sentence(proof), proof.link) if proof.link else sentence(proof)


def _paragraphs(checks: Sequence[Check]) -> Iterator[Block]:
    for one in checks:
        said = {"mark": _MARKS[one.state], "number": _number(one)}
        words = {"name": Phrase(NAMES[one.name]), "state": Phrase(STATES[one.state])}
        yield Said(phrase(N_("[%(mark)s] %(number)s %(name)s: %(state)s"), **said, **words))
        yield from (Said(_linked(fact), 1) for fact in one.proof)


# ---------------------------------------------------------------- json


def as_json(found: PullEvidence) -> str:
    """All rows as JSON; scores are fractions."""
    one = found.statement
    said = {
        "schema_version": SCHEMA_VERSION,
        "repository": found.repository,
        "pull_request": found.pull,
        "link": found.link,
        "head": found.head,
        "run": None if one is None else {"id": one.run.id, "attempt": one.run.attempt, "commit": one.commit},
        "evidence": _pasted(statement(found)) or None,
        "lacking": list(found.lacking),
        "caveats": [caveat.as_dict() for caveat in found.caveats],
        "counts": {state.value: found.count(state) for state in State},
        "checks": [_row(check) for check in found.checks],
    }
    return json.dumps(said, ensure_ascii=False, indent=2, allow_nan=False)


def _row(check: Check) -> dict[str, Any]:
    proof = [one.as_dict() for one in check.proof]
    name = {"number": check.number, "name": check.name, "subject": _ENGLISH.text(NAMES[check.name])}
    return {**name, "state": check.state.value, "proof": proof}
