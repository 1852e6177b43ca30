"""A protocol is data: what is read, what is refused, and what a cell's definition depends on."""

import copy
import json

import pytest

from sylvan.bench import load_protocol, make_protocol, protocol_names
from sylvan.bench.methods import LayerChoice
from sylvan.bench.protocol import LAYER_RULES, from_dict

SPEC = {
    "title": "small",
    "task": "labels",
    "seed": 3,
    "repeats": 3,
    "datasets": ["digit_attributes", {"name": "flags", "rows": 100}],
    "measures": ["micro_auroc", "hamming_loss"],
    "split": {"kind": "folds"},
    "data": {"min_positives": 5},
    "values": {"trees": 10},
    "factors": {"ilr": [0, 0.5], "leaf": [1, 5]},
    "methods": {
        "rf": {"name": "RF", "use": "rf_et", "options": {"n_trees": "$trees", "min_samples_leaf": "$leaf"}},
        "mldf": {"options": {"measure": "$measure"}},
        "extra": {"optional": True, "use": "rf_et"},
    },
    "quick": {"repeats": 2, "rows": 50, "values": {"trees": 2}, "factors": {"ilr": [0.5]}, "datasets": ["flags"]},
}
PAIRS = {
    "task": "pairs",
    "measures": ["accuracy"],
    "factors": {"points": ["strict"], "pairs": [10]},
    "methods": {"SiameseDeepForest": {}},
}


def changed(path, value, spec=SPEC):
    """The specification with one entry changed; a value of None removes it."""
    spec = copy.deepcopy(spec)
    *parents, last = path
    table = spec
    for parent in parents:
        table = table[parent]
    if value is None:
        del table[last]
    else:
        table[last] = value
    return spec


