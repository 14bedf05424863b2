"""Text files as they come: other decimal signs, dates and encodings, lines before the header and after the records."""

from __future__ import annotations

import codecs
import contextlib
import encodings.aliases
import gzip
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from htf import Axis, Domain, InputError, read_points
from htf.ingest.reading import STATELESS
from htf.ingest.time_formats import LIKELY, TimeFormat, likely_formats
from support import counted

MAP = Domain.from_bounds(0, 0, 4, 4, 4)
HOURS = Domain((*MAP.axes, Axis("hour", 0, 24, 24)))
PLAIN = "lon,lat\n0.5,1.5\n2.5,3.5\n"


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def cells(source: Path, **options: Any) -> Any:
    return counted(read_points(source, MAP, **options))


@pytest.fixture
def plain(tmp_path: Path) -> Any:
    return cells(write(tmp_path / "plain.csv", PLAIN))


def test_decimal_commas(tmp_path: Path, plain: Any) -> None:
    path = write(tmp_path / "a.csv", "lon;lat\n0,5;1,5\n2,5;3,5\n")
    assert cells(path, decimal=",") == plain
    with pytest.raises(InputError, match="another decimal sign: give --read decimal=,"):
        cells(path)
    quoted = write(tmp_path / "b.csv", 'lon,lat\n"0,5","1,5"\n" 2,5 ","3,5"\n')
    assert cells(quoted, decimal=",") == plain


def test_a_comma_does_not_group_digits(tmp_path: Path) -> None:
    """With decimal commas, a point or two commas make no number."""
    path = write(tmp_path / "a.csv", "lon;lat\n0,5;1,5\n0.5;1,5\n1.000,5;1\n0,0,5;1\n")
    assert sum(cells(path, decimal=",").values()) == 1


def test_most_numbers_with_commas_are_refused_before_a_charge(tmp_path: Path) -> None:
    """A few whole numbers among them would be released alone."""
    path = write(tmp_path / "a.csv", "lon;lat\n0,5;1,5\n2,5;3,5\n1;1\n")
    with pytest.raises(InputError, match=r"most rows cannot be read: .*--read decimal=,"):
        cells(path, tell=print)
    assert sum(cells(path, tell=print, allow_empty=True).values()) == 1


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "latin-1", "utf-8-sig"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    text = "Länge;Breite;Wer\n0.5;1.5;Jürgen\n2.5;3.5;Jörg\n2.5;3.5;Jörg\n"
    options: dict[str, Any] = {"columns": ["Länge", "Breite"], "user": "Wer", "max_records": 1}
    expected = cells(write(tmp_path / "plain.csv", text), **options)
    found = cells(write(tmp_path / "a.csv", text, encoding), encoding=encoding, **options)
    assert found == expected
    assert sum(found.values()) == 2


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_error_names_the_encoding_to_give(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "lon;lat;who\n0.5;1.5;Jürgen\n", encoding)
    with pytest.raises(InputError, match=f"not text in UTF-8.*--read encoding={encoding}"):
        cells(path)
    with pytest.raises(InputError, match="not text in utf-8-sig: give its encoding"):
        cells(path, skip_lines=1)


def test_a_wrong_encoding(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "lon,lat,who\n0.5,1.5,\N{SNOWMAN}\n")
    with pytest.raises(InputError, match="is not text in ascii: give its encoding"):
        cells(path, encoding="ascii")
    with pytest.raises(InputError, match="there is no encoding 'klingon'"):
        cells(path, encoding="klingon")
    with pytest.raises(InputError, match="there is no encoding 'rot13'"):
        cells(path, encoding="rot13")


def encodings_of_python() -> set[str]:
    found = set()
    for name in {*encodings.aliases.aliases.values(), "cp1252", "utf_8_sig"}:
        with contextlib.suppress(LookupError):
            found.add(codecs.lookup(name).name)
    return found


def test_an_encoding_in_which_a_record_changes_others_is_refused(tmp_path: Path) -> None:
    """One that switches, by a sign in a name, how all further bytes are read."""
    path = write(tmp_path / "a.csv", "lon,lat,who\n0.5,1.5,~{\n2.5,1.5,bob\n")
    for name in ("hz", "iso2022_jp", "ISO-2022-KR", "utf-7", "unicode_escape", "punycode", "idna"):
        with pytest.raises(InputError, match=f"'{name}' are not read.*convert them to utf-8"):
            cells(path, encoding=name)


