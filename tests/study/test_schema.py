"""What is generated from the typed classes is up to date; `manyserver schema` renews it."""

from pathlib import Path

import pytest

from manyserver.reference import schemas, with_tables

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_schema_in_the_tree_is_that_of_the_code(name: str) -> None:
    assert (ROOT / "workflow" / "schemas" / f"{name}.schema.json").read_text() == schemas()[name]


def test_the_tables_of_the_configuration_are_those_of_the_code() -> None:
    page = (ROOT / "config" / "README.md").read_text()
    assert page == with_tables(page)
    # Of each row, Markdown shows as many cells as the first row has.
    rows = [line.replace("\\|", "") for line in page.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5}


def test_a_table_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="table: fitz: must be one of config, dispatching, "):
        with_tables("<!-- table: fitz -->\n<!-- end of table -->")
