import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec import Struct

from iterdev.core.formatting import MASK
from iterdev.core.types import Severity
from iterdev.host import known_secrets
from iterdev.host.secrets import TOO_DEEP, Redactor, allowed_environment, new_token, redactor

PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/AQAB\nsecret==\n-----END RSA PRIVATE KEY-----"
SHAPED = {
    "anthropic": "sk-ant-api03-abcDEF_0123456789-xyz",
    "openai": "sk-proj-abcdefghijklmnopqrstuvwx",
    "plain": "sk-abcdefghijklmnopqrstuvwxyz",
    "github": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github app": "ghs_abcdefghijklmnopqrstuvwxyz0123456789",
    "github fine": "github_pat_" + "11ABCDEFG0" * 8,
    "gitlab": "glpat-abcdefghij0123456789",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA-bcdefghijklmnopqrstuvwxyz012345_"[:35],
    "slack": "xoxb-123456789012-abcdef",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.SflKxwRJSMeKKF2QT4fw",
    "stripe": "sk_live_51H8abcdefghijklmnop",
    "npm": "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi": "pypi-" + "AgEIcHlwaS5vcmcCJ" * 4,
    "hugging face": "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "token of the tools": new_token(),
    "pem": PEM,
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----",
}
HARMLESS = [
    "the task-force-with-a-very-long-name-indeed went on",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "AKIA is a prefix, sk- is another, and ghp_ too",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "eyJ0 is how JSON begins in base64",
    "def test_risk_assessment_of_something_long(): ...",
]
HOSTILE = {
    "begins": "-----BEGIN PRIVATE KEY-----",
    "begins with text": "-----BEGIN PRIVATE KEY-----\nMIIEow",
    "halves of tokens": "-eyJaaaaaaaaaaaa",
    "pairs of halves": "eyJaaaaaaaaaaaa.",
    "halves of tokens on escaped lines": "\\neyJaaaaaaaaaaaa.",
    "lines without words": '"0"\n',
    "dashes": "-",
    "letters": "A",
    "keys": "sk-",
    "capitals": "-----BEGIN AAAAAAAAAAAAAAAAAAAAAAA",
    "nearly known": "hunter",
    "lines of keys": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
    "ends with text": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC -----END PRIVATE KEY-----",
    "words of keys": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC ",
    "beginnings of URLs": "://a:@",
    "users of URLs": "://a1",
    "beginnings of placeholders": "://:<@",
    "beginnings of other placeholders": "://:{@",
    "headers": "authorization: basic ",
    "escape sequences": "\x1b]",
}
REDACT = """
import sys
from iterdev.host.secrets import LineRedactor, Redactor
piece = sys.argv[1]
text = piece * (1_000_000 // len(piece))
redact = Redactor(["hunter2-and-more", "another-value"])
lines = LineRedactor(redact)
begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
print(sum(map(len, map(redact, (text, text + end, begin + text)))) + len(lines.feed(text) + lines.flush()))
"""
KNOW = """
import sys
from iterdev.host.secrets import redactor
piece = sys.argv[1]
redact = redactor({"A_TOKEN": piece * (1_000_000 // len(piece))})
print(len(redact("some text")))
"""


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR", "CI", "XDG_CACHE_HOME", "https_proxy", "HTTPS_PROXY"],
)
def test_what_every_program_needs_is_passed_on(name: str) -> None:
    assert allowed_environment({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DATABASE_URL",
        "SSH_AUTH_SOCK",
        "MY_PATH",
        "PATHS",
        "path",
        "LD_PRELOAD",
        "PYTHONPATH",
        "GIT_DIR",
        "ITERDEV_HOME",
        "",
    ],
)
def test_everything_else_stays_with_the_user(name: str) -> None:
    assert allowed_environment({name: "value"}) == {}


def test_what_the_configuration_names_is_passed_on_as_well() -> None:
    environment = {"ANTHROPIC_API_KEY": "a", "OTHER_KEY": "b"}

    assert allowed_environment(environment, ["ANTHROPIC_API_KEY", "MISSING"]) == {"ANTHROPIC_API_KEY": "a"}


