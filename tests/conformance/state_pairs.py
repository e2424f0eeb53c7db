"""Pairs of queries, and what Spark's state does when the second goes on where the first has stopped.

equal: the second gives the rows that it gives on state of its own. wrong: it gives others. error: it fails.
What is not equal is refused. A few that are equal are refused all the same, as Spark's guide forbids them:
another kind of join, another aggregate, other keys that come out as they came in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from drawdown.spec.sink import OutputMode

Frames = Mapping[str, DataFrame]
QueryText = str | Callable[[Frames], DataFrame]
Outcome = Literal["equal", "wrong", "error"]


@dataclass(frozen=True)
class Pair:
    before: QueryText
    now: QueryText
    outcome: Outcome
    mode: OutputMode = "append"
    common: bool = False
    by_guide: bool = False


def _by_key(computed: str, where: str = "") -> str:
    return f"SELECT k, {computed} FROM e {where} GROUP BY k"


def _grouped(keys: str, rows: str = "e") -> str:
    return f"SELECT {keys}, count(*) n FROM {rows} GROUP BY {keys}"


def _inner(selected: str, more: str = "", left: str = "e", right: str = "n", kind: str = "") -> str:
    return (
        f"SELECT {selected} FROM {left} e {kind} JOIN {right} n"
        f" ON e.k = n.k AND e.at BETWEEN n.at AND n.at + INTERVAL 1 HOUR {more}"
    )


def _bounded(kind: str, hours: int, selected: str = "e.k, e.v, n.v") -> str:
    return (
        f"SELECT {selected} FROM e {kind} JOIN n"
        f" ON e.k = n.k AND e.at BETWEEN n.at AND n.at + INTERVAL {hours} HOUR"
    )


def _distinct(*keys: str, within: bool = False, selected: str = "k") -> Callable[[Frames], DataFrame]:
    def query(frames: Frames) -> DataFrame:
        frame = frames["e"]
        made = frame.dropDuplicatesWithinWatermark([*keys]) if within else frame.dropDuplicates([*keys])
        return made.select(selected)

    return query


def _united(first: str, second: str) -> str:
    return f"(SELECT {first} FROM e UNION ALL SELECT {second} FROM e)"


_WINDOW = "SELECT window.start, count(*) n FROM e GROUP BY window(at, '{}')"
_SESSION = "SELECT session_window.start, count(*) n FROM e GROUP BY session_window(at, '{}'), {}"
_TWO = "SELECT k, {} FROM (SELECT k, max(v) hi, min(v) lo, sum(v) s, count(v) c FROM e GROUP BY k)"

PAIRS: Mapping[str, Pair] = {
    # Aggregates
    "another aggregate of the same type": Pair(
        _by_key("max(v) x"), _by_key("min(v) x"), "wrong", "update", True
    ),
    "the other one of two aggregates is selected": Pair(
        _TWO.format("hi x"), _TWO.format("lo x"), "wrong", "update", True
    ),
    "an aggregate that nobody selects": Pair(
        _by_key("max(v) x"), _TWO.format("hi x"), "equal", "update", True
    ),
    "two unselected aggregates change": Pair(
        _TWO.format("hi x"),
        "SELECT k, x FROM (SELECT k, max(v) x, sum(w) y FROM e GROUP BY k)",
        "equal",
        "update",
    ),
    "one of two aggregates is no longer selected": Pair(
        _TWO.format("hi, lo"), _TWO.format("hi, 0 AS lo"), "error", "update"
    ),
    "aggregates swapped in what is selected": Pair(
        _TWO.format("hi x, lo y"), _TWO.format("lo x, hi y"), "wrong", "update"
    ),
    "aggregates swapped where they are computed": Pair(
        _by_key("max(v) x, min(v) y"), _by_key("min(v) x, max(v) y"), "wrong", "update"
    ),
    "another column in an aggregate": Pair(_by_key("sum(v) x"), _by_key("sum(w) x"), "wrong", "update", True),
    "another column behind the same name": Pair(
        "SELECT k, sum(x) s FROM (SELECT k, v AS x FROM e) GROUP BY k",
        "SELECT k, sum(x) s FROM (SELECT k, w AS x FROM e) GROUP BY k",
        "wrong",
        "update",
    ),
    "another name of the same column": Pair(
        _by_key("sum(v) s"),
        "SELECT kk, sum(x) t FROM (SELECT k AS kk, v AS x FROM e) GROUP BY kk",
        "equal",
        "update",
        True,
    ),
    "one more aggregate": Pair(_by_key("sum(v) s"), _by_key("sum(v) s, max(v) x"), "error", "update"),
    "the same aggregate once more": Pair(
        _by_key("sum(v) s"), _by_key("sum(v) s, 2 * sum(v) x"), "equal", "update"
    ),
    "what is made of an aggregate": Pair(_by_key("sum(v) s"), _by_key("10 * sum(v) s"), "equal", "update"),
    "HAVING": Pair(_by_key("sum(v) s"), _by_key("sum(v) s") + " HAVING sum(v) > 3", "equal", "update"),
    "HAVING with an aggregate of its own": Pair(
        _by_key("sum(v) s"), _by_key("sum(v) s") + " HAVING max(w) > 0", "error", "update"
    ),
    "a filter that takes every row": Pair(
        _by_key("sum(v) s"), _by_key("sum(v) s", "WHERE v > 0"), "equal", "update", True
    ),
    "a filter of an aggregate": Pair(
        _by_key("count(*) s"), _by_key("count(*) FILTER (WHERE j = 'x') s"), "wrong", "update"
    ),
    "an average written out": Pair(_by_key("avg(v) s"), _by_key("sum(v) / count(v) s"), "error", "update"),
    "sum and count that are not NULL become an average": Pair(
        _by_key("sum(double(v)) s, count(v) c"), _by_key("avg(double(v)) s, count(v) c"), "error", "update"
    ),
    "another type of the same column": Pair(_by_key("max(v) x"), _by_key("max(int(v)) x"), "error", "update"),
    "a constant folded": Pair(_by_key("sum(v + 3) s"), _by_key("sum(v + 1 + 2) s"), "equal", "update"),
    "another constant": Pair(_by_key("sum(v + 1) s"), _by_key("sum(v + 2) s"), "wrong", "update"),
    "an expression in a column of its own": Pair(
        _by_key("sum(v + w) s"),
        "SELECT k, sum(x) s FROM (SELECT k, v + w AS x FROM e) GROUP BY k",
        "equal",
        "update",
    ),
    "the sides of a sum swapped": Pair(_by_key("sum(v + w) s"), _by_key("sum(w + v) s"), "equal", "update"),
    "a common table expression": Pair(
        _by_key("sum(v) s"),
        "WITH c AS (SELECT k, v FROM e) SELECT k, sum(v) s FROM c GROUP BY k",
        "equal",
        "update",
    ),
    "a list of what was distinct": Pair(
        _by_key("size(collect_set(length(j))) s"),
        _by_key("size(collect_list(length(j))) s"),
        "wrong",
        "update",
    ),
    "what is distinct of a list": Pair(
        _by_key("size(collect_list(length(j))) s"),
        _by_key("size(collect_set(length(j))) s"),
        "equal",
        "update",
        by_guide=True,
    ),
    # Keys
    "another key": Pair(_grouped("k"), _grouped("j"), "wrong", "update", True),
    "another key behind the same name": Pair(
        _grouped("c", "(SELECT k AS c FROM e)"), _grouped("c", "(SELECT j AS c FROM e)"), "wrong", "update"
    ),
    "two keys swapped": Pair(_grouped("k, j"), _grouped("j, k"), "wrong", "update", True),
    "one more key": Pair(_grouped("k"), _grouped("k, j"), "error", "update"),
    "a constant key more": Pair(_grouped("k"), _grouped("k, 'x'"), "equal", "update"),
    "the same key twice": Pair(_grouped("k"), _grouped("k, k"), "equal", "update"),
    "the key upper": Pair(_grouped("k"), _grouped("upper(k)"), "wrong", "update"),
    "the key of another type": Pair(_grouped("k"), _grouped("length(k)"), "error", "update"),
    "a key that cannot be NULL": Pair(
        _grouped("k"), _grouped("k", "e WHERE k IS NOT NULL"), "equal", "update"
    ),
    "a key that can be NULL": Pair(_grouped("k", "e WHERE k IS NOT NULL"), _grouped("k"), "equal", "update"),
    "an exploded column": Pair(
        _grouped("x", "(SELECT explode(a) x FROM e)"),
        _grouped("x", "(SELECT explode(b) x FROM e)"),
        "wrong",
        "update",
        True,
    ),
    "explode in a lateral view": Pair(
        _grouped("x", "(SELECT explode(a) x FROM e)"),
        _grouped("y", "e LATERAL VIEW explode(a) t AS y"),
        "equal",
        "update",
    ),
    "the other column of an exploded map": Pair(
        _grouped("x", "(SELECT x FROM e LATERAL VIEW explode(map(k, j)) AS x, y)"),
        _grouped("y", "(SELECT y FROM e LATERAL VIEW explode(map(k, j)) AS x, y)"),
        "error",
        "update",
    ),
    "the key of a union's second branch": Pair(
        _grouped("k", _united("k", "j")), _grouped("k", _united("k", "k")), "wrong", "update", True
    ),
    "the branches of a union swapped": Pair(
        _grouped("k", _united("k", "j")), _grouped("k", _united("j AS k", "k")), "equal", "update"
    ),
    "pairs of columns of a union's branches": Pair(
        f"SELECT k, max(v) x FROM {_united('k, v', 'j, w')} GROUP BY k",
        f"SELECT k, max(v) x FROM {_united('k, w AS v', 'j, v')} GROUP BY k",
        "wrong",
        "update",
    ),
    "a branch of a union more": Pair(_grouped("k"), _grouped("k", _united("k", "j")), "error", "update"),
    "a complete table": Pair(_by_key("max(v) x"), _by_key("min(v) x"), "wrong", "complete"),
    "a limit of a complete table": Pair(
        _by_key("max(v) x") + " ORDER BY k LIMIT 1",
        _by_key("max(v) x") + " ORDER BY k LIMIT 2",
        "equal",
        "complete",
    ),
    "the total of all rows": Pair("SELECT sum(v) s FROM e", "SELECT sum(w) s FROM e", "wrong", "complete"),
    # Windows
    "another window": Pair(_WINDOW.format("1 hour"), _WINDOW.format("2 hours"), "wrong", common=True),
    "a window of the same length": Pair(_WINDOW.format("1 hour"), _WINDOW.format("60 minutes"), "equal"),
    "another start of a window": Pair(
        _WINDOW.format("1 hour"), _WINDOW.format("1 hour', '1 hour', '10 minutes"), "wrong"
    ),
    "a sliding window": Pair(_WINDOW.format("1 hour"), _WINDOW.format("1 hour', '30 minutes"), "error"),
    "a window's end is selected": Pair(
        _WINDOW.format("1 hour"),
        _WINDOW.format("1 hour").replace("window.start", "window.end"),
        "equal",
    ),
    "another key of a session": Pair(
        _SESSION.format("20 minutes", "k"), _SESSION.format("20 minutes", "j"), "wrong"
    ),
    "another gap of a session": Pair(
        _SESSION.format("20 minutes", "k"), _SESSION.format("5 minutes", "k"), "wrong"
    ),
    # Deduplication
    "another column of dropDuplicates": Pair(_distinct("k"), _distinct("j"), "wrong", common=True),
    "columns of dropDuplicates swapped": Pair(_distinct("k", "j"), _distinct("j", "k"), "wrong"),
    "another column is selected after dropDuplicates": Pair(
        _distinct("k"), _distinct("k", selected="j"), "equal"
    ),
    "dropDuplicates within the watermark": Pair(_distinct("k"), _distinct("k", within=True), "error"),
    "another column within the watermark": Pair(
        _distinct("k", within=True), _distinct("j", within=True), "wrong"
    ),
    "another column of DISTINCT": Pair(
        "SELECT DISTINCT k FROM e", "SELECT DISTINCT j FROM e", "equal", "update", by_guide=True
    ),
    "another key of what is complete": Pair(
        "SELECT k FROM e GROUP BY k", "SELECT j FROM e GROUP BY j", "wrong", "complete"
    ),
    "DISTINCT written as GROUP BY": Pair(
        "SELECT DISTINCT k, j FROM e", "SELECT k, j FROM e GROUP BY k, j", "equal", "update"
    ),
    "DISTINCT over what is distinct": Pair(
        "SELECT k FROM e GROUP BY k", "SELECT DISTINCT k FROM (SELECT k, j FROM e)", "equal", "update"
    ),
    # Joins
    "another column of a join's right side": Pair(
        _inner("e.k, n.v x"), _inner("e.k, n.w x"), "wrong", common=True
    ),
    "another column of a join's left side": Pair(_inner("e.v x"), _inner("e.w x"), "wrong"),
    "one column more of a join": Pair(_inner("e.k, n.v"), _inner("e.k, n.v, n.w"), "error", common=True),
    "one column less of a join": Pair(_inner("n.v, n.w"), _inner("n.v, 0 AS w"), "error"),
    "the columns of a join in another order": Pair(
        _inner("e.k, n.v, n.w"), _inner("n.w, e.k, n.v"), "equal", common=True
    ),
    "columns of a side in another order": Pair(
        _inner("n.v, n.w", right="(SELECT k, at, v, w FROM n)"),
        _inner("n.v, n.w", right="(SELECT k, at, w, v FROM n)"),
        "wrong",
    ),
    "what is made of a join's columns": Pair(_inner("e.k, n.v x"), _inner("e.k, 10 * n.v x"), "equal"),
    "an expression below a join": Pair(
        _inner("n.x", right="(SELECT k, at, v AS x FROM n)"),
        _inner("n.x", right="(SELECT k, at, v + 1 AS x FROM n)"),
        "wrong",
    ),
    "another name below a join": Pair(
        _inner("n.x y", right="(SELECT v AS x, k, at FROM n)"),
        _inner("n.v y", right="(SELECT v, k, at FROM n)"),
        "equal",
    ),
    "a column of a condition above a join": Pair(
        _inner("e.k, n.v"), _inner("e.k, n.v", "WHERE e.w <> n.w"), "error"
    ),
    "a condition on columns that are kept": Pair(
        _inner("e.k, e.v, n.v"), _inner("e.k, e.v, n.v", "WHERE e.v + n.v > 0"), "equal"
    ),
    "a filter of one side of a join": Pair(
        _inner("e.k, e.v, n.v"), _inner("e.k, e.v, n.v", "AND e.v > 0"), "equal"
    ),
    "another key of a join": Pair(
        _inner("e.v, n.v"), _inner("e.v, n.v").replace("e.k = n.k", "e.j = n.j"), "wrong", common=True
    ),
    "the sides of a join's condition swapped": Pair(
        _inner("e.v, n.v"), _inner("e.v, n.v").replace("e.k = n.k", "n.k = e.k"), "equal"
    ),
    "keys of a join swapped": Pair(
        _inner("e.v, n.v", "AND e.j = n.j"),
        _inner("e.v, n.v").replace("e.k = n.k", "e.j = n.j AND e.k = n.k"),
        "wrong",
    ),
    "the sides of a join swapped": Pair(
        _inner("e.v x, n.v y"), _inner("e.v x, n.v y", left="n", right="e"), "wrong"
    ),
    "a left join of an inner one": Pair(_bounded("", 1), _bounded("LEFT", 1), "error", common=True),
    "an inner join of a left one": Pair(_bounded("LEFT", 1), _bounded("", 1), "equal", by_guide=True),
    "a right join of a left one": Pair(_bounded("LEFT", 1), _bounded("RIGHT", 1), "error"),
    "a full join of a left one": Pair(_bounded("LEFT", 1), _bounded("FULL", 1), "error"),
    "a left join of a full one": Pair(_bounded("FULL", 1), _bounded("LEFT", 1), "equal", by_guide=True),
    "a semi join of an inner one": Pair(
        _bounded("", 1, "e.k, e.v"), _bounded("LEFT SEMI", 1, "e.k, e.v"), "equal", by_guide=True
    ),
    "a wider bound of a join": Pair(_bounded("", 1), _bounded("", 3), "wrong", common=True),
    "a narrower bound of a join": Pair(_bounded("", 3), _bounded("", 1), "equal"),
    "a narrower bound of a left join": Pair(_bounded("LEFT", 3), _bounded("LEFT", 1), "wrong"),
    "a wider bound of a left join": Pair(_bounded("LEFT", 1), _bounded("LEFT", 3), "wrong"),
    "another condition of a left join": Pair(
        _bounded("LEFT", 1), _bounded("LEFT", 1) + " AND e.v < n.v", "wrong"
    ),
    "another column of a static source in a join": Pair(
        _inner("e.k, e.x", left="(SELECT e.k, e.at, d.x FROM e JOIN d ON e.k = d.k)"),
        _inner("e.k, e.x", left="(SELECT e.k, e.at, d.y AS x FROM e JOIN d ON e.k = d.k)"),
        "wrong",
    ),
    "another static source in a join": Pair(
        _inner("e.k, e.x", left="(SELECT e.k, e.at, d.x FROM e JOIN d ON e.k = d.k)"),
        _inner("e.k, e.x", left="(SELECT e.k, e.at, d.x FROM e JOIN d2 d ON e.k = d.k)"),
        "wrong",
    ),
    "the time of the batch below a join": Pair(
        _inner("e.k, e.t IS NULL x", left="(SELECT *, current_timestamp() t FROM e)"),
        _inner("e.k, e.t IS NOT NULL x", left="(SELECT *, current_timestamp() t FROM e)"),
        "equal",
    ),
    "an aggregate below a join's window": Pair(
        "SELECT w.start, count(*) n FROM (SELECT window(e.at, '1 hour') w FROM e JOIN n"
        " ON e.k = n.k AND e.at BETWEEN n.at AND n.at + INTERVAL 1 HOUR) GROUP BY w",
        "SELECT w.start, count(*) n FROM (SELECT window(n.at, '1 hour') w FROM e JOIN n"
        " ON e.k = n.k AND e.at BETWEEN n.at AND n.at + INTERVAL 1 HOUR) GROUP BY w",
        "wrong",
    ),
    # Several operators, none, and limits
    "deduplication before an aggregate": Pair(
        lambda frames: frames["e"].groupBy("k").count(),
        lambda frames: frames["e"].dropDuplicates(["k", "j"]).groupBy("k").count(),
        "error",
        "update",
    ),
    "an aggregate of nothing that was there before": Pair(
        "SELECT k, v FROM e", _by_key("sum(v) s"), "error", "update"
    ),
    "an aggregate that is taken away": Pair(_by_key("sum(v) s"), "SELECT k, v FROM e", "error", "update"),
    "another limit": Pair("SELECT k, v FROM e LIMIT 3", "SELECT k, v FROM e LIMIT 9", "wrong"),
    "another column under a limit": Pair("SELECT k, v FROM e LIMIT 9", "SELECT j, w FROM e LIMIT 9", "equal"),
    "a Python function above an aggregate": Pair(
        lambda frames: frames["e"].groupBy("k").agg(F.sum("v").alias("s")),
        lambda frames: frames["e"].groupBy("k").agg(F.sum("v").alias("s")).select("k", _tenfold("s")),
        "equal",
        "update",
    ),
    "a Python function of another column": Pair(
        lambda frames: frames["e"].groupBy(_tenfold(F.expr("v % 3"))).agg(F.count("k").alias("s")),
        lambda frames: frames["e"].groupBy(_tenfold(F.expr("w % 3"))).agg(F.count("k").alias("s")),
        "wrong",
        "update",
    ),
}


@F.udf(LongType())
def _tenfold(value: int) -> int:
    return 10 * value
