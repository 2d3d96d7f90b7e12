"""Prices equal the library's own, request by request; what is not known is null, never 0."""

import pytest
from genai_prices import Usage as Counted
from genai_prices import calc_price
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.model import Usage
from hub.price import Pricer, Rate, Sheet

MODELS = ("claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-4-5-20250929", "claude-haiku-5-5",
          "gpt-5.2-codex", "deepseek-flash", "deepseek-v4-flash")  # fmt: skip
count = st.integers(0, 400_000)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MODELS), count, count, count, count, st.integers(0, 5))
def test_equals_the_library(
    model: str, plain: int, read: int, written: int, output: int, searches: int
) -> None:
    long = written // 3
    ours = Pricer().price(
        model, Usage(plain, read, written, output),
        {"cache_1h": long, "web_search_requests": searches}, "2026-11-30T10:00:00.000Z",
    )  # fmt: skip
    theirs = calc_price(
        Counted(
            input_tokens=plain + read + written, cache_read_tokens=read,
            cache_write_tokens=written, cache_write_1h_tokens=long, output_tokens=output,
            web_searches=searches,
        ),
        model,
    )  # fmt: skip
    assert ours is not None
    assert ours.amount == pytest.approx(float(theirs.total_price), rel=1e-12, abs=1e-15)
    assert (ours.currency, ours.source) == ("USD", "table")
    assert ours.version


def test_what_the_clis_said_themselves() -> None:
    """Claude Code 2.1.332 printed 0.002262 and 2.1.197 0.00283 for two requests of these counts."""
    two = [Usage(120, 5, 10, 30)] * 2
    for model, total in (("claude-opus-5-5", 0.002262), ("claude-opus-4-8", 0.00283)):
        prices = [Pricer().price(model, one, None, None) for one in two]
        assert sum(one.amount for one in prices if one) == pytest.approx(total)


def test_unknown_is_null() -> None:
    pricer = Pricer()
    assert pricer.price("<synthetic>", Usage(1, 1, 1, 1), None, None) is None
    assert pricer.price("house-model", Usage(1, 1, 1, 1), None, None) is None
    assert pricer.price(None, Usage(1, 1, 1, 1), None, None) is None
    assert pricer.price("claude-opus-5-5", Usage(None, 1, 1, 1), None, None) is None
    assert pricer.price("claude-opus-5-5", Usage(1, 1, 1, 1), {"speed": "fast"}, None) is None


def test_the_sheet_is_kept_and_asked_once() -> None:
    kept: dict[str, bytes] = {}
    first = Pricer(kept.get, kept.__setitem__).price("gpt-5.2-codex", Usage(7, 0, 0, 9), None, None)
    assert list(kept) == ["price:gpt-5.2-codex"]
    again = Pricer(kept.get, lambda *_: pytest.fail("asked again"))
    assert again.price("gpt-5.2-codex", Usage(7, 0, 0, 9), None, None) == first


def test_an_override_wins_and_keeps_its_currency() -> None:
    sheet = Sheet({"input": Rate(8.0), "output": Rate(20.0)}, None, "override", "CNY")
    price = Pricer(overrides={"claude-opus-5-5": sheet}).price(
        "claude-opus-5-5", Usage(1_000_000, 500_000, 0, 100_000), None, None
    )
    assert price is not None
    assert (price.amount, price.currency, price.source) == (14.0, "CNY", "override")
