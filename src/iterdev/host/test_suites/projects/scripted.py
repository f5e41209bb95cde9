"""Finds the test suites of Ruby, PHP and Perl projects."""

import re
from collections.abc import Iterator

from iterdev.host.test_suites.projects.files import ProjectFiles, join
from iterdev.host.test_suites.suite import Suite, Works

DEPTH = 4
_RAKE_TEST = re.compile(r"Rake::TestTask|Minitest::TestTask|^[ \t]*task[ \t]+:?['\"]?test\b|Hoe\.spec", re.MULTILINE)


def find(files: ProjectFiles, works: Works) -> Iterator[Suite]:
    for folder, names in files.folders.items():
        if len(folder.split("/")) <= DEPTH:
            yield from _ruby(files, folder, names, works)
            yield from _php(files, folder, names)
            yield from _perl(files, folder, names)


def _ruby(files: ProjectFiles, folder: str, names: frozenset[str], works: Works) -> Iterator[Suite]:
    is_project = not names.isdisjoint({"Gemfile", "Rakefile", ".rspec"}) or any(n.endswith(".gemspec") for n in names)
    if not is_project:
        return
    bundle = "Gemfile" in names and works(("bundle", "check", f"--gemfile={join(folder, 'Gemfile')}"))
    prefix = "bundle exec " if bundle else ""
    below = [other for other in files.folders if other.startswith((join(folder, "spec"), join(folder, "test")))]
    specs = any(name.endswith("_spec.rb") for where in below for name in files.folders[where])
    if specs and (
        ".rspec" in names
        or "spec_helper.rb" in files.folders.get(join(folder, "spec"), ())
        or not _minitest_specs(files, below)
    ):
        yield Suite(command=f"{prefix}rspec", kind="rspec", folder=folder)
    tests = [
        join(w, n)
        for w in below
        for n in files.folders[w]
        if n.endswith("_test.rb") or (n.startswith("test_") and n.endswith(".rb"))
    ]
    if not tests and not _minitest_specs(files, below):
        return
    if _RAKE_TEST.search(files.text(folder, "Rakefile")):
        yield Suite(command=f"{prefix}rake test", kind="minitest", folder=folder)
    elif tests:
        loaded = "Dir['test/**/{test_*,*_test}.rb'].sort.each { |file| require File.expand_path(file) }"
        yield Suite(command=f'{prefix}ruby -Ilib -Itest -e "{loaded}"', kind="minitest", folder=folder)


def _minitest_specs(files: ProjectFiles, folders: list[str]) -> bool:
    helpers = (
        files.text(where, name) for where in folders for name in ("spec_helper.rb", "helper.rb", "test_helper.rb")
    )
    return any("minitest" in text for text in helpers)


def _php(files: ProjectFiles, folder: str, names: frozenset[str]) -> Iterator[Suite]:
    if not names.isdisjoint({"phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"}):
        local = (files.root / folder / "vendor/bin/phpunit").exists()
        yield Suite(command="vendor/bin/phpunit" if local else "phpunit", kind="phpunit", folder=folder)


def _perl(files: ProjectFiles, folder: str, names: frozenset[str]) -> Iterator[Suite]:
    has_tests = any(name.endswith(".t") for where in files.below(join(folder, "t")) for name in files.folders[where])
    if not has_tests or names.isdisjoint(
        {"Makefile.PL", "Build.PL", "dist.ini", "cpanfile", "META.json", "minil.toml"}
    ):
        return
    compiled = any(name.endswith(".xs") for where in files.below(folder) for name in files.folders[where])
    if not compiled:
        yield Suite(command="prove -lr t", kind="prove", folder=folder)
    elif "Makefile.PL" in names:
        yield Suite(command="perl Makefile.PL && make && prove -br t", kind="prove", folder=folder)
    elif "Build.PL" in names:
        yield Suite(command="perl Build.PL && ./Build && prove -br t", kind="prove", folder=folder)