@pytest.mark.parametrize(
    "name", ["API_KEY", "github_token", "DB_PASSWORD", "CLIENT_SECRET", "AWS_CREDENTIALS", "BASIC_AUTH", "SENTRY_DSN"]
)
def test_the_value_of_a_variable_that_sounds_secret_is_removed(name: str) -> None:
    redact = redactor({name: "correct horse"})

    assert redact("it is correct horse, and correct horse again") == f"it is {MASK}, and {MASK} again"


@pytest.mark.parametrize("name", ["EDITOR", "GIT_AUTHOR_NAME", "HOME", "LANG"])
def test_the_value_of_another_variable_stays(name: str) -> None:
    assert redactor({name: "correct horse"})("correct horse") == "correct horse"


def test_short_values_stay() -> None:
    redact = redactor({"API_KEY": "true1", "TOKEN": "", "SECRET": "abcdef"})

    assert redact("it is true1 that abcdef is known") == f"it is true1 that {MASK} is known"


def test_the_longer_of_two_values_that_begin_alike_is_removed_whole() -> None:
    redact = redactor({"A_KEY": "hunter2", "B_KEY": "hunter2-and-more"})

    assert redact("hunter2-and-more hunter2") == f"{MASK} {MASK}"


def test_a_value_is_taken_literally() -> None:
    redact = redactor({"A_KEY": "a.c+e(f", "B_KEY": "[x-z]*"})

    assert redact("a.c+e(f abcceef [x-z]* xyz") == f"{MASK} abcceef {MASK} xyz"


@pytest.mark.parametrize("value", ['pass"word\\1', "line one\nline two", "Schlüssel-中", "tab\tand / slash"])
@pytest.mark.parametrize("plain", [True, False])
def test_a_value_is_removed_from_json_as_well(value: str, plain: object) -> None:
    line = json.dumps({"text": f"it is {value}!"}, ensure_ascii=bool(plain))

    redacted = redactor({"MY_SECRET": value})(line)

    assert json.loads(redacted) == {"text": f"it is {MASK}!"}


def test_the_values_of_env_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# API_KEY=in-a-comment\n"
        "PLAIN=visible-value\n"
        "API_KEY=first-value\n"
        "export DB_PASSWORD='second value'\n"
        '  OTHER_SECRET = "third # value"  # why\n'
        "FOURTH_TOKEN=fourth-value # a comment\n"
        "FIFTH_TOKEN=fifth=with=signs\n"
        "not a line\n"
    )
    redact = redactor({}, [tmp_path / ".env", tmp_path / "missing", tmp_path])

    for value in ("first-value", "second value", "third # value", "fourth-value", "fifth=with=signs"):
        assert redact(f"<{value}>") == f"<{MASK}>", value
    assert redact("visible-value in-a-comment a comment") == "visible-value in-a-comment a comment"


@pytest.mark.parametrize("secret", SHAPED.values(), ids=SHAPED)
def test_what_is_shaped_like_a_secret_is_removed(secret: str) -> None:
    redact = Redactor([])

    assert redact(f"key={secret}\nnext") == f"key={MASK}\nnext"
    assert redact(f'"{secret}"') == f'"{MASK}"'


@pytest.mark.parametrize("secret", SHAPED.values(), ids=SHAPED)
def test_what_is_shaped_like_a_secret_is_removed_from_json_strings(secret: str) -> None:
    line = json.dumps({"a": f"before {secret} after", "b": [secret], "c": f"line\n{secret}\tx"})

    assert json.loads(Redactor([])(line)) == {"a": f"before {MASK} after", "b": [MASK], "c": f"line\n{MASK}\tx"}


def test_two_keys_and_what_is_between_them_are_separate() -> None:
    assert Redactor([])(f"{PEM}\nbetween\n{PEM}") == f"{MASK}\nbetween\n{MASK}"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert Redactor([])(text) == text


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_of_anything_is_redacted_before_long(piece: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REDACT, piece], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stderr == ""
    assert int(done.stdout) > 0


@pytest.mark.parametrize("piece", ["://:", "://a:b@", "password=", "A1b2C3d4\n", "A1b2\\n", "=\U00010348"])
def test_a_megabyte_of_anything_can_be_a_secret(piece: str) -> None:
    done = subprocess.run([sys.executable, "-c", KNOW, piece], capture_output=True, text=True, timeout=60, check=False)

    assert done.stderr == ""
    assert int(done.stdout) > 0


