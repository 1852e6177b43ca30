"""Reasons for single cells: they add up, follow their definition, and say what other judges of trees say."""

import copy
import re
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import shap
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import naive_reasons
import sylvan
from sylvan import DeepForestClassifier
from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.length import FixedLength
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest, WeightedForest

OOB = {"bootstrap": True, "out_of_sample": OutOfBag()}
RULES = Interactions(3, n_bootstraps=2)
TURNS = {"n_trees": 3, "grain_cycle": True}
FEW = {"length": FixedLength(), "max_layers": 3, "random_state": 0}


def cascade(augment, *, folds=False, **options):
    if folds:
        forests = [kind(4, min_samples_leaf=3, out_of_sample=KFold(3)) for kind in (RandomForest, ExtraTrees)]
    else:
        forests = [kind(6, min_samples_leaf=3, **OOB) for kind in (RandomForest, ExtraTrees)]
    return DeepForestClassifier(forests, augment=augment, **(FEW | options))


MODELS = {
    "auto": lambda: sylvan.auto(3, random_state=0),
    "class vectors": lambda: cascade(OutputSpace()),
    "folds": lambda: cascade(OutputSpace(), folds=True, average_layers=True),
    "crossover": lambda: cascade(OutputSpace(), crossover=True),
    "cumulative": lambda: cascade(OutputSpace(), cumulative=True),
    "separate": lambda: cascade(Union([TreeEmbedding(3), OutputSpace()]), crossover=True, separate_forests=True),
    "embedding": lambda: cascade(TreeEmbedding(5)),
    "union": lambda: cascade(Union([TreeEmbedding(3), OutputSpace(), RULES]), cumulative=True),
    "reuse by row": lambda: cascade(MeasureAwareReuse("one_error"), folds=True),
    "reuse by label": lambda: cascade(MeasureAwareReuse("macro_auroc"), folds=True),
    "reuse of embedding": lambda: cascade(MeasureAwareReuse("hamming_loss", augment=TreeEmbedding(3))),
    "rules": lambda: cascade(Interactions(5, n_bootstraps=2)),
    "rules, hiDF": lambda: cascade(Interactions(5, n_bootstraps=2, score="importance", labels="full")),
    "rules, components": lambda: cascade(Interactions(5, n_bootstraps=2, labels="svd", keep_forests=True)),
    "imldf": lambda: sylvan.imldf(4, n_forests=2, augment=Interactions(5), score_folds=3, **FEW),
    "rules, folds": lambda: cascade(Interactions(4, n_bootstraps=2, labels="full"), score_folds=2, average_layers=True),
    "rules, crossfit": lambda: cascade(Interactions(4, n_bootstraps=2, labels="full", crossfit=3)),
    "rules, crossfit components": lambda: cascade(
        Union([OutputSpace(), Interactions(4, n_bootstraps=2, labels="svd", crossfit=3)])
    ),
    "rules, both": lambda: cascade(Interactions(4, n_bootstraps=2, labels="full", crossfit=3), score_folds=3),
    "in sample": lambda: cascade(OutputSpace(in_sample=True), crossover=True, cumulative=True),
    "reuse, in sample": lambda: cascade(MeasureAwareReuse("one_error", augment=OutputSpace(in_sample=True))),
    "embedding, folds of scores": lambda: cascade(Union([TreeEmbedding(3), OutputSpace()]), score_folds=2),
    "reuse, folds of scores": lambda: cascade(MeasureAwareReuse("macro_auroc"), folds=True, score_folds=2),
    "scanning, folds of scores": lambda: cascade(
        OutputSpace(), scanning=MultiGrainedScanning((3, 4), windows=[2], n_trees=3), score_folds=2
    ),
    "no features": lambda: cascade(None),
    "slcforest": lambda: sylvan.slcforest(6, **FEW),
    "cafe_fla": lambda: sylvan.cafe_fla(6, **FEW),
    "lcforest": lambda: sylvan.lcforest(4, max_layers=3, random_state=0),
    "scanning": lambda: cascade(OutputSpace(), scanning=MultiGrainedScanning((3, 4), windows=[2], n_trees=3)),
    "scanning in turn": lambda: cascade(
        OutputSpace(), scanning=MultiGrainedScanning((3, 4), windows=[2, (3, 1)], pooling=2, passthrough=True, **TURNS)
    ),
}  # fmt: skip


