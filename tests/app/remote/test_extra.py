"""What is said where the extra is not installed."""

import pytest

from iterdev.app.remote.extra import require_extra
from iterdev.core.errors import HostError


def test_a_missing_package_is_an_error_with_the_command_that_installs_it() -> None:
    with pytest.raises(HostError, match='needs the package "no_such_package"') as caught:
        require_extra(("temporalio", "no_such_package"))

    assert caught.value.hint.endswith("-m pip install 'iterdev[temporal]'")


def test_with_the_extra_nothing_is_missing() -> None:
    require_extra()
