"""The addresses in the package's metadata: those of the repository in which it is built, so that none is invented.

GitHub's workflows say which repository that is. A package that is built elsewhere names no address.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def addresses(repository: str) -> dict[str, str]:
    """Of a repository `owner/name`: source, issues, changelog, and the site that its workflow publishes."""
    source = f"https://github.com/{repository}"
    owner, _, name = repository.partition("/")
    return {
        "Documentation": f"https://{owner.lower()}.github.io/{name}/",
        "Source": source,
        "Issues": f"{source}/issues",
        "Changelog": f"{source}/blob/main/CHANGELOG.md",
    }


class ProjectURLs(MetadataHookInterface):
    """Called by the build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, if they are known."""
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        metadata["urls"] = addresses(repository) if repository else {}
