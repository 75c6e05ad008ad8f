"""Numbers that a text claims about performance or accuracy, and whether the measurements bear them out."""

from tracker.claims.checker import check
from tracker.claims.find import find_claims
from tracker.claims.records import Answer, Binding, Bound, Checked, Claim, Direction, Kind, Measured, Reason

__all__ = [
    "Answer",
    "Binding",
    "Bound",
    "Checked",
    "Claim",
    "Direction",
    "Kind",
    "Measured",
    "Reason",
    "check",
    "find_claims",
]
