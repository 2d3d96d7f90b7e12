"""hub.claims: a response that stands in several sessions counts once, for the right one."""

from hypothesis import given
from hypothesis import strategies as st

from hub.claims import Ledger, resolve
from hub.model import Usage
from hub.store import Response


def at(time: str | None = None) -> Response:
    return Response(time, None, Usage(output=1))


def sessions(**names: str) -> dict[str, dict[str, Response]]:
    """`a="r1@05 r2"`: the session one:a has r1, of 05 o'clock, and r2."""
    return {
        f"one:{name}": {
            one.partition("@")[0]: at(one.partition("@")[2] or None) for one in ones.split()
        }
        for name, ones in names.items()
    }


def owned(ledger: Ledger) -> dict[str, set[str]]:
    return {key.partition(":")[2]: set(ledger.own(key)) for key in ledger.responses}


def test_the_stated_parent_owns() -> None:
    ledger = resolve(sessions(a="r1@09 r2@09", b="r1@01 r3@01"), {"one:b": "one:a"})
    assert owned(ledger) == {"a": {"r1", "r2"}, "b": {"r3"}}
    assert ledger.copied("one:b") == {"r1": "one:a"}
    assert ledger.copied("one:a") == {}


def test_a_grandparent_that_is_stated_owns() -> None:
    parents = {"one:c": "one:b", "one:b": "one:a"}
    ledger = resolve(sessions(a="r1", c="r1 r2"), parents)
    assert owned(ledger) == {"a": {"r1"}, "c": {"r2"}}


def test_the_contained_one_owns() -> None:
    ledger = resolve(sessions(b="r1@09 r2@09", a="r1@01 r2@01 r3@01"), {})
    assert owned(ledger) == {"b": {"r1", "r2"}, "a": {"r3"}}


def test_the_one_that_went_on_first_owns() -> None:
    ledger = resolve(sessions(a="r1@01 r2@05", b="r1@01 r3@04"), {})
    assert owned(ledger) == {"a": {"r2"}, "b": {"r1", "r3"}}


def test_equal_ones_are_told_by_their_keys() -> None:
    assert owned(resolve(sessions(b="r1", a="r1"), {})) == {"a": {"r1"}, "b": set()}


def test_ids_of_one_agent_are_nothing_to_another() -> None:
    ones = {"one:a": {"r1": at()}, "one:b": {"r1": at()}, "two:c": {"r1": at()}}
    ledger = resolve(ones, {})
    assert set(ledger.own("two:c")) == {"r1"}
    assert ledger.copied("two:c") == {}
    both = resolve({**ones, "two:d": {"r1": at()}}, {})
    assert [key for key in both.responses if both.own(key)] == ["one:a", "two:c"]


def test_ids_of_a_turn_are_local() -> None:
    assert owned(resolve(sessions(a="t:1", b="t:1"), {})) == {"a": {"t:1"}, "b": {"t:1"}}


def test_parents_that_are_each_others_children_state_nothing() -> None:
    ones = sessions(a="r1", b="r1", c="r1")
    circle = {"one:a": "one:b", "one:b": "one:c", "one:c": "one:a"}
    assert owned(resolve(ones, circle)) == {"a": {"r1"}, "b": set(), "c": set()}
    assert owned(resolve(sessions(a="r1", b="r1"), {"one:a": "one:a"})) == {"a": {"r1"}, "b": set()}
    alone = {key: key for key in ones}
    assert owned(resolve(ones, alone)) == {"a": {"r1"}, "b": set(), "c": set()}


def test_a_chain_of_thousands_is_settled() -> None:
    ones = {f"one:{n}": {"r": at()} for n in range(0, 3_000, 300)}
    parents: dict[str, str | None] = {f"one:{n}": f"one:{n - 1}" for n in range(1, 3_000)}
    ledger = resolve(ones, parents)
    assert [key for key in ones if ledger.own(key)] == ["one:0"]


names = st.sampled_from(["one:a", "one:b", "one:c", "two:a"])


@given(
    st.dictionaries(
        names,
        st.dictionaries(
            st.sampled_from(["r1", "r2", "r3"]), st.builds(at, st.none() | st.just("1"))
        ),
    ),
    st.dictionaries(names, names),
)
def test_every_response_has_exactly_one_owner_an_agent(
    responses: dict[str, dict[str, Response]], parents: dict[str, str | None]
) -> None:
    ledger = resolve(responses, parents)
    own = [(key[:3], name) for key in responses for name in ledger.own(key)]
    assert sorted(own) == sorted(
        {(key[:3], name) for key, ones in responses.items() for name in ones}
    )
    for key, ones in responses.items():
        assert set(ones) == set(ledger.own(key)) | set(ledger.copied(key))
