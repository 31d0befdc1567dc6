"""The reference of the command line, made from the help of its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(path: Path) -> None:
    """One section per command: usage, what it does, and a list of its arguments and options."""
    import typer

    from calibrant.cli.commands import app

    group: Any = typer.main.get_command(app)
    lines = ["# calibrant on the command line", "", (group.help or "").strip(), ""]
    for name, command in group.commands.items():
        if command.hidden:
            continue
        context = command.context_class(command, info_name=f"calibrant {name}")
        usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
        lines += [f"## calibrant {name}", "", f"```console\n$ {usage}\n```", "", _paragraphs(command.help or ""), ""]
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if record:
                lines += [f"`{record[0]}`", f": {' '.join(record[1].split())}", ""]
    path.write_text("\n".join(lines), encoding="utf8")


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))


def setup(app: Any) -> dict[str, bool]:
    """Write the page after the rest of the reference."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "command-line.md"), priority=300)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
