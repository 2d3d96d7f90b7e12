"""Every recorded case is whole, clean and says where it comes from."""

from pathlib import Path

import pytest
from recorder import check, driver, scenarios

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
FOLDERS = [
    folder
    for agent in driver.names()
    for name in scenarios.CASES
    if (folder := FIXTURES / agent / name).is_dir()
]


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}"
)
def test_case_is_clean_and_whole(folder: Path):
    assert check.problems(folder) == []


@pytest.mark.parametrize("agent", driver.names())
def test_every_case_is_recorded_for_every_agent(agent: str):
    recorded = {path.name for path in FOLDERS if path.parent.name == agent}
    assert scenarios.CASES.keys() - recorded == set()
