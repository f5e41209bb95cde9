"""Where the commands start. Asking for the version must not load anything else."""

import sys


def main() -> int:
    return start(sys.argv[1:])


def team_main() -> int:
    """`team-iterdev`: the same as `iterdev run`, and the words that resume it."""
    return _start_team("run", sys.argv[1:])


def issue_main() -> int:
    """`team-issue`: the same as `iterdev resolve`, and the words that resume it."""
    return _start_team("resolve", sys.argv[1:])


def _start_team(command: str, words: list[str]) -> int:
    if len(words) == 1 and words[0] in {"check", "status", "resume", "continue"}:
        return start(words)
    return start([command, *words])


def start(arguments: list[str], executor: object = None) -> int:
    """Runs a command; an `executor` (see `app.resume`) runs the attempts of its session elsewhere."""
    if arguments in (["--version"], ["-V"]):
        from iterdev import __version__

        sys.stdout.write(f"iterdev {__version__}\n")
        return 0
    from iterdev.host.processes import signals

    try:
        signals.treat_as_interrupt()
        signals.ignore_at_exit()
        signals.repeat_ignored_interrupts()
        from iterdev.surfaces.cli.main import run

        code = run(arguments, executor)
    except KeyboardInterrupt:
        # While the modules are imported, or once everything is done.
        code = 130
    if "temporalio.bridge.runtime" in sys.modules:
        _end_at_once(code)
    return code


def _end_at_once(code: int) -> None:
    """Ends without taking the interpreter apart: threads of Temporal's client abort one of three that do.

    See https://github.com/temporalio/sdk-python/issues/300.
    """
    import atexit
    import os
    from contextlib import suppress

    atexit._run_exitfuncs()  # noqa: SLF001 - there is no other way to call them
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
