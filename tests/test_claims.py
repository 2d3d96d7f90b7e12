"""hub.claims: a response that stands in several sessions counts once, for the right one."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from fakes import World, output, plain
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.claims import settle
from hub.fold import Response
from hub.memory import Memory
from hub.model import Usage
from hub.store import Store

Sessions = Mapping[str, Mapping[str, Response]]


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


class Books:
    """A store and a memory that are settled step by step."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.store, self.memory = Store(None), memory or Memory(None)
        self.parents: dict[str, str | None] = {}

    def put(self, ones: Sessions, parents: Mapping[str, str | None]) -> None:
        self.parents = {key: parents.get(key, self.parents.get(key)) for key in {
            **self.parents, **ones}}  # fmt: skip
        for key, responses in ones.items():
            self.store.put_responses(key, dict(responses))
        settle(self.store, self.memory, {key: set(one) for key, one in ones.items()}, self.parents)

    def close(self) -> None:
        self.store.close()
        self.memory.close()

    def own(self, key: str) -> set[str]:
        return self.store.responses(key).keys() - self.store.copies(key).keys()


def resolve(ones: Sessions, parents: Mapping[str, str | None], *, stepwise: bool = False) -> Books:
    books = Books()
    if stepwise:
        books.parents = {key: parents.get(key) for key in ones}
        for key, responses in ones.items():
            for name, one in responses.items():
                books.put({key: {name: one}}, parents)
    else:
        books.put(ones, {**dict.fromkeys([*ones, *parents]), **parents})
    return books


def owned(ones: Sessions, parents: Mapping[str, str | None]) -> dict[str, set[str]]:
    """Session -> what it owns, read at once or response by response."""
    out = []
    for stepwise in (False, True):
        books = resolve(ones, parents, stepwise=stepwise)
        out.append({key.partition(":")[2]: books.own(key) for key in ones})
        books.close()
    if all(parent in ones for parent in parents.values()):
        assert out[0] == out[1]
    return out[0]


def test_the_stated_parent_owns() -> None:
    books = resolve(sessions(a="r1@09 r2@09", b="r1@01 r3@01"), {"one:b": "one:a"})
    assert (books.own("one:a"), books.own("one:b")) == ({"r1", "r2"}, {"r3"})
    assert books.store.copies("one:b") == {"r1": "one:a"}
    assert books.store.copies("one:a") == {}
    books.close()


def test_a_grandparent_that_is_stated_owns() -> None:
    parents = {"one:c": "one:b", "one:b": "one:a"}
    assert owned(sessions(a="r1", c="r1 r2"), parents) == {"a": {"r1"}, "c": {"r2"}}


def test_the_contained_one_owns() -> None:
    ones = sessions(b="r1@09 r2@09", a="r1@01 r2@01 r3@01")
    assert owned(ones, {}) == {"b": {"r1", "r2"}, "a": {"r3"}}


def test_the_one_that_went_on_first_owns() -> None:
    ones = sessions(a="r1@01 r2@05", b="r1@01 r3@04")
    assert owned(ones, {}) == {"a": {"r2"}, "b": {"r1", "r3"}}


def test_equal_ones_are_told_by_their_keys() -> None:
    assert owned(sessions(b="r1", a="r1"), {}) == {"a": {"r1"}, "b": set()}


def test_ids_of_one_agent_are_nothing_to_another() -> None:
    ones = {"one:a": {"r1": at()}, "one:b": {"r1": at()}, "two:c": {"r1": at()}}
    books = resolve(ones, {})
    assert books.own("two:c") == {"r1"}
    assert books.store.copies("two:c") == {}
    books.put({"two:d": {"r1": at()}}, {})
    assert [key for key in sorted(books.parents) if books.own(key)] == ["one:a", "two:c"]
    books.close()


def test_ids_of_a_turn_are_local() -> None:
    assert owned(sessions(a="t:1", b="t:1"), {}) == {"a": {"t:1"}, "b": {"t:1"}}


def test_parents_that_are_each_others_children_state_nothing() -> None:
    ones = sessions(a="r1", b="r1", c="r1")
    circle: dict[str, str | None] = {"one:a": "one:b", "one:b": "one:c", "one:c": "one:a"}
    assert owned(ones, circle) == {"a": {"r1"}, "b": set(), "c": set()}
    assert owned(sessions(a="r1", b="r1"), {"one:a": "one:a"}) == {"a": {"r1"}, "b": set()}
    assert owned(ones, {key: key for key in ones}) == {"a": {"r1"}, "b": set(), "c": set()}


def test_a_chain_of_thousands_is_settled() -> None:
    ones = {f"one:{n}": {"r": at()} for n in range(0, 3_000, 300)}
    parents: dict[str, str | None] = {f"one:{n}": f"one:{n - 1}" for n in range(1, 3_000)}
    books = resolve(ones, parents)
    assert [key for key in ones if books.own(key)] == ["one:0"]
    books.close()


def test_what_all_of_thousands_share_is_settled() -> None:
    ones = {f"one:{n:04}": {"r": at(), f"own{n}": at(f"{9_999 - n}")} for n in range(3_000)}
    books = resolve(ones, {})
    assert [key for key in ones if "r" in books.own(key)] == ["one:2999"]
    books.close()


names = st.sampled_from(["one:a", "one:b", "one:c", "two:a"])
responses = st.dictionaries(
    names,
    st.dictionaries(
        st.sampled_from(["r1", "r2", "r3"]), st.builds(at, st.none() | st.sampled_from("123"))
    ),
)