def made_up(seed=0, n=90, n_labels=3, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)).round(2)
    Y = (X[:, :n_labels] + 0.5 * X[:, 1 : n_labels + 1] + 0.3 * rng.normal(size=(n, n_labels)) > 0.4).astype(int)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, hide_positives(Y, 0.3, random_state=seed)


def additive(found):
    return np.abs(found.base + found.contribution.sum(axis=1) + found.rest - found.output).max()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_they_add_up_to_what_the_forests_say(name):
    X, Y = made_up(missing=not name.startswith("scanning"))
    model = MODELS[name]().fit(X, Y)
    if name not in ("lcforest",):
        assert model.n_layers_ == 3
    new = model.explain_cells(made_up(1)[0])
    assert additive(new) < 1e-9
    said = np.mean(model._ask(made_up(1)[0]), axis=0)
    np.testing.assert_allclose(new.output.reshape(said.shape), said, atol=1e-12)
    own = model.explain_cells()
    assert additive(own) < 1e-9
    np.testing.assert_array_equal(own.output.reshape(Y.shape), model.labels_.proba)  # out of sample, bit for bit
    assert np.abs(own.contribution).max() > 0.01
    for found in (new, own):
        added = found.base_present + found.on_present.sum(axis=1)
        assert np.abs(added - found.present).max() < 1e-9


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 1000), st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 4), st.booleans()
)
def test_additivity(seed, folds, crossover, cumulative, average, n_labels, weights):
    X, Y = made_up(seed, 40, n_labels, missing=True)
    model = cascade(OutputSpace(), folds=folds, crossover=crossover, cumulative=cumulative, average_layers=average)
    weight = np.arange(40) % 4 if weights else None  # some of weight 0
    model.set_params(random_state=seed).fit(X, Y, sample_weight=weight)
    assert additive(model.explain_cells()) < 1e-9
    assert additive(model.explain_cells(made_up(seed + 1, 10)[0])) < 1e-9
    np.testing.assert_allclose(model.explain_cells().output.reshape(Y.shape), model.labels_.proba, atol=1e-12)


@pytest.mark.parametrize("name", ["auto", "class vectors", "folds", "crossover"])
def test_they_are_what_they_are_defined_as(name):
    X, Y = made_up(missing=True)
    model = MODELS[name]().fit(X, Y)
    new = made_up(1, 6, missing=True)[0]
    found = model.explain_cells(new)
    cells = [(row, label) for row in range(6) for label in range(3)]
    for at, cell in enumerate(cells):
        contributions, base = naive_reasons.explain(model, new, *cell)
        np.testing.assert_allclose(found.contributions[at], contributions, atol=1e-12)
        assert found.base[at] == pytest.approx(base, abs=1e-12)


def test_rows_of_the_fit_are_judged_by_trees_that_have_not_seen_them():
    X, Y = made_up()
    model = cascade(OutputSpace(), max_layers=2).fit(X, Y)
    first = model.layers_[0]
    blocks = [[], [np.array(forest_oos) for forest_oos in oos_blocks(model, X)]]
    for row in (0, 17, 50):
        heard = {id(f): f.bag_counts()[:, row] == 0 for layer in model.layers_ for f in layer.forests}
        assert not all(votes.all() for votes in heard.values())
        found = model.explain_cells(rows=row, labels=1)
        contributions, base = naive_reasons.explain(model, X, row, 1, lambda f: heard[id(f)], blocks)  # noqa: B023
        np.testing.assert_allclose(found.contributions[0], contributions, atol=1e-12)
        assert found.base[0] == pytest.approx(base)
    assert first.number == 1


