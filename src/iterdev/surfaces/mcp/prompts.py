"""The prompts of the server, for clients that show them as commands."""

from iterdev.app.clients.skill_text import SKILLS, steps
from iterdev.mcp.tools import Prompt

PROMPTS = tuple(
    Prompt(
        name=skill.name,
        description=skill.description,
        argument="line",
        argument_description=skill.hint,
        text=steps(skill, "the text between the two marks below") + "\n<line>{line}</line>\n",
    )
    for skill in SKILLS
)
