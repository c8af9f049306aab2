"""A small database and its traces, for all tests."""

from pathlib import Path

import pytest

import catamount

TOY = Path(__file__).parent / "toy.mm"


@pytest.fixture(scope="session")
def database() -> Path:
    return TOY


@pytest.fixture(scope="session")
def traces() -> list[catamount.Trace]:
    return catamount.metamath_traces(TOY)


@pytest.fixture(scope="session")
def theorems(traces, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "toy.jsonl"
    catamount.write_traces(path, traces)
    return path
