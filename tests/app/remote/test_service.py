"""The systemd unit of a host."""

from pathlib import Path

from iterdev.app.remote.service import install, unit


def test_agents_end_with_the_worker_and_the_worker_starts_again() -> None:
    text = unit("/opt/iterdev", [], {}, is_root=True)

    assert 'ExecStart="/opt/iterdev" worker\n' in text
    for line in ("KillMode=control-group", "Restart=always", "RestartPreventExitStatus=0", "TimeoutStopSec=60"):
        assert f"{line}\n" in text


def test_the_service_finds_the_same_programs_and_gets_no_secret() -> None:
    text = unit("iterdev", ["claude=4"], {"PATH": "/opt/my bin:/bin", "ANTHROPIC_API_KEY": "secret"}, is_root=False)

    assert 'ExecStart="iterdev" worker --agent claude=4\n' in text
    assert 'Environment="PATH=/opt/my bin:/bin"\n' in text
    assert "secret" not in text


def test_what_systemd_would_expand_is_escaped() -> None:
    assert 'Environment="PATH=/50%%/\\"a\\\\b"\n' in unit("iterdev", [], {"PATH": '/50%/"a\\b'}, is_root=True)


def test_a_user_without_rights_gets_a_service_of_the_user(tmp_path: Path) -> None:
    made = install(["claude=2"], {"HOME": str(tmp_path), "PATH": "/bin"}, is_root=False)

    assert made.file == str(tmp_path / ".config" / "systemd" / "user" / "iterdev-worker.service")
    assert "WantedBy=default.target" in Path(made.file).read_text()
    assert made.start == (
        "loginctl enable-linger && systemctl --user daemon-reload"
        " && systemctl --user enable --now iterdev-worker.service"
    )