WRONG = [
    (("sed",), 1, "unknown entry 'sed'; did you mean 'seed'"),
    (("task",), "labls", "unknown task 'labls'; did you mean 'labels'"),
    (("task",), ["labels"], "unknown task"),
    (("seed",), -1, "seed must be an integer of at least 0, got -1"),
    (("seed",), 1.0, "seed must be an integer"),
    (("seed",), True, "seed must be an integer"),
    (("repeats",), 0, "repeats must be an integer of at least 1"),
    (("repeats",), "3", "repeats must be an integer"),
    (("repeats",), 1, "Folds need repeats of at least 2"),
    (("measures",), None, "at least one measure"),
    (("measures",), [], "at least one measure"),
    (("measures",), "micro_f1", "measures must be a list"),
    (("measures",), ["micro_f2"], "unknown measure 'micro_f2'; did you mean 'micro_f1'"),
    (("measures",), ["accuracy"], "unknown measure 'accuracy'"),
    (("measures",), [["micro_f1"]], "unknown measure"),
    (("measures",), ["micro_f1", "micro_f1"], "The measure 'micro_f1' is named twice"),
    (("measures",), ["macro_auc"], "Write 'macro_auroc' instead of 'macro_auc'"),
    (("datasets",), [], "at least one data set"),
    (("datasets",), "flags", "datasets must be a list"),
    (("datasets",), ["flags", {"name": "flags"}], "'flags' is named twice"),
    (("datasets",), [3], "A data set is a name"),
    (("datasets",), [{"rows": 3}], "A data set is a name"),
    (("datasets",), [{"name": "flags", "row": 3}], "unknown entry 'row'; did you mean 'rows'"),
    (("datasets",), [{"name": "flags", "rows": "3"}], "rows of data set 'flags' must be an integer"),
    (("datasets",), [{"name": "flags", "features": 0}], "features of data set 'flags' must be an integer"),
    (("datasets",), [{"name": "flags", "path": 0}], "path of data set 'flags' must be a text"),
    (("data",), {"min_positives": -1}, "data.min_positives must be an integer of at least 0"),
    (("data",), {"path": "x.csv"}, r"\[data\] has an unknown entry 'path'"),
    (("data",), 3, r"\[data\] must be a table, got 3"),
    (("split",), {"kind": "fold"}, "unknown kind of split 'fold'; did you mean 'folds'"),
    (("split",), {"kind": "pairs"}, "unknown kind of split 'pairs'"),
    (("split",), {"test_share": 0.5}, "unknown kind of split None"),
    (("split",), {"kind": "folds", "shuffle": True}, r"\[split\] has an unknown entry 'shuffle'"),
    (("split",), {"kind": "holdout", "test_share": 1}, "test_share must lie between 0 and 1, got 1"),
    (("split",), {"kind": "holdout", "test_share": "0.3"}, "test_share must lie between 0 and 1"),
    (("factors", "ilr"), [1.0], "An ilr is a share .* got 1.0"),
    (("factors", "ilr"), [-0.1], "An ilr is a share"),
    (("factors", "ilr"), ["0.5"], "An ilr is a share"),
    (("factors", "ilr"), [float("nan")], "An ilr is a share"),
    (("factors", "ilr"), [0, 0.0], "level of factor ilr 0.0 is named twice"),
    (("factors", "ilr"), [], "at least one level of factor ilr"),
    (("factors", "ilr"), 0.5, "factors.ilr must be a list"),
    (
        ("factors", "missing"),
        [1.0],
        "A level of missing is a share from 0 to below 1, 'by label' or 'hard rows', got 1.0",
    ),
    (("factors", "missing"), [-0.1], "A level of missing is a share"),
    (("factors", "missing"), ["by row"], "A level of missing is a share .* got 'by row'"),
    (("factors", "missing"), [0.5], "'ilr' and 'missing' both hide positives: use one of them"),
    (("measures",), ["frequency_err"], "unknown measure 'frequency_err'; did you mean 'frequency_error'"),
    (("factors", "leaf"), [True], "A level of the factor 'leaf' is a number or a text"),
    (("factors", "depth"), [1], "Factor 'depth' changes nothing: no method has an option '.depth'"),
    (("factors", "n_layers"), [1], "A factor cannot be called 'n_layers'"),
    (("factors", "method"), [1], "A factor cannot be called 'method'"),
    (("methods",), {}, "at least one method"),
    (("methods", "rf"), "rf_et", "methods.rf must be a table"),
    (("methods", "rf", "option"), {}, "methods.rf has an unknown entry 'option'; did you mean 'options'"),
    (("methods", "rf", "options"), ["x"], r"\[options\] must be a table"),
    (("methods", "rf", "options", "n_trees"), "$tree", r"methods.rf uses \$tree, which is neither"),
    (("methods", "rf", "options", "n_trees"), {1, 2}, "texts, numbers, lists and tables only"),
    (("methods", "rf", "use"), 3, "methods.rf.use must be a text"),
    (("methods", "rf", "optional"), "yes", "methods.rf.optional must be true or false"),
    (("methods", "rf", "classes"), "yes", "methods.rf.classes must be true or false"),
    (("methods", "rf", "classes"), True, "methods.rf.classes is for pairs"),
    (("methods", "rf", "choose_layer"), "bst", "choose_layer 'bst'; did you mean 'best'"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
def test_errors_name_what_is_wrong(path, value, message):
    with pytest.raises(ValueError, match=message):
        make_protocol(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("factors", "points"), ["loose"], "unknown level of points 'loose'"),
        (("factors", "pairs"), [10.5], "A level of pairs must be an integer"),
        (("factors", "pairs"), [0], "A level of pairs must be an integer of at least 2"),
        (("measures",), ["micro_f1"], "unknown measure 'micro_f1'; known are: accuracy, auroc"),
        (("methods", "SiameseDeepForest", "choose_layer"), "best", "not for pairs"),
        (("factors", "ilr"), [0.5], "Factor 'ilr' changes nothing"),
        (("factors", "missing"), [0.5], "Factor 'missing' changes nothing"),
        (("measures",), ["frequency_error"], "unknown measure 'frequency_error'"),
    ],
)
def test_errors_of_pairs(path, value, message):
    with pytest.raises(ValueError, match=message):
        make_protocol(changed(path, value, PAIRS))
    assert make_protocol(PAIRS).split == {"kind": "pairs"}


@pytest.mark.parametrize(
    ("quick", "message"),
    [
        ({"row": 3}, r"\[quick\] has an unknown entry 'row'"),
        ({"rows": "3"}, "quick.rows must be an integer"),
        ({"datasets": "flags"}, "quick.datasets must be a list"),
        ({"repeats": 1}, "Folds need repeats"),
        ({"factors": {"depth": [1]}}, "Factor 'depth' changes nothing"),
    ],
)
def test_errors_of_quick(quick, message):
    spec = changed(("quick",), quick)
    make_protocol(spec)  # read only if it is asked for
    with pytest.raises(ValueError, match=message):
        make_protocol(spec, quick=True)


def test_quick_changes_what_it_names():
    protocol = make_protocol(SPEC, quick=True)
    assert protocol.repeats == 2
    assert protocol.factors == {"ilr": (0.5,), "leaf": (1, 5)}
    assert protocol.datasets == ("flags",)
    assert protocol.data_of("flags") == {"min_positives": 5, "rows": 50}
    assert protocol.data_of("not named") == {"min_positives": 5, "rows": 50}
    assert protocol.methods["rf"]["options"]["n_trees"] == 2
    assert protocol.title == "small (quick)"
    fewer = make_protocol(changed(("quick", "rows"), 200), quick=True)
    assert fewer.data_of("flags")["rows"] == 100  # never more than without it


