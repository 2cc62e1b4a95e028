"""The static site, from docs/ as it is: Sphinx reads the pages that people read in the repository."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

project = "Outlast"
html_title = "Outlast"
html_theme = "furo"
extensions = ["myst_parser"]
myst_heading_anchors = 6
root_doc = "README"
html_show_copyright = False
html_copy_source = False
# Examples with what they print.
highlight_language = "text"

#: A link to a file or a directory of the repository, from a page.
LINK = re.compile(r"\[([^]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")

#: A section of the first page, whose links are the site's contents.
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def _stays(page, target):
    """True if the site has what the link leads to: another page, or a file, which is copied. What is not there is to be told."""
    place = (page.parent / target).resolve()
    is_copied = place.is_file() and place.suffix != ".md"
    return place.is_relative_to(DOCS) or is_copied or not place.exists()


def _contents(text):
    """A table of contents for each section of the first page."""
    names = SECTION.split(text)[1:]
    listed = set()
    for caption, section in zip(names[::2], names[1::2]):
        pages = [link[1] for link in LINK.findall(section) if link[1].endswith(".md")]
        pages = [page for page in dict.fromkeys(pages) if page not in listed]
        listed.update(pages)
        yield f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def _shown(page, link):
    """A link as the site has it: by the page's title in place of its file's name, or its text alone."""
    text, target = link[1], link[2]
    if not _stays(page, target):
        return text
    return f"[]({target})" if text == target else link[0]


def _read(app, name, source):
    page = DOCS / f"{name}.md"
    text = LINK.sub(lambda link: _shown(page, link), source[0])
    if name == root_doc:
        text += "\n" + "\n".join(_contents(source[0]))
    elif name == "results/README":
        text += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    source[0] = text


def setup(app):
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
