"""HTML building blocks of a page; all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from scenarios.loading.problems import printable


def text(content: object) -> str:
    """Escapes text for HTML, including characters that reorder or hide text."""
    # Line by line, because printable() would escape the line ends.
    return escape("\n".join(printable(line) for line in str(content).split("\n")), quote=True)


def _prose(content: object) -> str:
    """Escapes text that flows; numbers such as 1e-05 are not broken after their minus."""
    return re.sub(r"\d[\d.]*e-\d+", r'<span class="number">\g<0></span>', text(content))


def _key(content: object) -> str:
    """Escapes a key such as `protocol.repeat_leaders`, which may be broken between its words only."""
    return re.sub(r"([._])(?=[A-Za-z])", r"\1<wbr>", text(content))


def section(name: str, title: str, *parts: str) -> str:
    """Returns a titled section; `name` is its anchor."""
    body = "\n".join(part for part in parts if part)
    head = f'<h2 id="{name}-title">{text(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{head}\n{body}\n</section>'


def paragraph(content: str, kind: str = "") -> str:
    """Returns a paragraph of text, or nothing if it is empty."""
    return f"<p{_class(kind)}>{_prose(content)}</p>" if content else ""


def notes(lines: Iterable[str]) -> str:
    """Returns a list of notes to the reader, or nothing if there are none."""
    items = "".join(f"<li>{_prose(line)}</li>" for line in lines)
    return f'<ul class="notes">{items}</ul>' if items else ""


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Returns a two-column table of names and values."""
    cells = "".join(f'<tr><th scope="row">{text(name)}</th><td>{_prose(value)}</td></tr>' for name, value in rows)
    return f'<table class="facts"><tbody>{cells}</tbody></table>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, pinned: bool = False) -> str:
    """Returns a table with column headers; the first column holds the row headers.

    Pinned: the first column wraps and stays in sight while the others scroll, for long names beside many figures.
    """
    heads = "".join(f'<th scope="col">{text(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{_key(row[0])}</th>{"".join(f"<td>{text(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="{"figures pinned" if pinned else "figures"}">'
        f"<caption>{text(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def comparison_table(names: Sequence[str], rows: Iterable[tuple[str, Sequence[tuple[str, str]]]], caption: str) -> str:
    """Returns a table with a column per run; the first column stays in sight, and values wrap.

    Each cell has a value and its difference from the first run, which is shown if the page's switch is on.
    """
    heads = "".join(f'<th scope="col">{_key(name)}</th>' for name in ("", *names))
    body = "".join(
        f'<tr><th scope="row">{_key(label)}</th>{"".join(_value_cell(*cell) for cell in cells)}</tr>'
        for label, cells in rows
    )
    return (
        f'<div class="scroll"><table class="figures compared"><caption>{text(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _value_cell(value: str, difference: str) -> str:
    more = f'<span class="difference">{text(difference)}</span>' if difference else ""
    return f"<td>{_key(value)}{more}</td>"


def figure(name: str, caption: str, alternative: str, controls: str = "") -> str:
    """Returns a chart's placeholder: controls, caption, text alternative, and its numbers in a collapsed block."""
    return (
        f'<figure class="chart" id="fig-{name}">{controls}'
        # Focusable, so that charts can be reached and moved by keyboard.
        f'<div class="plot" id="{name}" role="group" tabindex="0" aria-label="{text(alternative)}"></div>'
        f"<figcaption>{text(caption)}</figcaption>"
        f'<details class="data"><summary>Numbers of this chart</summary><div class="scroll"></div></details></figure>'
    )


def pair(*figures: str) -> str:
    """Returns charts side by side, as far as the page is wide enough; nothing without any."""
    return f'<div class="pair">{"".join(figures)}</div>' if figures else ""


def choice(name: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    """Returns a labelled drop-down list; the first option is selected."""
    items = "".join(f'<option value="{text(value)}">{text(shown)}</option>' for value, shown in options)
    return f'<label>{text(label)} <select id="{name}">{items}</select></label>'


def button(name: str, label: str, meaning: str = "") -> str:
    """Returns a push button."""
    hint = f' title="{text(meaning)}" aria-label="{text(meaning)}"' if meaning else ""
    return f'<button type="button" id="{name}"{hint}>{text(label)}</button>'


def controls(*parts: str) -> str:
    """Returns a row of controls."""
    return f'<div class="controls">{"".join(parts)}</div>'


def code(content: str) -> str:
    """Returns preformatted text."""
    return f'<pre tabindex="0"><code>{text(content)}</code></pre>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
