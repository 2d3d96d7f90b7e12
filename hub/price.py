"""Tokens of one request and a model in; its list price in USD out, or null where none is known.

The prices are genai-prices' (package data, offline). Importing that library costs as much as a
whole list, so what it says of a model is kept as a small sheet; the sheet is then applied to each
request by itself, since some prices depend on its size.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from hub.model import Usage

AGAIN: Final = 86_400.0
"""Seconds after which the library is asked again about a model it did not know."""
UNITS: Final = {
    "input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
    "searches": "web_searches_kcount",
}


class Rate(Struct):
    """The price of one unit: USD for a million tokens (searches: for a thousand)."""

    base: float
    steps: list[tuple[int, float]] = []
    """(input tokens of the request beyond which it costs this, price), rising."""

    def at(self, size: int) -> float:
        """The price for a request of so many input tokens; beyond a step all tokens cost more."""
        price = self.base
        for start, dearer in self.steps:
            if size > start:
                price = dearer
        return price


class Sheet(Struct):
    """What one model costs."""

    rates: dict[str, Rate] = {}
    """By unit; a unit without one is part of its parent (a cache write costs as input, say)."""
    version: str | None = None
    """Of the price table."""
    source: str = "table"
    currency: str = "USD"
    asked_at: float = 0.0
    dated: bool = False
    """The price depends on the time of the request: the library is asked each time."""


class Price(Struct, frozen=True):
    """What one request costs."""

    amount: float
    currency: str
    source: str
    version: str | None


Keep = Callable[[str, bytes], None]
Kept = Callable[[str], bytes | None]


class Pricer:
    """Prices requests.

    Args:
        kept: gives a sheet that was kept, by name.
        keep: takes one.
        overrides: sheets of the user's own configuration, by model.
    """

    def __init__(
        self,
        kept: Kept = lambda _: None,
        keep: Keep = lambda _name, _body: None,
        overrides: Mapping[str, Sheet] | None = None,
    ) -> None:
        self._kept, self._keep = kept, keep
        self._pid = os.getpid()
        self._sheets: dict[str, Sheet] = dict(overrides or {})

    def price(
        self, model: str | None, counts: Usage, raw: Mapping[str, object] | None, at: str | None
    ) -> Price | None:
        """The list price of one request; null where the model or a count is not known.

        Args:
            model: the id that the agent wrote.
            counts: its tokens.
            raw: what else decides: `cache_1h`, `web_search_requests`, `speed`, `service_tier`.
            at: RFC 3339 time of the request.
        """
        if model is None or counts.input is None or counts.output is None:
            return None
        extra = raw or {}
        if extra.get("speed") not in {None, "standard"}:
            return None  # fast mode has prices of its own, which no table gives
        sheet = self._sheet(model)
        if sheet.dated:
            from hub.pricetable import dated_sheet  # noqa: PLC0415

            sheet = dated_sheet(model, at)
        if not sheet.rates:
            return None
        amount = _apply(sheet, counts, extra)
        return Price(amount, sheet.currency, sheet.source, sheet.version)

    def warm(self, kept: Mapping[str, bytes]) -> None:
        """Takes kept sheets in, by name, before readers are forked."""
        for name, body in kept.items():
            model = name.removeprefix("price:")
            self._sheets.setdefault(model, msgspec.msgpack.decode(body, type=Sheet))

    def _sheet(self, model: str) -> Sheet:
        sheet = self._sheets.get(model)
        if sheet is not None:
            return sheet
        name = f"price:{model}"
        # a forked reader must not touch its parent's database
        mine = os.getpid() == self._pid
        body = self._kept(name) if mine else None
        if body is not None:
            sheet = msgspec.msgpack.decode(body, type=Sheet)
        if sheet is None or (not sheet.rates and time.time() - sheet.asked_at > AGAIN):
            from hub.pricetable import sheet_of  # noqa: PLC0415  # 0.3 s of imports

            sheet = sheet_of(model)
            if mine:
                self._keep(name, msgspec.msgpack.encode(sheet))
        self._sheets[model] = sheet
        return sheet


def _apply(sheet: Sheet, counts: Usage, extra: Mapping[str, object]) -> float:
    """The sum over units; a unit without a price of its own costs what its parent does."""
    read, written = counts.cache_read or 0, counts.cache_write or 0
    long = min(_number(extra.get("cache_1h")), written)
    plain = counts.input or 0
    amounts = {
        "input": plain,
        "cache_read": read,
        "cache_write": written - long,
        "cache_write_1h": long,
        "output": counts.output or 0,
    }
    size = plain + read + written
    total = 0.0
    for unit, amount in amounts.items():
        rate = _rate(sheet, unit)
        if rate is not None and amount:
            total += rate.at(size) * amount / 1_000_000
    searches = _number(extra.get("web_search_requests"))
    if searches and "searches" in sheet.rates:
        total += sheet.rates["searches"].at(size) * searches / 1000
    return total


_PARENTS: Final = {
    "cache_write_1h": "cache_write",
    "cache_write": "input",
    "cache_read": "input",
}


def _rate(sheet: Sheet, unit: str) -> Rate | None:
    name: str | None = unit
    while name is not None:
        if name in sheet.rates:
            return sheet.rates[name]
        name = _PARENTS.get(name)
    return None


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
