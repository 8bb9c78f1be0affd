from typing import Any

from manyserver.study.models.dispatching.subject import Dispatching
from manyserver.study.points import Point, Unit
from manyserver.study.study import Study, read_study

BOTH = {
    "methods": {"mean_field": {}, "simulation": {"precision": 0.1}},
    "sweep.n_servers": [10, 20, "limit"],
}


def ids(study: Study) -> list[str]:
    return [point.id for point in study.points]


def subject(point: Point) -> Dispatching:
    assert isinstance(point.subject, Dispatching)
    return point.subject


def seeds(study: Study) -> list[int | None]:
    return [point.seed for point in study.points if point.method == "simulation"]


def test_a_study_is_the_product_of_its_axes_where_a_method_applies(write_study: Any) -> None:
    study = read_study(write_study(BOTH))
    labels = [(p.method, p.labels["n_servers"], p.labels["arrival_rate"]) for p in study.points]
    assert len(set(ids(study))) == len(labels) == 2 * 2 * (1 + 2)
    assert labels[:2] == [("mean_field", None, 0.5), ("mean_field", None, 0.7)]
    assert labels[4:8] == [("simulation", n, rate) for n in (10, 20) for rate in (0.5, 0.7)]


def test_the_identity_of_a_point_is_pinned(write_study: Any) -> None:
    # A change here makes every stored point worthless; it must be wanted.
    point = read_study(write_study(BOTH)).points[-1]
    assert point.parameters == {
        "method": "simulation",
        "system": {
            "arrival_rate": 0.7,
            "n_servers": 20,
            "pools": [
                {"fraction": "1/2", "speed": "2/3", "buffer": None},
                {"fraction": "1/2", "speed": "4/3", "buffer": None},
            ],
        },
        "policy": {"name": "hybrid_sq", "d": 2, "replacement": False, "split": "optimal"},
        "options": {"precision": 0.1},
        "seed": point.seed,
    }
    assert point.seed == 5305701818362103713
    assert point.id == "19730b1dde4e46e7"


def test_identities_do_not_depend_on_study_labels_units_or_other_points(write_study: Any) -> None:
    plain = read_study(write_study(BOTH))
    dressed = read_study(
        write_study(
            {
                **BOTH,
                "title": "Another",
                "unit": ["system"],
                "policies.0.label": "first",
                "sweep.arrival_rate": {"start": 0.5, "stop": 0.9, "step": 0.1},
                "figures": [],
            },
            name="other",
        )
    )
    assert set(ids(plain)) < set(ids(dressed))


def test_equal_values_written_differently_are_one_point(write_study: Any) -> None:
    plain = read_study(write_study(BOTH))
    written = read_study(
        write_study(
            {
                **BOTH,
                "systems.unequal.pools": [
                    {"fraction": 0.5, "speed": 0.6666666667},
                    {"fraction": "0.5", "speed": "8/6"},
                ],
                "sweep": {"load": ["1/2", "7/10"], "n_servers": [10, 20, "limit"]},
            }
        )
    )
    assert ids(written) == ids(plain)


def test_seeds_depend_on_the_study_seed_but_not_on_the_precision(write_study: Any) -> None:
    plain = read_study(write_study(BOTH))
    precise = read_study(
        write_study({**BOTH, "methods": {"simulation": {"precision": 0.01, "replications": 16}}})
    )
    other = read_study(write_study({**BOTH, "seed": 2}))
    assert seeds(precise) == seeds(plain)
    assert set(ids(precise)).isdisjoint(ids(plain))
    assert set(seeds(other)).isdisjoint(seeds(plain))
    assert len(set(seeds(plain))) == 8
    assert [p.seed for p in plain.points if p.method == "mean_field"] == [None] * 4


def test_a_float_grid_has_no_noise(write_study: Any) -> None:
    grid = {"start": 0.1, "stop": 0.7, "step": 0.1}
    study = read_study(write_study({"sweep.arrival_rate": grid}))
    rates = sorted({subject(point).system.arrival_rate for point in study.points})
    assert rates == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


def units_of(study: Study) -> list[tuple[str, int]]:
    return [(name, len(unit.points)) for name, unit in study.units.items()]


def test_units_share_the_axes_that_the_study_names(write_study: Any) -> None:
    assert units_of(read_study(write_study(BOTH))) == [
        ("mean_field/scheme1-d-2-2_limit", 2),
        ("mean_field/hybrid-sq-d-2_limit", 2),
        ("simulation/scheme1-d-2-2_n10", 2),
        ("simulation/scheme1-d-2-2_n20", 2),
        ("simulation/hybrid-sq-d-2_n10", 2),
        ("simulation/hybrid-sq-d-2_n20", 2),
    ]
    assert units_of(read_study(write_study({**BOTH, "unit": ["arrival_rate"]}))) == [
        ("mean_field/arrival_rate0.5", 2),
        ("mean_field/arrival_rate0.7", 2),
        ("simulation/arrival_rate0.5", 4),
        ("simulation/arrival_rate0.7", 4),
    ]


def test_labels_that_give_the_same_file_name_are_told_apart(write_study: Any) -> None:
    study = read_study(write_study({"policies.0.label": "a b", "policies.1.label": "a-b"}))
    names = list(study.units)
    assert len(names) == 2
    assert all(name.startswith("mean_field/a-b_limit_") for name in names)


def test_a_unit_says_how_many_points_it_has_and_which(write_study: Any) -> None:
    study = read_study(write_study())
    unit = study.units["mean_field/scheme1-d-2-2_limit"]
    count, mark = unit.summary.rsplit(" ", 1)
    assert count == "2 points"
    assert mark.startswith("#") and len(mark) == 9
    shorter = Unit(unit.name, unit.points[:1])
    assert shorter.summary.startswith("1 point #")
    assert shorter.summary[-8:] != mark[-8:]


def test_unstable_points_are_kept_as_such_where_the_study_says_skip(write_study: Any) -> None:
    skewed = [{"fraction": "1/2", "speed": "1/5"}, {"fraction": "1/2", "speed": "9/5"}]
    study = read_study(
        write_study(
            {
                "systems.unequal.pools": skewed,
                "policies": [{"name": "sq", "d": 2}],
                "sweep.arrival_rate": [0.3, 0.39, 0.4, 0.5],
                "unstable": "skip",
            }
        )
    )
    assert [point.left_out for point in study.points] == ["", "", "unstable", "unstable"]


def test_points_know_which_code_computes_them(write_study: Any) -> None:
    study = read_study(write_study(BOTH))
    by_method: dict[tuple[str, str], set[str]] = {}
    for point in study.points:
        by_method.setdefault((point.method, subject(point).policy.name), set()).add(point.code)
    assert sorted(len(codes) for codes in by_method.values()) == [1, 1, 1, 1]
    assert len(set.union(*by_method.values())) == 4


def test_a_cell_holds_all_rates_and_precisions(write_study: Any) -> None:
    def cells(study: Study) -> list[str]:
        return list(dict.fromkeys(point.cell for point in study.points))

    plain = read_study(write_study(BOTH))
    changed = read_study(
        write_study({**BOTH, "methods": {"mean_field": {}, "simulation": {}}, "seed": 3})
    )
    assert len(cells(plain)) == 2 * 3
    assert cells(changed) == cells(plain)


def test_points_compare_by_what_they_are(write_study: Any) -> None:
    first: Point = read_study(write_study()).points[0]
    again: Point = read_study(write_study({"policies.0.label": "first"})).points[0]
    assert first == again
