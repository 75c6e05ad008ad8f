"""Every target by its name. A new reader or grammar is an entry in `files` or `texts`."""

from collections.abc import Mapping
from types import MappingProxyType

from tests.fuzz import files, texts
from tests.fuzz.target import Target

TARGETS: Mapping[str, Target] = MappingProxyType({one.name: one for one in (*files.TARGETS, *texts.TARGETS)})
