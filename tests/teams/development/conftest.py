"""Sessions with a folder, as the tests of the store have them."""

from tests.store.conftest import story

__all__ = ["story"]
