"""A model's id in; its price sheet out of genai-prices: the only file that imports that library."""

import time
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from genai_prices import Usage, calc_price
from genai_prices.types import TieredPrices

from hub.price import UNITS, Rate, Sheet


def sheet_of(model: str) -> Sheet:
    """The sheet of a model; without rates where the table does not know it."""
    asked = time.time()
    table = _version()
    found = _look_up(model, datetime.now(UTC))
    if found is None:
        return Sheet(version=table, asked_at=asked)
    if isinstance(found.model.prices, list):
        return Sheet(version=table, asked_at=asked, dated=True)
    return Sheet(_rates(found.model_price), table, asked_at=asked)


def dated_sheet(model: str, at: str | None) -> Sheet:
    """The sheet of a model whose price depends on the time of the request."""
    return _sheet_at(model, (at or "")[: _grain(model)])


@cache
def _grain(model: str) -> int:
    """Characters of a time that decide: to the hour where every price begins at a full one."""
    found = _look_up(model, datetime.now(UTC))
    limits = [price.constraint for price in found.model.prices] if found is not None else []
    times = [
        time_
        for limit in limits
        for time_ in (getattr(limit, "start_time", None), getattr(limit, "end_time", None))
        if time_ is not None
    ]
    return 13 if all(time_.minute == time_.second == 0 for time_ in times) else 16


@lru_cache(maxsize=4096)
def _sheet_at(model: str, minute: str) -> Sheet:
    """Prices change with days or hours, never within a minute."""
    try:
        moment = datetime.fromisoformat(minute).replace(tzinfo=UTC)
    except ValueError:
        moment = datetime.now(UTC)
    found = _look_up(model, moment)
    return (
        Sheet(version=_version()) if found is None else Sheet(_rates(found.model_price), _version())
    )


@cache
def _version() -> str:
    return version("genai-prices")


def _look_up(model: str, moment: datetime) -> Any:
    try:
        return calc_price(
            Usage(input_tokens=1, output_tokens=1), model, genai_request_timestamp=moment
        )
    except (LookupError, ValueError):
        return None


def _rates(prices: Any) -> dict[str, Rate]:
    out: dict[str, Rate] = {}
    for unit, name in UNITS.items():
        price = getattr(prices, name, None)
        if isinstance(price, TieredPrices):
            out[unit] = Rate(
                float(price.base), [(tier.start, float(tier.price)) for tier in price.tiers]
            )
        elif isinstance(price, Decimal):
            out[unit] = Rate(float(price))
    return out