def oos_blocks(model, X):
    """Return out-of-bag probabilities of the forests of layer 1, by hand."""
    for forest in model.layers_[0].forests:
        votes = forest.bag_counts() == 0
        votes[:, ~votes.any(axis=0)] = True
        proba = forest.tree_proba(X)
        yield (proba * votes[:, :, None]).sum(axis=0) / votes.sum(axis=0)[:, None]


def test_the_table_of_the_fit_is_known_again():
    X, Y = made_up()
    model = cascade(OutputSpace()).fit(X, Y)
    own = model.explain_cells(rows=[3], labels=[2])
    assert own.output[0] == model.explain_cells(X.copy(), 3, 2).output[0] == model.labels_.proba[3, 2]
    assert model.explain_cells(X[3:4], 0, 2).output[0] != own.output[0]  # taken for a new row


@pytest.mark.parametrize("name", ["class vectors", "imldf", "rules, crossfit", "in sample"])
def test_a_table_that_was_changed_since_the_fit_is_refused(name):
    X, Y = made_up()
    model = MODELS[name]().fit(X, Y)
    X[:, :] = X[::-1].copy()
    with pytest.raises(ValueError, match="is not what it was when the model was fitted"):
        model.explain_cells()


@pytest.mark.parametrize("name", ["imldf", "rules, crossfit", "scanning, folds of scores"])
def test_a_file_with_findings_knows_who_judged_the_rows(name, tmp_path):
    X, Y = made_up()
    model = MODELS[name]().fit(X, Y, sample_weight=np.arange(90) % 5)  # some of weight 0
    found = model.explain_cells()
    again = sylvan.load(model.save(tmp_path / "whole.sylvan", findings=True))
    np.testing.assert_array_equal(again.explain_cells().contribution, found.contribution)
    np.testing.assert_array_equal(found.output.reshape(Y.shape), model.labels_.proba)
    bare = sylvan.load(model.save(tmp_path / "bare.sylvan"))
    np.testing.assert_array_equal(bare.explain_cells(X).output.reshape(Y.shape), np.mean(model._ask(X), axis=0))
    files = [zipfile.ZipFile(tmp_path / f"{kind}.sylvan").read("model.json") for kind in ("whole", "bare")]
    assert [b"HeldOut" in file for file in files] == [model.score_folds is not None, False]


def test_those_who_judged_the_rows_must_fit_the_model():
    X, Y = made_up()
    model = MODELS["imldf"]().fit(X, Y)
    for wild in ({"fold": np.full(90, 3)}, {"fold": np.zeros(89, int)}, {"cascades": [[]] * 3}):
        bad = copy.copy(model)
        bad._findings = replace(model.labels_, apart=replace(model.labels_.apart, **wild))
        with pytest.raises(ValueError, match=r"fold|layers"):
            bad._check_stored()


def shap_values(forest, X):
    """Return shap's values of one forest, (rows, features, labels)."""
    trees = [
        {
            "children_left": tree.children_left, "children_right": tree.children_right,
            "children_default": tree.children_right, "features": np.where(tree.feature < 0, -2, tree.feature),
            "thresholds": tree.threshold, "values": tree.value.toarray() / len(forest.trees_),
            "node_sample_weight": tree.size.astype(float),
        }
        for tree in forest.trees_
    ]  # fmt: skip
    explainer = shap.TreeExplainer({"trees": trees}, feature_perturbation="tree_path_dependent")
    return np.asarray(explainer.shap_values(X, check_additivity=False))


def test_signs_agree_with_shap_on_one_layer():
    X, Y = load_digit_attributes(return_X_y=True)
    model = sylvan.rf_et(25, random_state=0).fit(X[:600], hide_positives(Y[:600], 0.4, random_state=0))
    said = model.predict_proba(X[600:])
    row, label = np.nonzero(said > np.quantile(said, 0.97))
    row, label = row[:150], label[:150]
    found = model.explain_cells(X[600:], row, label)
    theirs = np.mean([shap_values(forest, X[600:][row]) for forest in model.layers_[0].judges], axis=0)
    theirs = theirs[np.arange(len(row)), :, label]
    np.testing.assert_allclose(theirs.sum(axis=1), found.output - found.base, atol=1e-9)
    top = found.feature[:, :3]
    same = np.sign(np.take_along_axis(theirs, top, axis=1)) == np.sign(found.contribution[:, :3])
    assert same.all(axis=1).mean() >= 0.95


