"""iterdev doctor."""

import os
from pathlib import Path

import click

from iterdev.app.doctor import Finding, findings
from iterdev.app.sessions import refuse_inside_attempt
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import print_document, print_text


@click.command(help="Check the machine, the repository and its sessions, and say how to fix problems")
@click.option("--fix", is_flag=True, help="Repair what a crash left, and set aside what cannot be repaired")
@arguments.as_json
def doctor(*, fix: bool, as_json: bool) -> ExitCode:
    if fix:
        refuse_inside_attempt("doctor --fix", os.environ, Path.cwd())
    found = list[Finding]()
    for finding in findings(Path.cwd(), fix=fix):
        found.append(finding)
        if not as_json:
            print_text(finding_lines(finding))
    healthy = not any(finding.problem for finding in found)
    if as_json:
        print_document({"healthy": healthy, "findings": found})
    return ExitCode.finished if healthy else ExitCode.unfinished


def finding_lines(finding: Finding) -> str:
    if finding.fixed:
        return f"fixed {finding.subject}: {finding.fixed}"
    if not finding.problem:
        return f"ok {finding.subject}"
    hint = f"\n   hint: {finding.hint}" if finding.hint else ""
    return f"!! {finding.subject}: {finding.problem}{hint}"
