"""The reference of the command line, made from the help of its commands: a page, and a manual page of Unix."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

#: What holds for every command.
CLOSING = """
## Exit codes

`0`
: Done; a gate has passed.

`1`
: A gate failed: a number is shown to be outside its limit (`--fail-above`, `--limit`), the test rejects with `--fail`,
  or too many rows were left out for missing values (`--max-missing`). Nothing else gives 1.

`2`
: The options, the files or the data are not right; one sentence says what and how to fix it.

`3`
: A gate has too few rows to decide.

`70`
: An error of calibrant itself. `--debug`, anywhere on the line, shows where it is.

`130`
: Interrupted.

## Completion

```console
$ calibrant --install-completion
```

Commands and options are then completed by the tabulator key, in Bash, Zsh, Fish and PowerShell; `--show-completion`
prints the script instead. On a terminal long work shows its stage, a bar and the time; files and pipes get results
only.
"""


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
        usage = re.sub(r"\{(\w+)\}", r"\1", usage)
        lines += [f"## calibrant {name}", "", f"```console\n$ {usage}\n```", "", _paragraphs(command.help or ""), ""]
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if record:
                shown = re.sub(r" <[\w\[\]]+>$", "", record[0])
                lines += [f"`{shown}`", f": {_plain(record[1])}", ""]
    path.write_text("\n".join(lines) + CLOSING, encoding="utf8")


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))


def _plain(text: str) -> str:
    """Help as Markdown: stars and underscores of patterns are letters."""
    return re.sub(r"([*_])", r"\\\1", " ".join(text.split()))


def setup(app: Any) -> dict[str, bool]:
    """Write the page after the rest of the reference, and make it a manual page of the builder for those."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "command-line.md"), priority=300)
    app.connect("config-inited", lambda _, config: setattr(config, "man_pages", [_MANUAL]))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


_MANUAL = ("reference/command-line", "calibrant", "measure, test and repair the calibration of predictions", [], 1)