def made_sets():
    """Return three tables: images, and made-up ones, with few features that count and with mixed ones."""
    rng = np.random.default_rng(0)
    X, Y = load_digit_attributes(return_X_y=True)
    yield X[:700], Y[:700]
    X = rng.normal(size=(500, 25))
    yield X, np.column_stack([X[:, :3].sum(axis=1) > 1, X[:, 3] * X[:, 4] > 0.3, np.abs(X[:, 5]) > 1]).astype(int)
    X = np.hstack([rng.integers(0, 2, (500, 10)), rng.exponential(size=(500, 10))])
    yield X, np.column_stack([X[:, 0] + X[:, 1] + X[:, 10] > 2, X[:, 2] * X[:, 11] > 0.5]).astype(int)


@pytest.mark.parametrize("number", range(3))
def test_without_its_reasons_a_label_is_less_probable(number):
    X, Y = list(made_sets())[number]
    n = len(X) * 2 // 3
    model = sylvan.auto(10, random_state=0).fit(X[:n], hide_positives(Y[:n], 0.3, random_state=0))
    said = model.predict_proba(X[n:])
    row, label = np.nonzero(said > np.quantile(said, 0.9))
    row, label = row[:60], label[:60]
    found = model.explain_cells(X[n:], row, label)
    rng = np.random.default_rng(0)
    best = np.argsort(-found.contributions, axis=1)[:, :3]
    others = np.array([rng.permutation(X.shape[1])[:3] for _ in row])

    def lowered(columns):
        drops = []
        for _ in range(10):
            changed, source = X[n:][row].copy(), X[rng.integers(0, n, len(row))]
            np.put_along_axis(changed, columns, np.take_along_axis(source, columns, axis=1), axis=1)
            drops.append(said[row, label] - model.predict_proba(changed)[np.arange(len(row)), label])
        return np.mean(drops)

    assert lowered(best) > 3 * max(lowered(others), 0.001)


# -- similar rows ----------------------------------------------------------------------------------------------------