def test_a_long_secret_takes_little_more_memory_than_its_forms() -> None:
    value = "\U00010348=\\" * 10_000
    escaped, quoted = json.dumps(value), quote(value)
    tracemalloc.start()

    redact = Redactor([value])

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * (len(escaped) + len(quoted))
    assert [redact(f"<{form}>") for form in (value, escaped, quoted)] == [f"<{MASK}>", f'<"{MASK}">', f"<{MASK}>"]


def test_a_part_of_the_mask_is_no_secret() -> None:
    redact = Redactor(["[secret", "secret]", "hunter2-and-more"])

    assert redact("hunter2-and-more") == MASK


def test_what_is_nested_too_deeply_is_left_out() -> None:
    document: object = "end"
    for _ in range(2_000):
        document = [document]

    clean = Redactor([]).everywhere({"deep": document, "flat": ["x"]})

    assert isinstance(clean, dict)
    assert clean["flat"] == ["x"]
    assert TOO_DEEP in json.dumps(clean)
    assert json.dumps(clean).count("[[") < 100


def test_what_utf_8_cannot_encode_becomes_an_escape() -> None:
    redact = Redactor([])

    assert redact("a\udcffb\ud800 größe") == "a\\udcffb\\ud800 größe"
    assert redact.everywhere({"a\udcff": ["\ud800"]}) == {"a\\udcff": ["\\ud800"]}


def test_a_secret_that_is_the_name_of_a_field_is_removed() -> None:
    redact = Redactor(["k7Qw9zX2mN4vB8cL1pR5", "status"])

    clean = redact.everywhere(
        {"k7Qw9zX2mN4vB8cL1pR5": 1, SHAPED["github"]: 2, "status": "status"}, frozenset({"status"})
    )

    # A name that a schema knows has to stay, and no value is lost.
    assert clean == {MASK: 1, f"{MASK}-2": 2, "status": MASK}


class Note(Struct, frozen=True):
    text: str
    commit: str = ""
    kind: Severity = Severity.high
    data: dict[str, object] = {}
    others: tuple["Note", ...] = ()


def test_a_secret_is_removed_from_every_field_and_key_of_a_struct() -> None:
    redact = Redactor(["hunter2!", "critical"])
    inner = Note("hunter2! too", kind=Severity.critical)

    clean = redact.struct(
        Note("hunter2!", "hunter2!", data={"hunter2!": ["hunter2!"]}, others=(inner,)), only=frozenset({"text", "data"})
    )

    assert clean == Note(MASK, "hunter2!", data={MASK: [MASK]}, others=(Note(f"{MASK} too", kind=Severity.critical),))


@pytest.mark.parametrize("text", ["plain", 'two\nlines "quoted" \\n', "größe"])
def test_a_struct_without_secrets_stays_as_it_is(text: str) -> None:
    note = Note(text, data={"key": [text]})

    assert Redactor(["hunter2!"]).struct(note) is note


def test_control_codes_are_removed_from_a_struct_as_well() -> None:
    assert Redactor([]).struct(Note("a\x1b[31mb\u202e")) == Note("ab")


