from pathlib import Path

import pytest

from manyserver.plan import schemas

SCHEMAS = Path(__file__).parents[2] / "workflow" / "schemas"


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_schema_in_the_tree_is_that_of_the_code(name: str) -> None:
    # Renew with `python -m manyserver schema`.
    assert (SCHEMAS / f"{name}.schema.json").read_text() == schemas()[name]
