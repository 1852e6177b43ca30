"""What mkdocs does with a page before it is read as Markdown."""

from typing import Any


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Let tables in folded parts be read as tables, as they are where the pages of results were written for."""
    return markdown.replace("<details>", '<details markdown="1">')
