"""config/README.md explains every key that a study can have."""

import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import pytest
from pydantic import BaseModel

from manyserver import figures, fits, methods, policies
from manyserver.plan import Plan
from manyserver.study import models as study_models
from manyserver.study.models.dispatching.config import PoolConfig, SweepConfig
from manyserver.study.models.halfin_whitt.config import SweepConfig as RegimeSweepConfig

CONFIG = Path(__file__).parents[2] / "config"
WORDS = set(
    re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`[^`]+`", (CONFIG / "README.md").read_text())))
)


def models() -> Iterator[type[BaseModel]]:
    yield from (study_models.load(name).config_class for name in study_models.names())
    yield from (PoolConfig, SweepConfig, RegimeSweepConfig)
    yield from (methods.load(name).options_class for name in methods.names())
    yield from (figures.load(kind).options_class for kind in figures.kinds())
    yield from (fits.load(kind).options_class for kind in fits.kinds())


def test_every_key_is_explained() -> None:
    assert {key for model in models() for key in model.model_fields} - WORDS == set()


def test_every_kind_method_and_policy_is_explained() -> None:
    kinds = {*figures.kinds(), *fits.kinds()}
    names = {*kinds, *methods.names(), *policies.names(), *study_models.names()}
    assert names - WORDS == set()


def test_every_parameter_of_a_policy_is_explained() -> None:
    classes = [policies.policy_class(name) for name in policies.names()]
    assert {name for chosen in classes for name in signature(chosen).parameters} - WORDS == set()


def test_the_shipped_studies_can_be_built() -> None:
    plan = Plan(CONFIG, {"studies": "all"})
    assert set(plan.names) >= {
        "choices",
        "fig3_finite_size",
        "fig4_optimised",
        "fig5_naive",
        "tail_decay",
    }
    assert [name for name in plan.names if not plan.study(name).config.figures] == []


@pytest.mark.parametrize("path", sorted((CONFIG / "studies").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_study_names_its_schema(path: Path) -> None:
    line = path.read_text().splitlines()[0]
    assert line == "# yaml-language-server: $schema=../../workflow/schemas/study.schema.json"