def keeps_no_state(name: str) -> bool:
    """Whether a line is read in the same way after any bytes, or the file is refused."""
    draw = random.Random(1)
    signs = [
        b"~{",
        b"+",
        b"+AG",
        b"\x1b$B",
        b"\x1b$)C\x0e",
        b"\\",
        *(bytes([n]) for n in range(256)),
    ]
    for before in [*signs, *(draw.randbytes(draw.randint(2, 4)) for _ in range(500))]:
        try:
            decoded = (before + "\nab01".encode(name)).decode(name)
        except UnicodeError:
            continue
        if not decoded.endswith("\nab01"):
            return False
    return True


def test_an_encoding_that_is_read_keeps_no_state() -> None:
    wide = (
        "utf-16",
        "utf-32",
        "utf-8-sig",
    )  # these begin with a mark; the first two have no single bytes
    found = {name for name in encodings_of_python() if not name.startswith(wide)}
    read = set(filter(STATELESS.fullmatch, found))
    assert {"cp1252", "gb18030", "shift_jis", "euc_jp", "big5", "iso8859-15", "utf-8"} <= read
    assert list(filter(keeps_no_state, sorted(read))) == sorted(read)
    assert not any(map(keeps_no_state, ("iso2022_jp", "unicode-escape")))


@pytest.mark.parametrize("packed", [False, True])
def test_lines_before_and_after(packed: bool, tmp_path: Path, plain: Any) -> None:
    text = 'Pings of May "2012\nSource: the city\n\n' + PLAIN + "Total,2,records\n\n"
    path = write(tmp_path / "a.csv", text)
    if packed:
        path = tmp_path / "a.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
    assert cells(path, skip_lines=3, skip_last=1) == plain
    with pytest.raises(
        InputError, match=r"line 4 of .*a.csv.* names the columns.*--read skip-lines=3"
    ):
        cells(path)
    with pytest.raises(InputError, match=r"line 7 \(3\) of .*a.csv.*--read skip-last=N"):
        cells(path, skip_lines=3)


def test_no_more_than_the_last_lines_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "lon,lat\n" + "0.5,1.5\n" * 5 + "Sum,\nMean,")
    for last, kept in ((1, 5), (2, 5), (4, 3), (6, 1)):
        assert sum(cells(path, skip_last=last).values()) == kept


def test_every_uneven_line_is_named_by_its_number(tmp_path: Path) -> None:
    rows = ["0.5,1.5", "0.5", "", '"0.5\n",1.5', "0.5,1.5,2.5"]
    path = write(tmp_path / "a.csv", "lon,lat\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"line 3 \(1\), line 7 \(3\)"):
        cells(path)


def test_unread_rows_are_named_by_the_lines_of_the_original(tmp_path: Path) -> None:
    """Whatever comes before them: skipped lines, empty ones, and line breaks within quotes."""
    rows = ["0.5,1.5,a", "", '0.5,1.5,"b\nb"', "x,1.5,c", "0.5,y,d"]
    path = write(tmp_path / "a.csv", "by the city\nlon,lat,who\n" + "\n".join(rows) + "\n")
    told: list[str] = []
    cells(path, skip_lines=1, tell=told.append)
    assert "'lon' holds no number there; see line 7." in told[-1]
    assert "'lat' holds no number there; see line 8." in told[-1]


def test_names_of_columns_may_differ_by_case(tmp_path: Path) -> None:
    text = "Lon,LAT,User,At\n0.5,1.5,a,2020-01-01T05:00:00\n0.5,1.5,a,2020-01-01T05:30:00\n"
    path = write(tmp_path / "a.csv", text)
    options: dict[str, Any] = {"user": "user", "max_records": 1, "time": "at"}
    found = read_points(path, HOURS, ["lon", "lat", "hour(at)"], **options)
    assert counted(found) == {(0, 1, 5): 1}
    write(path, text + "x,1.5,a,2020-01-01T05:00:00\n")
    told: list[str] = []
    read_points(path, HOURS, ["lon", "lat", "hour(at)"], tell=told.append, **options)
    assert "'lon' holds no number there; see line 4." in told[-1]
    write(path, text)
    import pandas as pd

    assert counted(read_points(pd.read_csv(path), HOURS, ["lon", "lat", "hour(at)"])) == {
        (0, 1, 5): 2
    }


def test_names_that_differ_by_case_alone_are_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "lon,lat,User,USER\n0.5,1.5,a,b\n")
    with pytest.raises(InputError, match=r"must name the columns.*It has 'USER', 'User'"):
        cells(path, user="user", max_records=1)
    table = {"lon": [0.5], "lat": [0.5], "User": ["a"], "USER": ["b"]}
    with pytest.raises(InputError, match="several are like it: name one of 'User', 'USER'"):
        read_points(table, MAP, user="user", max_records=1)


