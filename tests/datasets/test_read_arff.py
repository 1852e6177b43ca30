import gzip

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sylvan.datasets import arff_table, read_arff

DENSE = """% Songs and moods.
% Written by hand.
@RELATION songs

@attribute tempo numeric
@ATTRIBUTE	'key signature'	{c, 'g sharp', d}   % comment
@attribute quiet {0, 1}
@attribute beats INTEGER
@attribute "very happy" {0,1}
@data
% a comment
120.5, 'g sharp', 1, 4.5, 0

?, d, 0, 3, 1
60, ?, 1, 4, 0
"""
SPARSE = """@relation 'texts: -C 2'
@attribute politics {0,1}
@attribute sport {1,0}
@attribute size numeric
@attribute kind {news,blog}
@attribute length numeric
@data
{0 1,1 0,2 2.5}
{}
{1 0,2 ?,3 blog, 4 0}
{3 news}
"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="very happy"></label>
<label name="quiet"></label>
</labels>
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="songs.arff"):
        path = tmp_path / name
        content = text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.mark.parametrize("name", ["songs.arff", "songs.arff.gz"])
def test_dense_file_with_xml_beside_it(write, name):
    write(XML, "songs.xml")
    songs = read_arff(write(DENSE, name))
    assert songs.target_names == ["quiet", "very happy"]  # the order of the ARFF file, not of the XML
    np.testing.assert_array_equal(songs.target, [[1, 0], [0, 1], [1, 0]])
    assert songs.target.dtype == np.int64
    assert songs.feature_names == ["tempo", "key signature", "beats"]
    np.testing.assert_array_equal(songs.data, [[120.5, 1, 4.5], [np.nan, 2, 3], [60, np.nan, 4]])
    assert songs.categories == {"key signature": ["c", "g sharp", "d"]}
    assert songs.name == "songs"
    assert songs.DESCR == "Songs and moods.\nWritten by hand."
    assert songs.frame is None


@pytest.mark.parametrize("labels", [["very happy", "quiet"], {"quiet", "very happy"}])
def test_labels_by_name_keep_the_order_of_the_file(write, labels):
    assert read_arff(write(DENSE), labels).target_names == ["quiet", "very happy"]


def test_labels_by_xml_path(write):
    xml = write(XML, "other.xml")
    songs = write(DENSE)
    assert read_arff(songs, xml).target_names == read_arff(songs, str(xml)).target_names
    assert read_arff(songs, xml).target_names == ["quiet", "very happy"]


def test_nested_labels_with_and_without_namespace(write):
    for space in ("", ' xmlns="http://mulan.sourceforge.net/labels"'):
        xml = write(f'<labels{space}><label name="very happy"><label name="quiet"/></label></labels>', "n.xml")
        assert read_arff(write(DENSE), xml).target_names == ["quiet", "very happy"]


def test_sparse_file_where_left_out_means_first_value(write):
    texts = read_arff(write(SPARSE, "texts.arff"))
    assert texts.target_names == ["politics", "sport"]
    # sport is declared {1,0}: left out, it is 1.
    np.testing.assert_array_equal(texts.target, [[1, 0], [0, 1], [0, 0], [0, 1]])
    assert sparse.issparse(texts.data)
    assert texts.data.format == "csr"
    assert texts.data.dtype == np.float64
    assert texts.data.nnz == 3  # written zeros are not stored
    expected = [[2.5, 0, 0], [0, 0, 0], [np.nan, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(texts.data.toarray(), expected)
    assert texts.categories == {"kind": ["news", "blog"]}


def test_a_row_of_a_dense_file_may_be_written_as_sparse(write):
    bunch = read_arff(write(HEAD + "1,1\n{0 2.5}\n{ }\n{1 1, 0 ?}\n"), ["l"])
    np.testing.assert_array_equal(bunch.data, [[1], [2.5], [0], [np.nan]])
    assert bunch.target.ravel().tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("'a, b'", "a, b"),
        ("'{x} 100%'", "{x} 100%"),
        (r"'it\'s'", "it's"),
        (r'"a\tb"', "a\tb"),
        (r"'\u00e9\101\\'", "éA\\"),
        ("'?'", "?"),
    ],
)
def test_quoted_values(write, written, read):
    text = f"@relation x\n@attribute a {{first, {written}}}\n@attribute l {{0,1}}\n@data\n {written} ,1\n"
    bunch = read_arff(write(text), ["l"])
    assert (bunch.categories, bunch.data.tolist()) == ({"a": ["first", read]}, [[1.0]])
    (row,) = read_arff(write(text.replace(f" {written} ,1", f"{{0 {written}, 1 1}}")), ["l"], dense=True).data.tolist()
    assert row == [1.0]


def test_dense_option(write):
    path = write(SPARSE)
    data = read_arff(path, dense=True).data
    assert isinstance(data, np.ndarray)
    np.testing.assert_array_equal(data, read_arff(path).data.toarray())


@pytest.mark.parametrize(("count", "expected"), [(1, ["a"]), (2, ["a", "b"]), (-1, ["c"]), (-2, ["b", "c"])])
@pytest.mark.parametrize("rest", ["", " -split-number 3"])
@pytest.mark.parametrize("template", ["'set: -C {}{}'", '"set: -C {}{}"  % note', "'set: -C {}{}' %50"])
def test_meka_header(write, count, expected, rest, template):
    columns = "".join(f"@attribute {name} {{0,1}}\n" for name in "abc")
    header = template.format(count, rest)
    bunch = read_arff(write(f"@relation {header}\n{columns}@data\n1,0,1\n"))
    assert bunch.target_names == expected


def test_xml_goes_before_the_meka_header(write):
    write('<labels><label name="size"/></labels>', "texts.xml")
    with pytest.raises(ValueError, match=r"Label 'size' has the value '2\.5'"):
        read_arff(write(SPARSE, "texts.arff"))


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        ("{TRUE,FALSE}", "TRUE", 1),
        ("{false, true}", "false", 0),
        ("{1,0}", "0", 0),
        ("{'0','1'}", "'1'", 1),
        ("numeric", "1", 1),
        ("real", "0.0", 0),
        ("{0,1,2}", "1", 1),
    ],
)
def test_ways_to_write_a_label(write, declared, value, expected):
    text = f"@relation x\n@attribute a numeric\n@attribute l {declared}\n@data\n5,{value}\n"
    assert read_arff(write(text), ["l"]).target.tolist() == [[expected]]


def test_unknown_labels_are_nan(write):
    text = "@relation x\n@attribute a numeric\n@attribute l {0,1}\n@attribute m numeric\n@data\n5,?,1\n6,1,?\n"
    target = read_arff(write(text), ["l", "m"]).target
    np.testing.assert_array_equal(target, [[np.nan, 1], [1, np.nan]])


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("plain", "plain"),
        ("'two words'", "two words"),
        (r"'rock \'n\' roll'", "rock 'n' roll"),
        (r'"5\" disc"', '5" disc'),
        (r"m\'usica", r"m\'usica"),
        ("'100% {x}, y'", "100% {x}, y"),
        ("été", "été"),
        ("@data", "@data"),
    ],
)
def test_attribute_names(write, written, name):
    text = f"@relation x\n@attribute {written} {{0 , 1}}\n@attribute l{{0,1}}\n@data\n1,0\n"
    assert read_arff(write(text), ["l"]).feature_names == [name]
    assert read_arff(write(text), [name]).target_names == [name]


def test_line_ends_byte_order_mark_and_latin_1(tmp_path):
    text = "@relation x\r\n@attribute été numeric\r\n@attribute l {0,1}\r\n@data\r\n5,1\r\n"
    for encoding in ("utf-8-sig", "latin-1"):
        path = tmp_path / f"{encoding}.arff"
        path.write_bytes(text.encode(encoding))
        bunch = read_arff(path, ["l"])
        assert bunch.feature_names == ["été"]
        assert bunch.data.tolist() == [[5.0]]


@pytest.mark.parametrize("text", [DENSE, SPARSE])
def test_as_frame_and_return_X_y(write, text):
    labels = ["quiet", "very happy"] if text is DENSE else None
    path = write(text)
    plain = read_arff(path, labels, dense=True)
    framed = read_arff(path, labels, as_frame=True)
    assert list(framed.data.columns) == plain.feature_names
    assert list(framed.target.columns) == plain.target_names
    assert list(framed.frame.columns) == plain.feature_names + plain.target_names
    np.testing.assert_array_equal(framed.data.to_numpy(), plain.data)
    np.testing.assert_array_equal(framed.target.to_numpy(), plain.target)
    assert isinstance(framed.data.dtypes.iloc[0], pd.SparseDtype) == (text is SPARSE)
    X, Y = read_arff(path, labels, return_X_y=True, dense=True)
    np.testing.assert_array_equal(X, plain.data)
    np.testing.assert_array_equal(Y, plain.target)


HEAD = "@relation x\n@attribute a numeric\n@attribute l {0,1}\n@data\n"


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        (HEAD + "1,0\n", None, r"labels=\[.*xml.*-C n"),
        (HEAD + "1,0\n", ["l", "m"], r"not columns of songs.arff: \['m'\]"),
        (HEAD + "1,0\n", [], "names no label"),
        (HEAD + "1.5,0\n", ["a"], r"Label 'a' has the value '1\.5'"),
        (HEAD + "1,0\n2,x\n", ["l"], "line 6: 'x' is not one of the declared values"),
        (HEAD + "1,0\n\n% note\n2,0,1\n", ["l"], "line 8: 3 values for 2 attributes"),
        (HEAD + "1,0\n2 %d\n", ["l"], "line 6: cannot read"),
        (HEAD + "{0 1}\n{5 1}\n", ["l"], "line 6: there is no attribute 5"),
        (HEAD + "{0 1}\n1,0\n", ["l"], "line 6: not a sparse row"),
        (HEAD + "{5 ?}\n", ["l"], "line 5: there is no attribute 5"),
        (HEAD + "{0 1, }\n", ["l"], "line 5: cannot read"),
        (HEAD + "{0 1 1 0}\n", ["l"], "line 5: cannot read"),
        (HEAD + "one,0\n", ["l"], "line 5.*float: 'one'"),
        (HEAD, ["l"], "no rows"),
        ("@relation x\n@attribute a numeric\n", ["a"], "no @data"),
        ("@relation x\n@data\n1\n", ["a"], "no attribute"),
        ("a,b\n1,2\n", ["a"], "no @data"),
        (HEAD.replace(" a ", " l "), ["l"], "two attributes have the name 'l'"),
        (HEAD.replace("numeric", "string"), ["l"], "'a' has the type 'string'"),
        (HEAD.replace("numeric", "date 'yyyy'"), ["l"], "'a' has the type 'date'"),
        (HEAD.replace("numeric", "{x y, z}") + "z,1\n", ["l"], "type of attribute 'a'"),
        (HEAD.replace("numeric", ""), ["l"], "declaration '@attribute a'"),
        (HEAD.replace(" x", " 'x: -C 0'") + "1,0\n", None, "-C 0.*2 columns"),
        (HEAD.replace(" x", " 'x: -C -2'") + "1,0\n", None, "-C -2.*2 columns"),
        (HEAD.replace("{0,1}", "{low,high}") + "1,high\n", ["l"], "Label 'l' has the value 'high'"),
    ],
)
def test_bad_files(write, text, labels, message):
    with pytest.raises(ValueError, match=message):
        read_arff(write(text), labels)


def test_meka_count_before_weka_filters_is_not_trusted(write):
    relation = "'M: -C 1 -I 0-weka.filters.unsupervised.attribute.Remove-R1'"
    with pytest.raises(ValueError, match="may have moved columns"):
        read_arff(write(HEAD.replace(" x", f" {relation}") + "1,0\n"))


def test_bad_xml_and_missing_files(write, tmp_path):
    songs = write(DENSE)
    with pytest.raises(ValueError, match="not a Mulan XML"):
        read_arff(songs, write("<labels>", "bad.xml"))
    with pytest.raises(FileNotFoundError):
        read_arff(songs, tmp_path / "none.xml")
    with pytest.raises(FileNotFoundError):
        read_arff(tmp_path / "none.arff")


def test_truncated_gzip(write):
    path = write(DENSE, "songs.arff.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="gzip"):
        read_arff(path, ["quiet"])


class TestCache:
    @pytest.fixture
    def parsed(self, monkeypatch):
        """Count how often a file is really parsed."""
        calls = []
        original = arff_table.parse_arff
        monkeypatch.setattr(arff_table, "parse_arff", lambda text: calls.append(1) or original(text))
        return calls

    @pytest.mark.parametrize("text", [DENSE, SPARSE])
    def test_second_reading_is_the_same_and_parses_nothing(self, write, tmp_path, parsed, text):
        path = write(text)
        labels = ["quiet"] if text is DENSE else None
        first, second = (read_arff(path, labels, data_home=tmp_path / "home") for _ in range(2))
        assert len(parsed) == 1
        assert type(first.data) is type(second.data)
        as_dense = [b.data.toarray() if sparse.issparse(b.data) else b.data for b in (first, second)]
        np.testing.assert_array_equal(*as_dense)
        np.testing.assert_array_equal(first.target, second.target)
        for key in ("feature_names", "target_names", "categories", "name", "DESCR"):
            assert first[key] == second[key]

    def test_an_edited_file_is_read_anew(self, write, tmp_path, parsed):
        for tempo in (1, 2):
            path = write(f"{HEAD}{tempo},0\n")
            assert read_arff(path, ["l"], data_home=tmp_path / "home").data.item() == tempo
        assert len(parsed) == 2

    def test_labels_are_chosen_after_the_cache(self, write, parsed):
        path = write(DENSE)
        assert read_arff(path, ["quiet"]).target_names == ["quiet"]
        assert read_arff(path, ["very happy"]).target_names == ["very happy"]
        assert len(parsed) == 1

    def test_cache_off(self, write, tmp_path, parsed):
        for _ in range(2):
            read_arff(write(DENSE), ["quiet"], cache=False, data_home=tmp_path / "home")
        assert len(parsed) == 2
        assert not (tmp_path / "home").exists()

    @pytest.mark.parametrize("damage", [lambda old: b"", lambda old: old[:100], lambda old: b"x" * 999])
    def test_a_damaged_entry_is_replaced(self, write, tmp_path, parsed, damage):
        path, home = write(DENSE), tmp_path / "home"
        read_arff(path, ["quiet"], data_home=home)
        (entry,) = (home / "sylvan" / "parsed").iterdir()
        entry.write_bytes(damage(entry.read_bytes()))
        for _ in range(2):
            assert read_arff(path, ["quiet"], data_home=home).target.sum() == 2
        assert len(parsed) == 2
        assert list(entry.parent.iterdir()) == [entry]

    def test_entries_hold_no_pickles(self, write, tmp_path):
        read_arff(write(DENSE), ["quiet"], data_home=tmp_path / "home")
        (entry,) = (tmp_path / "home" / "sylvan" / "parsed").iterdir()
        with np.load(entry, allow_pickle=False) as content:
            assert all(content[key].dtype != object for key in content)

    def test_no_folder_to_write_in_is_no_error(self, write, tmp_path):
        blocked = tmp_path / "file"
        blocked.write_text("a file, where a folder is wanted")
        assert read_arff(write(DENSE), ["quiet"], data_home=blocked).target.sum() == 2

    def test_a_failed_write_is_no_error_and_leaves_nothing(self, write, tmp_path, monkeypatch):
        def full(*args, **kwargs):
            raise OSError("disk full")

        monkeypatch.setattr(np, "savez", full)
        assert read_arff(write(DENSE), ["quiet"], data_home=tmp_path / "home").target.sum() == 2
        assert list((tmp_path / "home" / "sylvan" / "parsed").iterdir()) == []


def test_a_long_run_of_blanks_in_a_bad_row_is_refused_at_once():
    row = "1," + " " * 200_000 + "y z"  # quadratic time would be minutes
    with pytest.raises(ValueError, match="line 5"):
        arff_table.parse_arff(f"@relation x\n@attribute a numeric\n@attribute b {{y}}\n@data\n{row}\n")
