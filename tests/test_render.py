"""hub.render: rows that fit the terminal, in a table that people and pipes can read."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.keys import key_of
from hub.model import Activity, Alert, Session, Usage
from hub.render import age, fold_rows, place, short_count, shortest, table, tokens, word
from hub.text import width

NOW = 1_796_032_800.0
AT = "2026-11-30T10:00:00.000Z"
ODD = "a\x1b[31m\r\nb\t\u202ec\ud83d\0会话" + "x" * 300


def session(name: str, parent: str | None = None, **more: Any) -> Session:
    fields: dict[str, Any] = {"title": f"title {name}", "updated_at": AT, **more}
    if parent is not None:
        fields |= {"parent": f"one:{parent}", "relation": "subagent"}
    return Session(key=f"one:{name}", agent="one", id=name, root="/r", **fields)


def shown(*sessions: Session, tree: bool = False, columns: int = 100) -> list[str]:
    every = {one.key: one for one in sessions}
    return table(fold_rows(sessions, every, tree=tree), columns, NOW, colour=False)


@pytest.mark.parametrize("columns", [80, 100, 110, 200])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=()), max_size=40), min_size=4, max_size=4
    )
)
def test_every_row_fits_whatever_it_holds(columns: int, texts: list[str]) -> None:
    title, cwd, answer, call = texts
    doing = Activity("tool", "T", call)
    one = session("aaaaaaaa", title=title, cwd=cwd, last_answer=answer)
    two = session("bbbbbbbb", title=title, state="working", activity=doing, cwd=cwd)
    for line in shown(one, two, columns=columns):
        assert width(line) <= columns
        assert (
            re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", line) is None
        )


def test_odd_text_is_no_escape_sequence() -> None:
    one = session("aaaaaaaa", title=ODD, cwd=f"/x/{ODD}", last_error=ODD)
    text = "\n".join(shown(one, columns=200))
    assert "\x1b" not in text
    assert text.count("\n") == 1


def test_colours_only_where_they_are_wanted() -> None:
    rows = fold_rows([session("aaaaaaaa", state="working")], {"one:aaaaaaaa": 0}, tree=False)  # type: ignore[dict-item]
    assert "\x1b[32mworking" in table(rows, 100, NOW, colour=True)[1]
    assert "\x1b" not in table(rows, 100, NOW, colour=False)[1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": "ended", "outcome": "lost"}, "lost"),
        ({"state": "ended"}, "ended"),
        ({"state": "idle", "outcome": "failed"}, "failed"),
        ({"state": "idle", "outcome": "completed"}, "idle"),
        ({"state": "waiting", "outcome": "failed"}, "waiting"),
        ({"state": "idle", "alerts": [Alert("unreadable", "error", "x")]}, "unreadable"),
    ],
)
def test_one_word_for_a_state(fields: dict[str, Any], expected: str) -> None:
    assert word(session("aaaaaaaa", **fields)) == expected


def test_what_is_not_certain_has_a_question_mark() -> None:
    assert shown(session("aaaaaaaa", state="working", certain=False))[1].startswith("working?")


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        (None, ""), ("", ""), ("/", "/"), ("/a/b c", "b c"), ("/a/b/", "b"),
        (r"C:\Users\x\my app", "my app"), ("C:\\", "C:"), ("\\\\host\\share\\d", "d"),
    ],
)  # fmt: skip
def test_the_last_part_of_a_folder(cwd: str | None, expected: str) -> None:
    assert place(cwd) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (99_949, "99.9k"), (100_000, "100k"),
     (3_400_000, "3.4M"), (2 * 10**9, "2.0G"), (-5, "-5")],
)  # fmt: skip
def test_counts_in_short(count: int, expected: str) -> None:
    assert short_count(count) == expected


def test_unknown_tokens_are_no_zero() -> None:
    assert tokens(session("a")) == ""
    assert tokens(session("a", complete=False)) == "…"
    assert tokens(session("a", usage=Usage())) == ""
    assert tokens(session("a", usage=Usage(input=0))) == "0"
    more: dict[str, Any] = {
        "usage": Usage(input=1),
        "usage_with_children": Usage(input=2, output=3, reasoning=3),
    }
    assert tokens(session("a", **more)) == "5"


@pytest.mark.parametrize(
    ("at", "later", "expected"),
    [
        (AT, 0, "0s"), (AT, 59, "59s"), (AT, 60, "1m"), (AT, 7_199, "1h"), (AT, 864_000, "10d"),
        (AT, -30, "0s"), (AT, -61, "2026-11-30"), (None, 0, ""), ("never", 0, ""),
        ("9999-12-31T23:59:59.999-23:59", 0, "9999-12-31"),
        ("0001-01-01T00:00:00.000Z", 0, "739949d"),
    ],
)  # fmt: skip
def test_ages(at: str | None, later: float, expected: str) -> None:
    assert age(at, NOW + later) == expected


def test_sub_agents_are_counted_or_below_their_parents() -> None:
    family = [session("aaaaaaaa"), session("bbbbbbbb", "aaaaaaaa"), session("cccccccc", "bbbbbbbb")]
    (_, folded) = shown(*family)
    assert "title aaaaaaaa" in folded
    assert "+2" in folded
    lines = shown(*family, tree=True)
    assert [line.index("title") - lines[1].index("title") for line in lines[1:]] == [0, 2, 4]
    alone = shown(family[1])
    assert "title bbbbbbbb" in alone[1], "its parent is not listed"


def test_parents_that_are_their_own_children_end() -> None:
    own = session("aaaaaaaa", "aaaaaaaa")
    circle = [session("bbbbbbbb", "cccccccc"), session("cccccccc", "bbbbbbbb"), session("dddddddd")]
    assert len(shown(own, *circle, tree=True)) >= 2
    assert len(shown(own, *circle)) >= 2


@given(st.sets(st.text("ab/%é", min_size=1, max_size=14), max_size=8))
def test_what_is_shown_of_a_key_is_its_own(names: set[str]) -> None:
    keys = {key_of("one", name): 0 for name in names if "/" not in name}
    short = shortest(keys)
    assert short.keys() == keys.keys()
    assert len(set(short.values())) == len(keys)
    for key, shown_ in short.items():
        assert shown_ in key