def test_files(tmp_path):
    (tmp_path / "mine.toml").write_text('measures = ["micro_f1"]\n[methods.rf_et]\n')
    protocol = load_protocol(tmp_path / "mine.toml")
    assert (protocol.name, protocol.title, protocol.datasets) == ("mine", "mine", ("digit_attributes",))
    assert protocol.split["kind"] == "stratified-folds"
    (tmp_path / "broken.toml").write_text("measures = [")
    with pytest.raises(ValueError, match="'broken' is not valid TOML"):
        load_protocol(tmp_path / "broken.toml")
    (tmp_path / "latin.toml").write_bytes('title = "Blätter"'.encode("latin-1"))
    with pytest.raises(ValueError, match="'latin' is not valid TOML"):
        load_protocol(tmp_path / "latin.toml")
    for absent in ("E", tmp_path, tmp_path / "none.toml"):
        with pytest.raises(
            ValueError, match=r"There is no protocol .* known are A, A-new, B, C, C-cost, C-new, D, auto, frequency"
        ):
            load_protocol(absent)


@pytest.mark.parametrize("name", protocol_names())
@pytest.mark.parametrize("quick", [False, True])
def test_shipped_protocols(name, quick, tmp_path):
    protocol = load_protocol(name, quick=quick)
    cells = protocol.cells()
    assert len(set(cells)) == len(cells)
    (tmp_path / "copy.toml").write_text(protocol.text)
    again = load_protocol(tmp_path / "copy.toml", quick=quick)
    assert [again.definition(cell) for cell in again.cells()] == [protocol.definition(cell) for cell in cells]
    for method in (*protocol.methods, *protocol.optional):  # each can be run alone
        alone = protocol.select(methods=[method])
        assert {cell.method for cell in alone.cells()} == {method}


def test_cells():
    protocol = make_protocol(SPEC)
    cells = protocol.cells()
    # repeats x data sets x ilr x leaf x (rf, and mldf for each measure)
    assert len(cells) == 3 * 2 * 2 * 2 * 3
    assert {cell.target for cell in cells if cell.method == "mldf"} == {"micro_auroc", "hamming_loss"}
    assert {cell.target for cell in cells if cell.method == "rf"} == {""}
    assert [cell.repeat for cell in cells] == sorted(cell.repeat for cell in cells)
    assert cells[0].factors == (("ilr", 0.0), ("leaf", 1))
    assert isinstance(cells[0].factors[0][1], float)  # 0 and 0.0 are one level
    assert cells[1].describe() == "digit_attributes ilr 0.0 leaf 1 #0 mldf for micro_auroc"
    assert protocol.method_names == {"rf": "RF", "mldf": "mldf"}
    assert set(LAYER_RULES) == set(LayerChoice.rules)


def test_labels_missing_by_a_share_or_in_a_way():
    spec = changed(("factors",), {"missing": [0, 0.5, "by label", "hard rows"], "leaf": [1]})
    protocol = make_protocol(changed(("measures",), ["micro_auroc", "frequency_error"], spec))
    assert protocol.factors["missing"] == (0.0, 0.5, "by label", "hard rows")
    assert {dict(cell.factors)["missing"] for cell in protocol.cells()} == {0.0, 0.5, "by label", "hard rows"}
    chosen = protocol.select(factors={"missing": ["by label"]})
    assert {dict(cell.factors)["missing"] for cell in chosen.cells()} == {"by label"}
    assert len({protocol.definition(cell) for cell in protocol.cells()}) == len(protocol.cells())


