"""The known programs that speak the Agent Client Protocol: commands, settings and login of each.

The facts were measured with the versions named. Adding a program is one row here.
"""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.agents.contract import TOOLS

Document = Mapping[str, object]


class Program(Struct, frozen=True, kw_only=True):
    command: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Disable the user's own choices: automatic approvals, extensions, other MCP servers."""
    variables: Mapping[str, str] = {}
    """Disable telemetry, updates, questions at the start, and a wrapper process around the program."""
    model_flag: str = ""
    model_variable: str = ""
    settings: Document = {}
    settings_variable: str = ""
    """A variable with the settings as JSON, the model included; they override the user's."""
    settings_path_variable: str = ""
    """A variable with the path of a settings file that overrides the user's."""
    home_variables: Mapping[str, str] = {}
    """Where the program's own files are, relative to a private home."""
    home_settings: str = ""
    """The path of the settings in a private home."""
    key_settings: Document = {}
    """Settings for a private home: the login is the key in the environment."""
    folders: tuple[str, ...] = ()
    """Where its login, its settings and its conversations are, relative to the user's home."""
    needs: tuple[str, ...] = ()
    """Variables of the user's environment with which it finds its login and its provider."""
    reads: tuple[str, ...] = ()
    """The repository's files with instructions that it reads by itself."""
    resumes: bool = True
    """A new process can resume the conversation of an earlier one."""
    save_delay: float = 0
    """Seconds that the program needs after a turn to save the conversation."""
    cumulative_usage: bool = False
    """It reports the tokens since the start of the conversation."""
    version: str = ""
    """The last version known to work."""
    install: str = ""
    login: str = ""


# A retry would wait for as long as the provider asks, even minutes, without a message. iterdev retries by itself.
GEMINI_SETTINGS: Document = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "maxAttempts": 1,
        "retryFetchErrors": False,
    },
    "hooksConfig": {"enabled": False},
}
# Managed memory costs a model call after every turn. Seven more retries, 80 s in all, cannot be disabled.
QWEN_SETTINGS: Document = {
    "$version": 3,
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
    "model": {"generationConfig": {"maxRetries": 0}},
    "memory": {"enableManagedAutoMemory": False},
    "disableAllHooks": True,
}
OPENCODE_SETTINGS: Document = {
    "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
    "autoupdate": False,
    "share": "disabled",
}
ONLY_OUR_TOOLS = ("--allowed-mcp-server-names", TOOLS, "--extensions", "none")
OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")

PROGRAMS: Mapping[str, Program] = {
    "gemini": Program(
        command=("gemini", "--acp"),
        flags=("--skip-trust", "--approval-mode", "default", *ONLY_OUR_TOOLS),
        variables={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
        model_flag="--model",
        # GEMINI_CLI_SYSTEM_SETTINGS_PATH is of no use: gemini skips a file that does not belong to root.
        settings=GEMINI_SETTINGS,
        home_variables={"GEMINI_CLI_HOME": "."},
        home_settings=".gemini/settings.json",
        key_settings={"security": {"auth": {"selectedType": "gemini-api-key"}}},
        needs=(
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_GENAI_USE_VERTEXAI",
            "GOOGLE_GENAI_USE_GCA",
            "GOOGLE_GEMINI_BASE_URL",
            "GEMINI_MODEL",
        ),
        folders=(".gemini",),
        reads=("GEMINI.md",),
        resumes=False,
        version="0.61.0",
        install="npm install -g @google/gemini-cli",
        login='run "gemini" once and log in, or set GEMINI_API_KEY',
    ),
    "qwen": Program(
        command=("qwen", "--acp"),
        # Its permission requests name only the arguments, not the tool.
        flags=("--approval-mode", "default", *ONLY_OUR_TOOLS, "--allowed-tools", f"mcp__{TOOLS}"),
        variables={"QWEN_CODE_NO_RELAUNCH": "true"},
        model_flag="--model",
        settings=QWEN_SETTINGS,
        settings_path_variable="QWEN_CODE_SYSTEM_SETTINGS_PATH",
        home_variables={"QWEN_HOME": ".qwen"},
        home_settings=".qwen/settings.json",
        key_settings={"security": {"auth": {"selectedType": "openai"}}},
        folders=(".qwen",),
        needs=(*OPENAI, "DASHSCOPE_API_KEY"),
        reads=("AGENTS.md", "QWEN.md"),
        save_delay=0.5,
        version="0.15.10",
        install="npm install -g @qwen-code/qwen-code",
        login='run "qwen" once and log in, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL',
    ),
    "opencode": Program(
        command=("opencode", "acp"),
        variables={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            # It requests its plugins from the npm registry; nothing listens on port 9.
            "NPM_CONFIG_REGISTRY": "http://127.0.0.1:9",
        },
        settings=OPENCODE_SETTINGS,
        settings_variable="OPENCODE_CONFIG_CONTENT",
        folders=(".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
        needs=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
        reads=("AGENTS.md",),
        version="1.18.33",
        install="npm install -g opencode-ai",
        login="run opencode auth login",
    ),
    "copilot": Program(
        command=("copilot", "--acp"),
        # Its permission requests name a tool of the team without the server.
        flags=("--no-auto-update", "--disable-builtin-mcps", "--no-ask-user", f"--allow-tool={TOOLS}"),
        model_flag="--model",
        folders=(".copilot",),
        reads=("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"),
        needs=(
            "COPILOT_GITHUB_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "COPILOT_OFFLINE",
            "COPILOT_PROVIDER_BASE_URL",
            "COPILOT_PROVIDER_TYPE",
            "COPILOT_PROVIDER_API_KEY",
            "COPILOT_PROVIDER_WIRE_API",
            "COPILOT_MODEL",
        ),
        cumulative_usage=True,
        version="1.0.102",
        install="npm install -g @github/copilot",
        login='run "copilot" once and type /login, or set COPILOT_GITHUB_TOKEN',
    ),
    "goose": Program(
        command=("goose", "acp"),
        variables={"GOOSE_MODE": "approve", "GOOSE_TELEMETRY_ENABLED": "false", "GOOSE_DISABLE_SESSION_NAMING": "true"},
        model_variable="GOOSE_MODEL",
        folders=(".config/goose", ".local/share/goose", ".local/state/goose"),
        reads=("AGENTS.md",),
        needs=(
            "GOOSE_PROVIDER",
            "GOOSE_MODEL",
            "GOOSE_DISABLE_KEYRING",
            "OPENAI_API_KEY",
            "OPENAI_HOST",
            "OPENAI_BASE_PATH",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_HOST",
            "GOOGLE_API_KEY",
            "OPENROUTER_API_KEY",
        ),
        version="1.52.0",
        install="npm install -g @aaif/goose",
        login="run goose configure",
    ),
    "kimi": Program(
        command=("kimi", "acp"),
        variables={"KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_DISABLE_TELEMETRY": "1"},
        home_variables={"KIMI_CODE_HOME": ".kimi-code"},
        folders=(".kimi-code",),
        reads=("AGENTS.md",),
        needs=("KIMI_API_KEY", "KIMI_BASE_URL", "MOONSHOT_API_KEY"),
        version="2.1.0",
        install="npm install -g @moonshot-ai/kimi-code",
        save_delay=0.5,
        login='run "kimi" once and type /login',
    ),
}
