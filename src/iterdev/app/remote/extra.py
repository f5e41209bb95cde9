"""The extra `iterdev[temporal]`, which only sessions on several machines need."""

import sys
from importlib.util import find_spec

from iterdev.core.errors import HostError

PACKAGES = ("temporalio", "cryptography")


def require_extra(packages: tuple[str, ...] = PACKAGES) -> None:
    """Fails if a package that connects engines and hosts is not installed."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise HostError(
            f'More than one machine needs the package "{missing[0]}", which is not installed',
            hint=f"{sys.executable} -m pip install 'iterdev[temporal]'",
        )