def planted(seed=0):
    """Return ten groups of nine rows that are alike, and labels of the groups, some of them not recorded."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(10, 6)) * 3
    group = np.repeat(np.arange(10), 9)
    X = centres[group] + 0.05 * rng.normal(size=(90, 6))
    Y = np.column_stack([group % 2 == 0, group < 5, group % 3 == 0]).astype(int)
    return X, hide_positives(Y, 0.2, random_state=seed), group


@pytest.mark.parametrize("name", ["auto", "class vectors", "rules, hiDF", "cafe_fla", "rules"])
def test_similar_rows_are_of_the_same_group(name):
    X, Y, group = planted()
    model = MODELS[name]().fit(X, Y)
    row, label = np.nonzero(Y)
    found = model.explain_cells(rows=row, labels=label, similar=3)
    right, n = 0, 0
    for r, j, near in zip(row, label, found.similar):
        names = [other for other, _ in near]
        assert r not in names
        assert len(set(names)) == len(names)
        assert all(Y[other, j] for other in names)
        assert all(0 < share <= 1 for _, share in near)
        assert [share for _, share in near] == sorted((share for _, share in near), reverse=True)
        right += sum(group[other] == group[r] for other in names)
        n += len(names)
    assert n > 2 * len(row)
    assert right / n > 0.9


def test_similar_rows_of_new_rows():
    X, Y, group = planted()
    model = cascade(OutputSpace()).fit(X, Y)
    found = model.explain_cells(X + 0.01, similar=2)
    named = [(group[at // 3], group[other]) for at, near in enumerate(found.similar) for other, _ in near]
    assert np.mean([one == other for one, other in named]) > 0.6  # labels that the group does not have come from others


@pytest.mark.parametrize("name", ["class vectors", "imldf", "scanning"])
def test_a_row_is_not_similar_to_itself_even_if_nothing_was_learnt_of_it(name):
    X, Y = made_up()
    weight = np.where(np.arange(90) < 20, 0.0, 1.0)
    model = MODELS[name]().fit(X, Y, sample_weight=weight)
    row, label = np.nonzero(Y[:40])
    found = model.explain_cells(rows=row, labels=label, similar=3)
    assert not any(r in [other for other, _ in near] for r, near in zip(row, found.similar))


def test_shares_count_the_trees_that_judge_the_row():
    X, Y, _ = planted()
    model = cascade(OutputSpace(), max_layers=1).fit(X, Y)
    found = model.explain_cells(rows=[4], labels=[0], similar=5)
    apart, total = np.zeros(len(X)), 0
    for forest in model.layers_[0].judges:
        leaf, heard = forest.apply(X), forest.bag_counts()[:, 4] == 0
        apart += ((leaf == leaf[4]) & heard).sum(axis=1)
        total += heard.sum()
    for other, share in found.similar[0]:
        assert share == pytest.approx(apart[other] / total)
    assert found.similar[0][0].share == pytest.approx(
        np.where(Y[:, 0] == 1, apart, 0)[np.arange(90) != 4].max() / total
    )


# -- as people use it ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    X, Y = made_up(missing=True)
    X = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)], index=[f"row {i}" for i in range(90)])
    Y = pd.DataFrame(Y, columns=["cat", "dog", "cow"], index=X.index)
    return sylvan.auto(5, random_state=0).fit(X, Y), X, Y


def test_suggestions_with_reasons(named):
    model, X, _ = named
    plain, found = model.suggest_labels(top=8), model.suggest_labels(top=8, reasons=3, similar=2)
    assert [*found] == [*plain, "reasons", "similar"]
    pd.testing.assert_frame_equal(found[[*plain]], plain)
    for line in found.itertuples():
        parts = line.reasons.split("; ")
        assert 1 <= len(parts) <= 3
        name, value = parts[0].split(" = ")
        assert name in X.columns
        shown = X.at[line.row, name]
        assert value.startswith("missing" if np.isnan(shown) else f"{shown:.4g}")
        assert all(other.split(" (")[0] in X.index for other in line.similar.split("; "))
    assert model.suggest_labels(top=0, reasons=2, similar=1).empty


def test_the_probability_is_that_of_the_list(named):
    model, _, _ = named
    plain = model.suggest_labels(top=30)
    found = model.explain_cells(rows=plain)
    np.testing.assert_allclose(found.present, plain["probability"].to_numpy(), atol=1e-12)
    assert [*found.row] == [*plain["row"]]
    assert [*found.label] == [*plain["label"]]


@pytest.mark.parametrize("make", [lambda: sylvan.slcforest(6, **FEW), lambda: cascade(OutputSpace())])
def test_the_probability_of_models_without_calibration(make):
    X, Y = made_up()
    model = make().fit(X, Y)
    plain = model.suggest_labels(top=30)
    np.testing.assert_allclose(model.explain_cells(rows=plain).present, plain["probability"].to_numpy(), atol=1e-9)


def test_decisions_move_the_probability_and_not_the_contributions(named):
    model, X, Y = named
    cells = model.suggest_labels(top=20)
    decided = cells[["row", "label"]].assign(decision=["rejected", "confirmed"] * 10)
    again = sylvan.auto(5, random_state=0).fit(X, Y, decisions=decided)
    rest = again.suggest_labels(top=10)
    before, after = model.explain_cells(rows=rest), again.explain_cells(rows=rest)
    np.testing.assert_array_equal(before.contribution, after.contribution)
    np.testing.assert_allclose(after.present, rest["probability"].to_numpy(), atol=1e-12)
    assert np.abs(before.present - after.present).max() > 0.01


def test_the_order_of_cells_does_not_matter(named):
    model, _, _ = named
    cells = model.suggest_labels(top=40)
    turned = cells.iloc[::-1].reset_index(drop=True)
    one, other = model.explain_cells(rows=cells, similar=2), model.explain_cells(rows=turned, similar=2)
    np.testing.assert_array_equal(one.contributions, other.contributions[::-1])
    assert one.similar == other.similar[::-1]
    assert one.texts(3) == other.texts(3)[::-1]


def test_levels(named):
    model, X, _ = named
    found = model.explain_cells(rows=["row 3", "row 4"], labels="cat")
    for row, reasons in zip(found.row, found.top(12)):
        for reason in reasons:
            values, mine = X[reason.feature].dropna(), X.at[row, reason.feature]
            if np.isnan(mine):
                assert reason.level == "missing"
                continue
            rank = ((values < mine).mean() + (values <= mine).mean()) / 2
            assert reason.level == ("high" if rank >= 0.75 else "low" if rank <= 0.25 else "typical")
            assert reason.value == mine


def test_texts(named):
    model, _, _ = named
    found = model.explain_cells(rows=["row 3"], labels=["cow"])
    (reasons,) = found.top(4)
    sizes = [abs(reason.contribution) for reason in reasons]
    assert len(sizes) == 4
    assert sizes == sorted(sizes, reverse=True)
    assert found.texts(1)[0].split(" ")[-1] == f"{reasons[0].contribution:+.2f}".replace("0.", ".")
    assert found.similar is None


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (pd.MultiIndex.from_product([range(30), [0, 1, 2]]), r"\(\d+, \d\) \(\d+ %\)"),
        (pd.Index(np.arange(90) / 2), r"\d+\.\d \(\d+ %\)"),
        (None, r"\d+ \(\d+ %\)"),
    ],
)
def test_similar_rows_are_named_in_plain_words(index, wanted):
    X, Y = made_up()
    model = cascade(OutputSpace()).fit(X, pd.DataFrame(Y, index=index))
    texts = model.explain_cells(labels=1, similar=1).similar_texts()
    assert any(texts)
    assert all(re.fullmatch(wanted, text) for text in texts if text)


def test_keeping_a_few_features(named):
    model, _, _ = named
    whole, few = model.explain_cells(rows="row 5"), model.explain_cells(rows="row 5", top=4)
    assert few.feature.shape == (3, 4)
    np.testing.assert_array_equal(few.contribution, whole.contribution[:, :4])
    assert additive(few) < 1e-9
    assert np.abs(few.rest).max() > 0


def test_a_stored_model_with_findings_gives_reasons(named, tmp_path):
    model, X, _ = named
    again = sylvan.load(model.save(tmp_path / "whole.sylvan", findings=True))
    cells = model.suggest_labels(top=5)
    expected = model.explain_cells(rows=cells, similar=2)
    found = again.explain_cells(rows=cells, similar=2)
    np.testing.assert_array_equal(found.contribution, expected.contribution)
    assert found.similar == expected.similar
    assert found.texts() == expected.texts()
    bare = sylvan.load(model.save(tmp_path / "bare.sylvan"))
    with pytest.raises(ValueError, match="does not have the rows of its fit"):
        bare.explain_cells(rows=cells)
    with pytest.raises(ValueError, match="stored without"):
        bare.explain_cells(X, rows="row 3", similar=1)
    new = bare.explain_cells(X, rows="row 3")  # as a new row
    assert {reason.level for reason in new.top(3)[0]} <= {"", "missing"}
    assert additive(new) < 1e-9


def test_scanning_forgets_who_was_held_out_unless_asked(tmp_path):
    X, Y = made_up()
    model = MODELS["scanning"]().fit(X, Y)
    again = sylvan.load(model.save(tmp_path / "whole.sylvan", findings=True))
    np.testing.assert_array_equal(again.explain_cells(rows=3).contribution, model.explain_cells(rows=3).contribution)
    bare = sylvan.load(model.save(tmp_path / "bare.sylvan"))
    assert not len(bare.scanning_._fold)
    np.testing.assert_array_equal(bare.predict_proba(X), model.predict_proba(X))
    with pytest.raises(AttributeError, match="without its training rows"):
        bare.scanning_.transform_held(X, np.arange(3))


def test_sparse_rows():
    X, Y = made_up()
    X[np.abs(X) < 1] = 0
    dense = cascade(OutputSpace()).fit(X, Y)
    model = cascade(OutputSpace()).fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(model.explain_cells().contribution, dense.explain_cells().contribution, atol=1e-12)
    assert model.explain_cells(rows=2).texts() == dense.explain_cells(rows=2).texts()
    assert model.explain_cells(sparse.csr_array(X), 2, 1).output[0] == model.labels_.proba[2, 1]


def test_two_classes_and_many():
    X, Y = made_up()
    two = cascade(OutputSpace()).fit(X, np.where(Y[:, 0], "yes", "no"))
    found = two.explain_cells(made_up(1)[0])
    assert additive(found) < 1e-9
    assert set(found.label) == {"yes"}
    np.testing.assert_allclose(found.present, two.predict_proba(made_up(1)[0])[:, 1], atol=1e-12)


@pytest.mark.parametrize("make", [sylvan.auto, sylvan.slcforest, sylvan.gcforest])
def test_classes_have_the_probabilities_of_the_table(make):
    X, Y = made_up()
    model = make(4, random_state=0).fit(X, np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]])
    for rows, said in ((made_up(1)[0], model.predict_proba(made_up(1)[0])), (None, model.oos_proba_)):
        found = model.explain_cells(rows)
        assert additive(found) < 1e-9
        present = found.present.reshape(said.shape)
        np.testing.assert_allclose(present, said, atol=1e-12)
        np.testing.assert_allclose(present.sum(axis=1), 1.0)
        np.testing.assert_allclose(found.base_present + found.on_present.sum(axis=1), found.present, atol=1e-9)


def test_weighted_forests():
    X, Y = made_up()
    forest = WeightedForest(RandomForest(8, **OOB), lam=0.01)
    model = DeepForestClassifier([forest, forest], augment=OutputSpace(), **FEW).fit(X, Y[:, 0])
    new = made_up(1)[0]
    found = model.explain_cells(new)
    assert additive(found) < 1e-9
    np.testing.assert_allclose(found.output, model.predict_proba(new)[:, 1], atol=1e-12)
    with pytest.raises(ValueError, match="does not keep which tree saw which row"):
        model.explain_cells()


def test_bad_questions(named):
    model, X, _ = named
    with pytest.raises(ValueError, match="no row 'row 99'"):
        model.explain_cells(rows="row 99")
    with pytest.raises(ValueError, match="no label 'bird'"):
        model.explain_cells(rows="row 1", labels="bird")
    with pytest.raises(ValueError, match="2 rows and 3 labels"):
        model.explain_cells(rows=["row 1", "row 2"], labels=["cat", "dog", "cow"])
    with pytest.raises(ValueError, match="columns row and label"):
        model.explain_cells(rows=X)
    with pytest.raises(ValueError, match="top"):
        model.explain_cells(rows="row 1", top=0)
    with pytest.raises(ValueError, match="similar"):
        model.explain_cells(rows="row 1", similar=-1)
    with pytest.raises(ValueError, match="feature names"):
        model.explain_cells(X.rename(columns={"f0": "g0"}), rows="row 1")


def test_other_estimators_have_no_paths():
    from sklearn.neighbors import KNeighborsClassifier

    from sylvan.forests import from_sklearn

    X, Y = made_up()
    forests = [CompletelyRandomForest(5, **OOB), from_sklearn(KNeighborsClassifier(), n_splits=2)]
    model = DeepForestClassifier(forests, augment=OutputSpace(), **FEW).fit(X, Y)
    with pytest.raises(TypeError, match="Reasons need forests of sylvan"):
        model.explain_cells(rows=1)


def test_findings_know_their_model_and_pickle_without_it(named):
    import pickle

    model, _, _ = named
    assert model.labels_.model is model
    alone = pickle.loads(pickle.dumps(model.labels_))
    assert alone.model is None
    pd.testing.assert_frame_equal(alone.suggest(top=3), model.labels_.suggest(top=3))