FORMS = {
    "%d.%m.%Y %H:%M": ("07.04.2012 08:30", 1333787400),
    "%d.%m.%Y": ("7.4.2012", 1333756800),
    "%m/%d/%Y %H:%M:%S": ("4/7/2012 8:30:05", 1333787405),
    "%m/%d/%Y %I:%M %p": ("4/7/2012 12:30 AM", 1333758600),
    "%d-%b-%y": ("07-Apr-12", 1333756800),
    "%d %B %Y": ("7 April 2012", 1333756800),
    "%Y%m%d%H%M": ("201204070830", 1333787400),
    "%Y-%m-%dT%H:%M:%S.%f%z": ("2012-04-07T08:30:00.999+02:00", 1333780200),
    "%a, %d %b %Y %T": ("Sat, 07 Apr 2012 08:30:00", 1333787400),
    "%y|%m|%d": ("69|01|02", -31449600),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_times(form: str) -> None:
    """Each text is read by itself, and whatever has another form is missing."""
    import ibis

    text, second = FORMS[form]
    others = ["", "x", text + "1x", "2012-02-30", text.replace("4", "x"), "30.02.2012"]
    column = ibis.memtable({"t": [text, *others]})
    found = ibis.duckdb.connect().execute(column.select(s=TimeFormat.read(form).seconds(column.t)))
    assert found.s[0] == second
    assert found.s[1:].isna().sum() >= len(others) - 1


def test_times_in_a_file(tmp_path: Path) -> None:
    text = "lon;lat;wann\n0.5;1.5;07.04.2012 08:30\n0.5;1.5;31.04.2012 09:30\n"
    path = write(tmp_path / "a.csv", text)
    columns = ["lon", "lat", "hour(wann)"]
    form = "%d.%m.%Y %H:%M"
    assert counted(read_points(path, HOURS, columns, time_format=form)) == {(0, 1, 8): 1}
    with pytest.raises(InputError, match=f"--read time-format='{form}'"):
        read_points(path, HOURS, columns)


@pytest.mark.parametrize("form", ["%d.%m", "%Y-%m-%d %I", "%Q", "%Y %Y %m %d", "%d.%m.%Y %b", "x"])
def test_forms_that_are_none(form: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the form of times"):
        read_points(write(tmp_path / "a.csv", PLAIN), MAP, time="lon", time_format=form)


def test_a_form_is_for_text() -> None:
    table = {"lon": [0.5], "lat": [0.5], "at": [20120407]}
    with pytest.raises(InputError, match="not text of the form"):
        read_points(table, HOURS, ["lon", "lat", "hour(at)"], time_format="%Y%m%d")


def test_likely_forms() -> None:
    assert likely_formats(["07.04.2012 08:30", "31.12.2012 23:59"])[0] == "%d.%m.%Y %H:%M"
    assert set(likely_formats(["04/05/2012"])) == {"%m/%d/%Y", "%d/%m/%Y"}
    assert likely_formats(["4/1/2014 0:11:00", "4/30/2014 0:11:00"])[0] == "%m/%d/%Y %H:%M:%S"
    assert likely_formats(["noon", "07.04.2012"]) == ()
    assert likely_formats(["", " "]) == ()
    assert Counter(LIKELY).most_common(1)[0][1] == 1


@pytest.mark.parametrize(
    "option", [{"encoding": "cp1252"}, {"skip_lines": 1}, {"skip_last": 1}, {"decimal": ","}]
)
def test_options_of_text_are_refused_for_tables(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is for text files: leave it out"):
        read_points({"lon": [0.5], "lat": [0.5]}, MAP, **option)
    with pytest.raises(InputError, match="decimal sign"):
        read_points({"lon": [0.5], "lat": [0.5]}, MAP, decimal=";")
