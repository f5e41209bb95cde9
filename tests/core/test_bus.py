from tests.core.conftest import Story
def test_x():
    assert Story()
