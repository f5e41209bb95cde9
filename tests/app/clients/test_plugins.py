"""The plugins in the marketplace say what the program says."""

import json
from pathlib import Path

from iterdev.app.clients.plugins import plugin_files

MARKETPLACE = Path(__file__).parents[3] / "marketplace"


def test_the_files_of_the_marketplace_are_fresh() -> None:
    found = {
        str(path.relative_to(MARKETPLACE)): path.read_text(encoding="utf-8")
        for path in MARKETPLACE.rglob("*")
        if path.is_file()
    }

    assert found == plugin_files(), "run `make docs`"


def test_both_marketplaces_name_a_plugin_that_is_there() -> None:
    files = plugin_files()

    (claude,) = json.loads(files[".claude-plugin/marketplace.json"])["plugins"]
    (codex,) = json.loads(files[".agents/plugins/marketplace.json"])["plugins"]
    assert f"{claude['source'][2:]}/.claude-plugin/plugin.json" in files
    assert f"{codex['source']['path'][2:]}/.codex-plugin/plugin.json" in files
