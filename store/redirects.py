"""Where a download may be sent on to: https, no credentials in the address, and no host of the caller's own network.

The API answers with the address of its storage. A name that resolves to an inner address is not seen here: names are
not looked up, since what they resolve to may change before the request (docs/threats.md).
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urljoin, urlsplit

_INNER = (".localhost", ".internal", ".local")
_NUMERIC = re.compile(r"0x[0-9a-f]*|[0-9]+")
"""`127.1`, `0x7f000001` and `2130706433` are addresses to a resolver; no public name ends in such a word."""


class LeadsAstray(Exception):
    """A redirect that is not followed."""


def target(address: str, location: str) -> str:
    """The address that a redirect leads to. Raises LeadsAstray, whose text repeats nothing of the address.

    An API on an inner host, as a GitHub server of one's own, may have its storage there too.

    >>> target("https://api.github.com/zip", "https://blob.example.net/a?sig=1")
    'https://blob.example.net/a?sig=1'
    """
    try:
        found = urljoin(address, location)
        here, there = urlsplit(address), urlsplit(found)
        _ = there.port
    except ValueError:
        raise LeadsAstray("a redirect that leads nowhere") from None
    if not location or not there.hostname or there.scheme not in {"https", here.scheme} & {"https", "http"}:
        raise LeadsAstray("a redirect that leads nowhere, or away from https")
    if there.username is not None or there.password is not None:
        raise LeadsAstray("a redirect with credentials in its address")
    if is_inner(there.hostname) and not is_inner(here.hostname or ""):
        raise LeadsAstray("a redirect into this network")
    return found


def is_inner(host: str) -> bool:
    """True of a host that only this machine or its network has, as far as its name says.

    >>> [is_inner(one) for one in ("169.254.169.254", "localhost", "::1", "0x7f000001", "blob.example.net")]
    [True, True, True, True, False]
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(_INNER):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return _NUMERIC.fullmatch(name.rpartition(".")[2]) is not None
    inside = getattr(address, "ipv4_mapped", None) or address
    return not inside.is_global
