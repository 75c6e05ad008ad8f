"""Rows about who said what: the signer among the code owners, the reuse command, the text of the checklist."""

from __future__ import annotations

from collections.abc import Iterator

from store.checks import Check, Proof, State
from store.owners import CodeOwners, Rule
from store.records import Value
from store.signoffs import CHECKLIST, compare
from tracker.evidence.inputs import Inputs, not_known

SHOWN = 8
"""Facts of one kind that are named; the others are counted."""


def owner(inputs: Inputs) -> Check:
    """0: the signer owns every changed path that a specific line owns, and is an owner at all for the catch-all."""
    owners, signoff, changes = inputs.owners, inputs.signoff, inputs.changes
    if owners is None:
        return not_known(0, "owner", inputs.unknown("owners") or Proof.of("no_owners_file"))
    if changes is None:
        return not_known(0, "owner", inputs.unknown("files"))
    ruled = [(path, owners.of(path)) for change in changes for path in change.paths]
    if signoff is None:
        may = sorted({login for _, rule in ruled if rule and not rule.is_catch_all for login in rule.people})
        hint = Proof.of("may_sign", owners=", ".join(may)) if may else None
        return not_known(0, "owner", inputs.unknown("comments") or Proof.of("no_sign_off"), hint)
    signer = Proof.of("signer", signoff.url, login=signoff.login)
    owned = [(path, rule) for path, rule in ruled if rule and rule.owners]
    found = [*_specific(owned, owners, signoff.login.lower()), *_catch_all(owned, owners, signoff.login.lower())]
    bare = len(ruled) - len(owned)
    proof = [proof for _, proof in found] + ([Proof.of("unowned", count=bare)] if bare else [])
    return Check(0, "owner", _worst([state for state, _ in found]), (signer, *proof[:SHOWN], *_more(proof)))


def _specific(owned: list[tuple[str, Rule]], owners: CodeOwners, login: str) -> Iterator[tuple[State, Proof]]:
    """One fact a line of CODEOWNERS and state, however many paths it owns."""
    paths: dict[Rule, list[str]] = {}
    for path, rule in owned:
        if not rule.is_catch_all:
            paths.setdefault(rule, []).append(path)
    for rule, some in paths.items():
        said: dict[str, Value] = {"path": some[0], "count": len(some), "file": owners.path, "line": rule.line}
        named = " ".join(rule.owners)
        if login in rule.people:
            yield State.HOLDS, Proof.of("owned", **said)
        elif rule.others:
            yield State.NOT_KNOWN, Proof.of("owned_by_team", **said, owners=named)
        else:
            yield State.DOES_NOT_HOLD, Proof.of("owned_by_others", **said, owners=named)


def _catch_all(owned: list[tuple[str, Rule]], owners: CodeOwners, login: str) -> Iterator[tuple[State, Proof]]:
    """Any owner whom the file lists may sign for what nobody owns in particular."""
    rules = [rule for _, rule in owned if rule.is_catch_all]
    if not rules:
        return
    said: dict[str, Value] = {"count": len(rules), "file": owners.path, "line": rules[0].line}
    if login in owners.people:
        yield State.HOLDS, Proof.of("catch_all", **said)
    elif any(rule.others for rule in owners.rules):
        yield State.NOT_KNOWN, Proof.of("catch_all_team", **said)
    else:
        yield State.DOES_NOT_HOLD, Proof.of("catch_all_stranger", **said)


def _worst(states: list[State]) -> State:
    """What one path lacks no other makes good; without an owned path nobody need sign."""
    order = (State.DOES_NOT_HOLD, State.NOT_KNOWN, State.HOLDS)
    return next((state for state in order if state in states), State.NOT_APPLICABLE)


def _more(proof: list[Proof]) -> tuple[Proof, ...]:
    return (Proof.of("more", count=len(proof) - SHOWN),) if len(proof) > SHOWN else ()


def command(inputs: Inputs) -> Check:
    """4: somebody who may has asked for the reuse of the sweep, alone on a line."""
    said = inputs.command
    if inputs.unknown("comments"):
        return not_known(4, "command", inputs.unknown("comments"))
    if said is None:
        return Check(4, "command", State.DOES_NOT_HOLD, (Proof.of("no_command"),))
    values: dict[str, Value] = {"login": said.login, "association": said.association}
    if not said.authorised:
        return Check(4, "command", State.DOES_NOT_HOLD, (Proof.of("command_unauthorised", said.url, **values),))
    proof = [Proof.of("command", said.url, **values)]
    chosen = inputs.sweep.run.id if inputs.sweep else None
    if said.pinned is not None:
        same = said.pinned == chosen
        proof.append(Proof.of("command_pins" if same else "command_pins_other", run=str(said.pinned)))
        return Check(4, "command", State.HOLDS if same else State.FLAGGED, tuple(proof))
    return Check(4, "command", State.HOLDS, tuple(proof))


def checklist(inputs: Inputs) -> Check:
    """5: every item of the checklist on the base branch stands in the sign-off."""
    if inputs.checklist is None:
        return not_known(5, "checklist", inputs.unknown("checklist") or Proof.of("no_checklist", file=CHECKLIST))
    if inputs.signoff is None:
        return not_known(5, "checklist", inputs.unknown("comments") or Proof.of("no_sign_off"))
    found = compare(inputs.checklist, inputs.signoff.items)
    link = inputs.signoff.url
    wrong = [
        *(Proof.of("item_missing", link, item=text) for text in found.missing[:SHOWN]),
        *(Proof.of("item_reworded", link, item=text) for text in found.reworded[:SHOWN]),
    ]
    open_items = [Proof.of("items_unchecked", link, count=len(found.unchecked))] if found.unchecked else []
    there = len(inputs.checklist) - len(found.missing) - len(found.reworded)
    counted = Proof.of("items_same", link, count=there, total=len(inputs.checklist), file=CHECKLIST)
    state = State.DOES_NOT_HOLD if found.missing else State.FLAGGED if wrong or open_items else State.HOLDS
    return Check(5, "checklist", state, (counted, *wrong, *open_items))