@given(responses, st.dictionaries(names, names))
def test_every_response_has_exactly_one_owner_an_agent(
    ones: dict[str, dict[str, Response]], parents: dict[str, str | None]
) -> None:
    books = resolve(ones, parents)
    own = [(key[:3], name) for key in ones for name in books.own(key)]
    assert sorted(own) == sorted({(key[:3], name) for key, had in ones.items() for name in had})
    for key, had in ones.items():
        assert set(had) == books.own(key) | set(books.store.copies(key))
    books.close()


ONE = st.tuples(st.sampled_from("abcd"), st.sampled_from("12345"), st.sampled_from("678"))


@settings(deadline=None)
@given(st.lists(ONE, max_size=14, unique_by=lambda one: one[:2]), st.dictionaries(names, names))
def test_step_by_step_is_at_once(
    steps: list[tuple[str, str, str]], parents: dict[str, str | None]
) -> None:
    ones: dict[str, dict[str, Response]] = {}
    for session, name, time in steps:
        ones.setdefault(f"one:{session}", {})[f"r{name}"] = at(time)
    parents = {key: parents.get(key) for key in ones if parents.get(key) in ones}
    step = Books()
    step.parents = {key: parents.get(key) for key in ones}
    for session, name, time in steps:
        step.put({f"one:{session}": {f"r{name}": at(time)}}, parents)
    once = resolve(ones, parents)
    assert {key: step.own(key) for key in ones} == {key: once.own(key) for key in ones}
    step.close()
    once.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


OLD = ("say one@01", "tool @02", "use r1@03=5", "use r2@04=7", "end @05")


def fork(world: World, name: str = "b") -> None:
    world.write(f"{name}.log", *OLD, "say other@11", f"use {name}1@12=100", "tool @13")


def test_a_fork_that_shared_ids_prove_counts_only_its_own(world: World) -> None:
    world.write("a.log", *OLD)
    fork(world)
    world.write("a.log", "say two@06", "use r3@08=1")
    found = world.look()
    mine, other = found["a"], found["b"]
    assert (mine.parent, mine.relation, other.parent, other.relation) == (
        None, None, "fake:a", "fork",
    )  # fmt: skip
    assert output(found) == {"a": 13, "b": 100}
    assert (other.turns, other.prompts, other.tool_calls, other.errors) == (1, 1, 1, 1)
    assert (mine.turns, mine.prompts, mine.tool_calls, mine.errors) == (2, 2, 1, 1)
    assert other.started_at == "2026-11-01T00:00:11.000Z"
    assert mine.started_at == "2026-11-01T00:00:01.000Z"
    assert plain(found) == plain(world.fresh())


@pytest.mark.parametrize("cut", range(1, 8))
def test_grown_step_by_step_is_read_at_once(world: World, cut: int) -> None:
    lines = [*OLD, "say other@11", "use b1@12=100", "tool @13"]
    world.write("b.log", *lines[:cut])
    world.look()
    world.write("a.log", *OLD[: cut % 5])
    world.look()
    world.write("b.log", *lines[cut:])
    world.look()
    world.write("a.log", *OLD[cut % 5 :], "say two@06", "use r3@08=1")
    assert plain(world.look()) == plain(world.fresh())
    assert output(world.look()) == {"a": 13, "b": 100}


def test_a_fork_never_takes_the_tokens_of_an_owner_that_is_deleted(world: World) -> None:
    path = world.write("a.log", *OLD)
    fork(world)
    fork(world, "c")
    assert output(world.look()) == {"a": 12, "b": 100, "c": 100}
    path.unlink()
    for _ in range(2):
        found = world.look()
        assert output(found) == {"b": 100, "c": 100}
        assert (found["b"].turns, found["b"].parent, found["b"].relation) == (1, "fake:a", "fork")
        world.forget()
    world.write("b.log", "use b2@14=1")
    fork(world, "d")
    assert output(world.look()) == {"b": 101, "c": 100, "d": 100}
    world.write("a.log", *OLD)
    assert output(world.look()) == {"a": 12, "b": 101, "c": 100, "d": 100}


def test_what_an_owner_has_no_more_is_its_copys(world: World) -> None:
    path = world.write("a.log", *OLD)
    fork(world)
    world.look()
    path.unlink()
    world.write("a.log", "say new@01", "use n1@02=1")
    assert output(world.look()) == {"a": 1, "b": 112}
    path.unlink()
    assert output(world.look()) == {"b": 112}
    assert plain(world.look()) == plain(world.fresh())


@pytest.mark.parametrize("grandchild", [False, True])
def test_a_parent_that_is_stated_late_owns_what_was_counted_for_its_child(
    world: World, grandchild: bool
) -> None:
    world.write("a.log", "use x@01=3", "use own@02=1")
    world.write("z.log", "use x@01=3", "use other@09=1")
    world.write("m.log", "say nothing@05")
    assert output(world.look()) == {"a": 4, "z": 1, "m": None}
    (world.logs / "one.side").write_text("a m\nm z\n" if grandchild else "a z\n")
    changed = world.look()
    assert output(changed) == {"a": 1, "z": 4, "m": None}
    assert plain(changed) == plain(world.fresh())
    (world.logs / "one.side").unlink()
    assert output(world.look()) == {"a": 4, "z": 1, "m": None}
    world.write("a.log", "parent z@10")
    assert output(world.look()) == {"a": 1, "z": 4, "m": None}
    assert plain(world.look()) == plain(world.fresh())