@pytest.mark.parametrize("secret", SHAPED.values(), ids=SHAPED)
def test_a_secret_of_which_a_program_colours_a_part_is_removed(secret: str) -> None:
    coloured = f"{secret[:9]}\x1b[01;31m\x1b[K{secret[9:15]}\x1b[m\x1b[K{secret[15:]}"

    assert Redactor([])(f"it is {coloured}") == f"it is {MASK}"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgres://app:p4ss@db:5432/x", f"postgres://app:{MASK}@db:5432/x"),
        ('"redis://:p4ss@cache"', f'"redis://:{MASK}@cache"'),
        ("https://ci:p@ss@host/a and http://b", f"https://ci:{MASK}@host/a and http://b"),
        ("https://oauth2token0123456789@host/a.git", f"https://{MASK}@host/a.git"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MASK}"),
        ('{"authorization": "Bearer abc.def-123"}', f'{{"authorization": "Bearer {MASK}"}}'),
    ],
)
def test_a_password_of_a_url_or_a_header_is_removed(text: str, clean: str) -> None:
    assert Redactor([])(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8080/@scope/a.js",
        "http://localhost:8080?to=a@b",
        "git@github.com:org/repo",
        "ssh://git@host:22/path",
        "https://user@host/path",
        "postgres://app:${DB_PASSWORD}@db and <ftp://user:<password>@host>",
        "npm install @scope/package@1.0.0 from https://registry.example/",
        "the authorization: bearer is missing",
    ],
)
def test_a_url_without_a_password_stays(text: str) -> None:
    assert Redactor([])(text) == text


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("DATABASE_URL", "postgres://app:s3cr%2Ft-word@db/x", "s3cr%2Ft-word"),
        ("DATABASE_URL", "postgres://app:s3cr%2Ft-word@db/x", "s3cr/t-word"),
        ("https_proxy", "http://me:s3cr/t@word@proxy:3128", "s3cr/t@word"),
        ("ConnectionStrings__Main", "Server=db;User Id=app;Password=s3cret-word;", "s3cret-word"),
        ("JDBC", "jdbc:postgresql://db/x?user=app&password=s3cret-word", "s3cret-word"),
        ("DB_PWD", "s3cret-word", "s3cret-word"),
        ("SLACK_WEBHOOK", "https://hooks.example.com/T0/B0/x", "https://hooks.example.com/T0/B0/x"),
        ("SERVER_KEY", "MIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC", "hkiG9w0BAQEFAASC"),
        ("SERVER_KEY", "MIIEvQIBADANBgkq\\nhkiG9w0BAQEFAASC", "MIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC"),
        ("API_KEY", "a b&c=d/e", "a%20b%26c%3Dd%2Fe"),
    ],
)
def test_a_secret_inside_of_a_variable_is_removed_where_it_stands_alone(name: str, value: str, secret: str) -> None:
    assert redactor({name: value})(f"<{secret}>") == f"<{MASK}>"


def test_example_passwords_do_not_blank_out_ordinary_words() -> None:
    examples = {"POSTGRES_PASSWORD": "postgres", "SECRET_KEY": "changeme", "OPENAI_API_KEY": "dummy-key"}
    redact = redactor({**examples, "OLDPWD": "/home/me/project"})

    text = "postgres in /home/me/project says changeme to dummy-key"
    assert redact(text) == text


def test_a_value_of_an_env_file_that_looks_random_is_removed_whatever_its_name(tmp_path: Path) -> None:
    harmless = "my-company-prod-eu-west-1-assets /Users/Anna/data/2024/input MyCompany.Extensions.Hosting"
    lines = (f"{name}={value}\n" for name, value in zip("ABC", harmless.split(), strict=True))
    (tmp_path / ".env").write_text("STRIPE=rk9Xw2LmQ7vTn4Bz8Hc1\n" + "".join(lines))

    redact = redactor({}, [tmp_path / ".env"])

    assert redact(f"rk9Xw2LmQ7vTn4Bz8Hc1 {harmless}") == f"{MASK} {harmless}"


def test_a_value_of_an_env_file_may_have_several_lines(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('SERVER_KEY="first-line-of-it\nsecond-line-of-it"\nPLAIN=visible-value\n')

    redact = redactor({}, [tmp_path / ".env"])

    assert redact("second-line-of-it, first-line-of-it, visible-value") == f"{MASK}, {MASK}, visible-value"


def test_every_env_file_of_a_repository_is_read_except_for_examples(tmp_path: Path) -> None:
    for name in (".env", ".env.local", ".env.production", ".env.example", ".environment"):
        (tmp_path / name).touch()

    found = known_secrets.env_files(tmp_path, ["packages/api/.env", "data.csv"])

    assert [str(file.relative_to(tmp_path)) for file in found] == [
        ".env",
        ".env.local",
        ".env.production",
        "packages/api/.env",
    ]


def test_passwords_in_the_settings_of_git_are_removed() -> None:
    settings = {
        "remote.origin.url": "https://ci:remote-pass@host/a.git",
        "url.https://ci:other-pass@host/.insteadof": "https://host/",
        "http.https://host/.extraheader": "AUTHORIZATION: basic eDpoZWFkZXItdG9rZW4=",
    }
    redact = redactor({}, more=known_secrets.of_settings(settings.items()))

    assert redact("remote-pass other-pass eDpoZWFkZXItdG9rZW4=") == f"{MASK} {MASK} {MASK}"