def test_select():
    protocol = make_protocol(SPEC)
    chosen = protocol.select(
        datasets=["birds"], methods=["extra", "rf"], factors={"ilr": [1 / 3], "leaf": [2]}, repeats=2, seed=9
    )
    assert {cell.dataset for cell in chosen.cells()} == {"birds"}
    assert [cell.method for cell in chosen.cells()] == ["extra", "rf"] * 2
    assert {cell.factors for cell in chosen.cells()} == {(("ilr", 1 / 3), ("leaf", 2))}
    assert chosen.seed == 9
    assert chosen.repeats == 3  # still three folds, of which two are run
    assert {cell.repeat for cell in chosen.cells()} == {0, 1}
    assert protocol == make_protocol(SPEC)  # itself unchanged
    more = make_protocol(changed(("split",), {"kind": "holdout"})).select(repeats=7)
    assert {cell.repeat for cell in more.cells()} == set(range(7))
    # Chosen twice: the second choice does not undo the first.
    assert {cell.repeat for cell in chosen.select(methods=["rf"]).cells()} == {0, 1}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"methods": ["rff"]}, "unknown method 'rff'; did you mean 'rf'"),
        ({"methods": []}, "at least one method"),
        ({"methods": ["rf", "rf"]}, "method 'rf' is named twice"),
        ({"datasets": []}, "at least one data set"),
        ({"datasets": ["flags", "flags"]}, "data set 'flags' is named twice"),
        ({"factors": {"irl": [0.5]}}, "unknown factor 'irl'; did you mean 'ilr'"),
        ({"factors": {"ilr": []}}, "at least one level of factor ilr"),
        ({"factors": {"ilr": [0.5, 0.5]}}, "named twice"),
        ({"factors": {"ilr": [2]}}, "An ilr is a share"),
        ({"repeats": 4}, "The protocol has 3 folds; 4 of them cannot be run"),
        ({"repeats": 0}, "repeats must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_select_errors(choice, message):
    with pytest.raises(ValueError, match=message):
        make_protocol(SPEC).select(**choice)
    if "factors" in choice:
        with pytest.raises(ValueError, match="unknown factor 'ilr'; there are none"):
            load_protocol("C").select(factors={"ilr": [0.5]})


def definition(spec, **choice):
    protocol = make_protocol(spec)
    cell = next(cell for cell in protocol.cells() if cell.method == "rf" and cell.dataset == "flags")
    return protocol.select(**choice).definition(cell)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), 4),
        (("repeats",), 4),
        (("split",), {"kind": "stratified-folds"}),
        (("data",), {"min_positives": 6}),
        (("datasets", 1, "rows"), 101),
        (("measures",), ["micro_auroc"]),
        (("values",), {"trees": 11}),
        (("methods", "rf", "options", "n_trees"), 11),
        (("methods", "rf", "options", "bootstrap"), True),
        (("methods", "rf", "use"), "slcforest"),
        (("methods", "rf", "choose_layer"), "best"),
    ],
)
def test_definition_depends_on_what_decides_figures(path, value):
    assert definition(changed(path, value)) != definition(SPEC)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), "another"),
        (("source",), "elsewhere"),
        (("methods", "rf", "name"), "Forest"),
        (("methods", "mldf"), {"options": {"measure": "$measure", "n_trees": 3}}),
        (("methods", "third"), {"use": "rf_et"}),
        (("datasets",), [{"name": "flags", "rows": 100}, "birds"]),
        (("factors", "ilr"), [0.0, 0.1]),
        (("values",), {"trees": 10, "unused": 3}),
        (("methods", "rf", "options"), {"min_samples_leaf": "$leaf", "n_trees": 10}),
    ],
)
def test_definition_does_not_depend_on_the_rest(path, value):
    assert definition(changed(path, value)) == definition(SPEC)


def test_definition_of_other_cells_and_choices():
    protocol = make_protocol(SPEC)
    marks = [protocol.definition(cell) for cell in protocol.cells()]
    assert len(set(marks)) == len(marks)
    assert definition(SPEC, methods=["rf"], repeats=1, datasets=["flags"]) == definition(SPEC)
    assert definition(SPEC, seed=4) != definition(SPEC)
    # Repetitions of random splits do not know each other: their number means nothing.
    holdout = changed(("split",), {"kind": "holdout", "test_share": 0.3})
    assert definition(changed(("repeats",), 9, holdout)) == definition(holdout)
    assert definition(changed(("split", "test_share"), 0.4, holdout)) != definition(holdout)


def test_definitions_of_the_past_stay():
    """Files of results hold these marks: whoever changes them makes old files useless."""
    protocol = load_protocol("A")
    assert protocol.definition(protocol.cells()[0]) == "4109e2394138470f"
    cell = next(cell for cell in load_protocol("D").cells() if cell.method == "rf_pairs")
    assert load_protocol("D").definition(cell) == "768c58ffecedf153"


@pytest.mark.parametrize("name", protocol_names())
def test_to_dict_and_back(name):
    protocol = load_protocol(name)
    again = from_dict(json.loads(json.dumps(protocol.to_dict())))
    assert again.cells() == protocol.cells()
    assert [again.definition(cell) for cell in again.cells()] == [protocol.definition(cell) for cell in again.cells()]
    assert again.optional == protocol.optional
