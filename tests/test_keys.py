"""hub.keys: an id makes one key and comes back; a few characters of a key name one session."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.errors import AmbiguousKey, NotFoundError
from hub.keys import find, key_of, native_of

FIRST = "one:11112222-3333"
SECOND = "one:1111aaaa-3333"
CHILD = "one:11112222-3333/agent-77778888"
OTHER = "two:99990000-3333"
EVERY = [FIRST, SECOND, CHILD, OTHER]


@given(st.text(max_size=30))
def test_an_id_comes_back(native: str) -> None:
    key = key_of("one", native)
    assert re.fullmatch(r"one:[A-Za-z0-9._/%-]*", key)
    assert native_of(key) == native


def test_odd_characters_are_written_in_hexadecimal() -> None:
    assert key_of("one", "a~b:c d/é") == "one:a%7Eb%3Ac%20d/%C3%A9"


def test_ids_that_are_no_text_have_different_keys() -> None:
    keys = {key_of("one", native) for native in ("\ud83d", "\udcff", "\udcfe", "\ufffd", "?")}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("wanted", "key"),
    [
        (FIRST, FIRST),
        ("11112222-3333", FIRST),
        ("one:11112", FIRST),
        ("11112", FIRST),
        ("9999", OTHER),
        ("11112222/agent-7", CHILD),
        ("one:1111222/agent-7777", CHILD),
        (CHILD, CHILD),
    ],
)
def test_a_prefix_stands_for_a_key(wanted: str, key: str) -> None:
    assert find(wanted, EVERY) == key


@pytest.mark.parametrize("wanted", ["", "1", "999", "two:", "two:999", "/", "nosuch", "one:9999"])
def test_what_is_too_short_or_unknown_stands_for_none(wanted: str) -> None:
    with pytest.raises(NotFoundError):
        find(wanted, EVERY)


def test_an_agent_alone_is_no_session() -> None:
    with pytest.raises(NotFoundError, match="4 characters"):
        find("three:", ["three:aaaabbbb"])


def test_what_fits_several_names_them() -> None:
    with pytest.raises(AmbiguousKey) as raised:
        find("1111", EVERY)
    assert raised.value.candidates == [FIRST, CHILD, SECOND]


def test_one_id_of_two_agents_is_ambiguous() -> None:
    with pytest.raises(AmbiguousKey):
        find("abcd1234", ["one:abcd1234", "two:abcd1234"])
    assert find("two:abcd1234", ["one:abcd1234", "two:abcd1234"]) == "two:abcd1234"


def test_a_session_is_meant_and_not_its_thousands_of_sub_agents() -> None:
    keys = [FIRST, *(f"{FIRST}/{number:05}" for number in range(5_000))]
    keys += [f"{FIRST}/00000/{number:05}" for number in range(5_000)]
    assert find("11112222", keys) == FIRST
