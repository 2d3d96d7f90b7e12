"""The shape of config.toml, as pydantic reads it; sentences about what is wrong with it out."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AgentTable(_Strict):
    """`[agents.NAME]`."""

    roots: list[str] = Field(default_factory=list)
    executable: str | None = None


class PrivacyTable(_Strict):
    """`[privacy]`."""

    exclude: list[str] = Field(default_factory=list)


class AdaptersTable(_Strict):
    """`[adapters]`."""

    enable: list[str] = Field(default_factory=list)


class PriceTable(_Strict):
    """`[prices."MODEL"]`: for a million tokens; searches for a thousand."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    cache_write_1h: float | None = Field(default=None, ge=0)
    searches: float | None = Field(default=None, ge=0)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")


class File(_Strict):
    """The whole file."""

    agents: dict[str, AgentTable] = Field(default_factory=dict)
    privacy: PrivacyTable = Field(default_factory=PrivacyTable)
    adapters: AdaptersTable = Field(default_factory=AdaptersTable)
    prices: dict[str, PriceTable] = Field(default_factory=dict)


def problems(error: ValueError) -> str:
    """One sentence a problem: where it stands and what is wrong."""
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg'][:1].lower()}{one['msg'][1:]}"
        for one in error.errors()
    )
