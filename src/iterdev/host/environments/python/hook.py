"""Records which files a project's modules were loaded from. A copy of this file is in every virtual environment.

An interpreter imports it at its start if the variable ITERDEV_LOADED_MODULES names a file. It uses only the standard
library, works in every Python 3, and never disturbs the program.
"""

import atexit
import os
import sys

FILE = "ITERDEV_LOADED_MODULES"
NAMES = "ITERDEV_PROJECT_MODULES"


def record():  # type: ignore[no-untyped-def]  # noqa: ANN201
    try:
        names = set(os.environ.get(NAMES, "").split(","))
        lines = set()
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) if name.partition(".")[0] in names else None
            if isinstance(file, str):
                lines.add("%s\t%s\n" % (name, os.path.realpath(file)))  # noqa: UP031
        if lines:
            # Several processes append to the same file, each with one write.
            target = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(target, "".join(sorted(lines)).encode("utf-8", "surrogateescape"))
            os.close(target)
    except Exception:  # noqa: BLE001, S110 - the program must end as it would without this
        pass


if FILE in os.environ:
    atexit.register(record)
