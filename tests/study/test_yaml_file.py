"""What YAML is read as, and what is refused, with the line."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from manyserver import figures, fits, methods
from manyserver.plan import Plan
from manyserver.study.config.workflow_config import WorkflowConfig
from manyserver.study.config.yaml_file import DEEPEST, MOST_BYTES, MOST_VALUES, read_yaml
from manyserver.validation import LONGEST_LINE, MOST_LINES, ConfigError, Document, validated

STUDY = """\
title: Small
systems:
  one:
    pools:
      - {fraction: 1, speed: 1}
policies:
  - {name: sq, d: 2}
sweep:
  arrival_rate: [0.5, 0.7]
  n_servers: [limit]
methods:
  mean_field: {}
"""
LEVELS = "abcdefghi"


def read(tmp_path: Path, text: str | bytes) -> Document:
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


def refusal(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    (line,) = caught.value.lines
    return line.removeprefix(f"{tmp_path / 'x.yaml'}")


SCALARS: dict[str, object] = {
    "1:2": "1:2",
    "010": 10,
    "0o10": 8,
    "0x10": 16,
    "1_000": 1000,
    "1e3": 1000,
    "2.0": 2,
    "-1.5e-1": -0.15,
    ".5": 0.5,
    "1e30": 1e30,
    "no": "no",
    "yes": "yes",
    "on": "on",
    "True": True,
    "~": None,
    "null": None,
    "": None,
    "2001-12-14": "2001-12-14",
    "'1'": "1",
    "!!str 1": "1",
    "!!int '1'": 1,
    "=": "=",
    "<<": "<<",
    "1/2": "1/2",
    "[1, 1.5]": [1, 1.5],
}


@pytest.mark.parametrize("text", SCALARS)
@pytest.mark.parametrize("head", ["", "%YAML 1.1\n---\n"])
def test_scalars_are_those_of_yaml_1_2(tmp_path: Path, text: str, head: str) -> None:
    content = read(tmp_path, f"{head}a: {text}\n").content["a"]
    assert (content, type(content)) == (SCALARS[text], type(SCALARS[text]))


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "doubled key": (
        "a: 1\nb: 2\na: 3\n",
        ", line 3: the key 'a' occurs twice, the first time in line 1",
    ),
    "doubled key beside a merge": (
        "a: &a {b: 1}\nc:\n  <<: *a\n  d: 1\n  d: 2\n",
        ", line 5: the key 'd' occurs twice, the first time in line 4",
    ),
    "doubled merge": (
        "a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a\n",
        ", line 4: the key '<<' occurs twice, the first time in line 3",
    ),
    "merge of a number": (
        "a:\n  <<: 1\n",
        ", line 2: '<<' must be a mapping that stands before, or a list of such",
    ),
    "merge with itself": ("a: &a\n  <<: *a\n", ", line 1: refers to itself"),
    "merge with what is around": (
        "a: &a\n  b:\n    <<: *a\n",
        ", line 3: '<<' must be a mapping that stands before, or a list of such",
    ),
    "number as a key": ("a:\n  1: b\n", ", line 2: the key 1 is a number, not text; put it in "),
    "Boolean as a key": ("true: b\n", ", line 1: the key true is a Boolean, not text; put it in "),
    "null as a key": ("~: b\n", ", line 1: the key ~ is nothing, not text; put it in quotes: '~'"),
    "list as a key": ("[1]: b\n", ", line 1: a key must be text"),
    "not a number": ("a: .nan\n", ", line 1: '.nan': must be a finite number"),
    "infinite": ("a: -.Inf\n", ", line 1: '-.Inf': must be a finite number"),
    "too large for a float": ("a: 1e400\n", ", line 1: '1e400': must be a finite number"),
    "too large for an integer": (f"a: {2**63}\n", f", line 1: '{2**63}': must be below 2**63 in "),
    "very many digits": ("a: " + "9" * 10_000, ", line 1: '9999"),
    "object": ("a: !!python/object:os.system x\n", ", line 1: the tag python/object:os.system is "),
    "set": ("a: !!set {b}\n", ", line 1: the tag set is not allowed; write plain values"),
    "tag": ("a: 1\nb: !c d\n", ", line 2: the tag !c is not allowed; write plain values"),
    "two documents": ("a: 1\n---\nb: 2\n", ", line 2: expected a single document in the stream"),
    "tab": ("a:\n\tb: 1\n", ", line 2: while scanning for the next token: found character '\\t'"),
    "not closed": ("a: [1\nb: 2\n", ", line 2: while parsing a flow sequence: expected ',' or ']'"),
    "alias of nothing": ("a: *b\n", ", line 1: found undefined alias 'b'"),
    "alias of itself": ("a: &b [*b]\n", ", line 1: refers to itself"),
    "Latin-1": ("a: 1\nb: ü\n".encode("latin-1"), ", line 2: is not UTF-8 text (byte #xfc); save "),
    "UTF-16": ("a: 1\n".encode("utf-16"), ", line 1: is not UTF-8 text (byte #xff); save the file"),
    "NUL": ("a: 1\nb: \0\n", ", line 2: is not YAML: holds the character #x00"),
    "NUL as an escape": ('a: "\\0"\n', ", line 1: '\\x00': holds a character that cannot be "),
    "half a character": ('a: "\\ud800"\n', ", line 1: '\\ud800': holds a character that cannot be"),
    "brackets": ("a: " + "[" * 300 + "]" * 300, ", line 1: is nested too deeply; must be at most"),
    "open brackets": ("[" * 100_000, ", line 1: is nested too deeply; must be at most"),
    "deep by aliases": (
        "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 5000)),
        f", line {DEEPEST}: is nested too deeply; must be at most",
    ),
    "a billion laughs": (
        f"a: &a [{'x,' * 10}]\n"
        + "".join(f"{c}: &{c} [{f'*{b},' * 10}]\n" for b, c in itertools.pairwise(LEVELS)),
        ", line 5: holds too much; must be at most",
    ),
    "a long text, repeated": (
        f"a: &a {'x' * 100_000}\nb: [{'*a,' * 1000}]\n",
        ", line 2: holds too much; must be at most",
    ),
    "many values": (f"a:\n- [{'1,' * (MOST_VALUES + 1)}]\n", ", line 2: holds too much; must be "),
    "large file": ("#" * (MOST_BYTES + 1), ": must be at most 1 MB large; measured sizes can be"),
}


@pytest.mark.parametrize("text,start", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(tmp_path: Path, text: str | bytes, start: str) -> None:
    line = refusal(tmp_path, text)
    assert line.startswith(start)
    assert len(line) < 300


def test_a_mark_of_the_byte_order_makes_no_difference(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffa: 1\n").content == {"a": 1}


def test_mappings_are_merged_and_the_nearest_wins(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc:\n  z: 3\n  <<: [*b, *a]\n"
    document = read(tmp_path, text)
    assert document.content["c"] == {"x": 2, "y": 1, "z": 3}
    assert [document.line(f"c.{key}") for key in "xyz"] == [2, 1, 4]


def test_merges_of_merges_take_no_time(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\n" + "".join(
        f"{c}: &{c} {{<<: [{f'*{b},' * 10}], {c}: 1}}\n" for b, c in itertools.pairwise(LEVELS)
    )
    assert read(tmp_path, text).content["i"] == dict.fromkeys(["x", "y", *LEVELS[1:]], 1)


def test_the_line_of_a_key_or_of_the_nearest_one(tmp_path: Path) -> None:
    document = read(
        tmp_path, "a:\n  b.c:\n    - d: 1\n    -\n      e[0]: [1,\n        2]\nb: &x\n  f: 1\n"
    )
    lines = {"a": 1, "a.b.c": 2, "a.b.c[0].d": 3, "a.b.c[1].e[0][1]": 6, "a.b.c[7].d": 2, "b.f": 8}
    assert {key: document.line(key) for key in lines} == lines
    assert document.line("nothing") is None
    assert document.at("nothing") == str(document.path)


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "5\n", "text\n", "null\n"])
def test_a_study_must_be_a_mapping(tmp_path: Path, text: str) -> None:
    path = tmp_path / "studies" / "s.yaml"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Plan(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith("must be keys with values, such as 'key: value'")


CONVERTED: dict[str, tuple[str, str]] = {
    "Boolean for an integer": ("seed: true", "seed = true: must be an integer"),
    "text for an integer": ("seed: '1'", "seed = '1': must be an integer"),
    "part of an integer": ("seed: 1.5", "seed = 1.5: must be an integer"),
    "integer for a Boolean": ("allow_failures: 1", "allow_failures = 1: must be true or false"),
    "text for a Boolean": ("allow_failures: yes", "allow_failures = 'yes': must be true or false"),
    "number for text": ("title: 5", "title = 5: must be text; put it in quotes: '5'"),
    "Boolean for text": ("title: true", "title = true: must be text; put it in quotes: 'true'"),
    "nothing for text": ("title:", "title = null: must be text"),
    "text for a list": ("unit: policy", "unit = 'policy': must be a list"),
    "nothing for a mapping": ("systems:", "systems = null: must be keys with values, such as "),
    "list for a mapping": ("methods: [exact]", "methods = ['exact']: must be keys with values, "),
    "clock time for a rate": (
        "sweep: {arrival_rate: 1:2, n_servers: limit}",
        "sweep.arrival_rate = '1:2': must be a number greater than zero, or a ratio such as 2/3",
    ),
    "Boolean for a count": (
        "sweep: {arrival_rate: {start: .1, stop: .5, count: true}, n_servers: limit}",
        "sweep.arrival_rate.count = true: must be an integer, at least 2",
    ),
    "a ratio of endless digits": (
        "sweep: {arrival_rate: '1e999999999', n_servers: limit}",
        "sweep.arrival_rate = '1e999999999': must be a number greater than zero, or a ratio such ",
    ),
    "a speed of endless digits": (
        "systems: {one: {pools: [{fraction: 1, speed: '1e999999999'}]}}",
        "systems.one.pools[0].speed = '1e999999999': must be a positive number or a ratio such as",
    ),
    "text for a probability": (
        "policies: [{name: random, probabilities: ['1']}]",
        "policies[0]: probabilities = ['1']: must be numbers in [0, 1] that sum to 1, one per pool",
    ),
    "Boolean for a phase": (
        "jobs: {a: {sizes: {name: phase_type, alpha: [true], T: [[-1]]}}}",
        "jobs.a: alpha = [True]: must be numbers in [0, 1] that sum to 1, one for each phase",
    ),
    "model": ("model: [[a]]", "model = [['a']]: unknown model; Allowed: "),
}


@pytest.mark.parametrize("text,start", CONVERTED.values(), ids=CONVERTED)
def test_nothing_is_converted(tmp_path: Path, text: str, start: str) -> None:
    key = text.split(":")[0]
    lines = STUDY.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(f"{key}:")), len(lines))
    rest = [i for i in range(first + 1, len(lines)) if not lines[i].startswith(" ")]
    lines[first : rest[0] if rest else len(lines)] = [text]
    path = tmp_path / "studies" / "s.yaml"
    path.parent.mkdir()
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError) as caught:
        Plan(tmp_path)
    (line,) = caught.value.lines
    assert line.startswith(f"{path}, line {first + 1}: {start}")


@pytest.mark.parametrize(
    "old,new",
    [("[limit]", "[1e3, limit]"), ("seed: 1", "seed: 2.0"), ("d: 2", "d: 2e0"), ("{}\n", "\n")],
)
def test_whole_numbers_are_integers_and_methods_need_no_options(
    tmp_path: Path, old: str, new: str
) -> None:
    path = tmp_path / "studies" / "s.yaml"
    path.parent.mkdir()
    path.write_text(f"{STUDY}seed: 1\n".replace(old, new))
    study = Plan(tmp_path).study("s")
    assert len(study.points) == 2
    assert all(type(n) is int for n in study.config.sweep.n_servers if n is not None)  # type: ignore[attr-defined]


def test_messages_are_short(tmp_path: Path) -> None:
    path = tmp_path / "studies" / "s.yaml"
    path.parent.mkdir()
    path.write_text(
        STUDY.replace("[0.5, 0.7]", f"[{', '.join(['0.5'] * 9000)}]")
        + f"fits: [{'x, ' * 5000}]\n{'y' * 900}: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        Plan(tmp_path)
    assert len(caught.value.lines) == MOST_LINES + 1
    assert caught.value.lines[-1].startswith("... and ")
    assert max(map(len, caught.value.lines)) < LONGEST_LINE + 10


def every_option() -> list[Any]:
    return [
        *(methods.load(name).options_class for name in methods.names()),
        *(figures.load(kind).options_class for kind in figures.kinds()),
        *(fits.load(kind).options_class for kind in fits.kinds()),
        WorkflowConfig,
    ]


@pytest.mark.parametrize("model", every_option(), ids=lambda model: str(model.__module__))
@pytest.mark.parametrize("value", [True, "1", 1, 1.5, None, [True], ["1"], [1], {"x": 1}])
def test_no_option_takes_a_value_of_another_kind(model: Any, value: object) -> None:
    """What an option takes comes out as it was, but for lists, and integers of a float's option."""
    where = Document(Path("a.yaml"), {})
    for key in model.model_fields:
        try:
            found = getattr(validated(model, {key: value}, where), key)
        except ConfigError as error:
            # Words of the library, not of the field.
            assert not any(word in str(error) for word in ("instance", "literal[", "dictionary"))
            continue
        if key == "at":
            assert found == {"x": (1,)}
            assert value == {"x": 1}
            continue
        if key == "studies":
            # The command line hands over names as one text.
            assert (found, value) in ((("1",), "1"), (("1",), ["1"]))
            continue
        plain = list(found) if isinstance(found, tuple) else found
        assert repr(plain) in (repr(value), repr(value).replace("1", "1.0", 1))
