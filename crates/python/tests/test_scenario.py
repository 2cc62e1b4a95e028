"""Scenarios from files, texts and Python's values."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy
import outlast
import pytest
from conftest import ROOT
from outlast import _toml


def test_files_texts_tables_and_keywords_say_the_same(tmp_path: Path, ferry: dict[str, Any]) -> None:
    of_tables = outlast.Scenario(ferry)
    file = tmp_path / "ferry.toml"
    file.write_text(of_tables.text)
    of_file = outlast.Scenario(file)
    assert of_file.name == "ferry"
    assert of_file.to_dict() == ferry
    assert outlast.Scenario(**ferry) == of_tables
    assert outlast.Scenario.parse(of_file.text) == of_tables


@pytest.mark.parametrize("file", sorted((ROOT / "examples/scenarios").glob("*.toml")))
def test_examples_survive_their_way_through_tables(file: Path) -> None:
    scenario = outlast.Scenario(file)
    again = outlast.Scenario(scenario.to_dict(), directory=scenario.directory)
    assert again.to_dict() == scenario.to_dict()


def test_a_value_out_of_range_is_shown_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[link]\nrate = "1 Mbit/s"\ndelay = "2 h"\n[workload]\nkind = "bulk"\nbytes = "1 MB"\n')
    with pytest.raises(outlast.ScenarioError) as caught:
        outlast.Scenario(file)
    error = caught.value
    assert (error.file, error.line, error.column) == (str(file), 3, 9)
    assert error.value == '"2 h"'
    assert error.allowed == "0 s to 1 h"
    assert "bad.toml:3:9" in str(error)
    assert isinstance(error, ValueError)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(outlast.ScenarioError) as caught:
        outlast.Scenario(link={"rate": "fast"}, outlast={"gateway": "hld"})
    messages = [problem.message for problem in caught.value.problems]
    assert len(messages) >= 3, messages
    hld = next(problem for problem in caught.value.problems if problem.value == '"hld"')
    assert hld.hint == "did you mean `hold`?"
    assert hld.allowed.startswith("none, ")
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


def test_a_file_that_is_not_there_has_no_line() -> None:
    with pytest.raises(outlast.ScenarioError) as caught:
        outlast.Scenario("gone.toml")
    assert (caught.value.file, caught.value.line) == ("gone.toml", None)


def test_what_the_simulator_lacks_has_its_place(ferry: dict[str, Any]) -> None:
    ferry["workload"] = {"kind": "command", "server": "true", "client": "true", "ready": 80}
    with pytest.raises(outlast.ScenarioError) as caught:
        outlast.run(ferry)
    assert caught.value.value == '"command"'


def test_replace_changes_copies(ferry: dict[str, Any]) -> None:
    scenario = outlast.Scenario(ferry)
    changed = scenario.replace({"link.delay": "5 ms", "outlast.gateway": None}, run={"repeat": 3})
    assert changed.to_dict()["link"]["delay"] == "5 ms"
    assert changed.repeat == 3
    assert "gateway" not in changed.to_dict()["outlast"]
    assert scenario == outlast.Scenario(ferry)
    with pytest.raises(outlast.ScenarioError):
        scenario.replace({"link.delya": "5 ms"})
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_python_and_numpy_values_become_toml() -> None:
    text = _toml.dumps(
        {
            "a": numpy.int64(3),
            "b": numpy.float32(0.5),
            "c": numpy.bool_(True),
            "d": timedelta(milliseconds=1500),
            "e": 'quote " and \\ and \n',
            "f": None,
            "t": {"x.y": [1, 2], "inner": [{"k": 1}, {"k": 2}]},
        }
    )
    assert text == (
        'a = 3\nb = 0.5\nc = true\nd = "1500 ms"\ne = "quote \\" and \\\\ and \\n"\n\n'
        '[t]\n"x.y" = [1, 2]\n\n[[t.inner]]\nk = 1\n\n[[t.inner]]\nk = 2\n'
    )
    with pytest.raises(TypeError, match="`a` is"):
        _toml.dumps({"a": object()})
    with pytest.raises(ValueError, match="`a` is nan"):
        _toml.dumps({"a": float("nan")})
