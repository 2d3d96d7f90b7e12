"""hub.text: nothing that comes out moves a cursor, turns a direction or breaks a column."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from hub import text
from hub.decode import tame

CONTROL = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
TURNS = list("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
BREAKS = ["\u2028", "\u2029", "\x85", "\ufeff"]
HALVES = ["\ud83d", "\udc80", "\udfff"]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


class Named(Struct):
    path: str
    more: Any = None


@pytest.mark.parametrize("odd", [*CONTROL, *TURNS, *BREAKS, *HALVES])
def test_no_odd_character_reaches_the_terminal(odd: str) -> None:
    assert text.line(f"a{odd}b") in {"a b", "a\ufffdb"}
    for shown in text.lines(f"a{odd}b").split("\n"):
        assert odd not in shown or odd == "\n"
        assert shown.isprintable()


def test_a_line_is_one_line() -> None:
    assert text.line("  a\r\n\tb\u2028c  ") == "a b c"


def test_lines_keep_their_ends() -> None:
    assert text.lines("a\r\nb\n\tc\r") == "a\nb\n    c\ufffd"


@given(ANY_TEXT, st.integers(0, 20))
@example("00\u093e0", 3)
@example("\u094d", 8)
@example("a\u200d", 5)
def test_a_cell_is_exactly_as_wide_as_asked(given_text: str, cells: int) -> None:
    safe = text.line(given_text)
    assert text.width(text.fit(safe, cells)) <= cells
    assert text.width(text.pad(safe, cells)) == cells
    assert text.width(text.pad(safe, cells, right=True)) == cells


def test_what_is_cut_says_so() -> None:
    assert text.fit("abcdef", 4) == "abc…"
    assert text.fit("会话列表", 5) == "会话…"
    assert text.fit("abc", 3) == "abc"
    assert text.fit("abc", 0) == ""


def test_what_belongs_together_is_cut_together() -> None:
    assert text.fit("e\u0301e\u0301e\u0301e\u0301", 3) == "e\u0301e\u0301…"
    family = "\U0001f469\u200d\U0001f4bb"
    assert text.fit(family + "abc", 4) == family + "a…"


def test_filled_on_either_side() -> None:
    assert text.pad("ab", 4) == "ab  "
    assert text.pad("会", 4, right=True) == "  会"


@given(ANY_TEXT)
def test_json_holds_the_same_text_and_no_odd_character(given_text: str) -> None:
    document = text.json_safe(text.json_of([given_text]).decode())
    assert json.loads(document) == [tame(given_text)]
    assert document.isascii() or not set(document) & {*CONTROL, *TURNS, *BREAKS}


def test_a_path_that_is_no_text_is_still_json() -> None:
    assert json.loads(text.json_of(Named("/tmp/\udcff"))) == {"path": "/tmp/\ufffd", "more": None}
    nest: Any = []
    for _ in range(100_000):
        nest = [nest]
    assert text.json_of(Named("/tmp", nest)).startswith(b'{"path":"/tmp","more":[[')
    while nest:
        nest = nest[0]


def test_a_number_of_any_size_is_still_json() -> None:
    assert msgspec.json.decode(text.json_of(2**70)) == 2**70
