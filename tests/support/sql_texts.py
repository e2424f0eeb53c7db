"""Queries of the kinds that pipelines write, over two tables."""

from __future__ import annotations

TABLES = {
    "events": "id INT, name STRING, at TIMESTAMP, amount DOUBLE, tags ARRAY<STRING>,"
    " who STRUCT<first: STRING, last: STRING>",
    "people": "id INT, name STRING, age INT",
}

QUERIES = [
    "SELECT id, upper(name) AS name, at FROM events WHERE amount > 1.5",
    "SELECT * FROM events",
    "SELECT e.*, p.age FROM events e JOIN people p ON e.id = p.id",
    "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
    "SELECT name, window(at, '1 hour').start AS hour, sum(amount) AS total, avg(amount) AS mean, max(at) "
    "AS last FROM events GROUP BY name, window(at, '1 hour')",
    "SELECT name, session_window.start, session_window.end, count(*) AS cnt FROM events GROUP BY name, "
    "session_window(at, '5 minutes') ORDER BY name, start",
    "WITH big AS (SELECT id, amount * 2 AS twice FROM events WHERE amount > 10) SELECT b.id, twice, "
    "p.name FROM big b LEFT JOIN people p ON p.id = b.id",
    "SELECT id, name FROM events UNION ALL SELECT id, name FROM people",
    "SELECT id, tag FROM events LATERAL VIEW explode(tags) t AS tag",
    "SELECT id, explode(tags) AS tag FROM events",
    "SELECT id, who.first, who.last AS surname FROM events",
    "SELECT id, CASE WHEN amount > 10 THEN 'big' WHEN amount > 1 THEN 'mid' ELSE 'small' END AS size FROM "
    "events",
    "SELECT id, CAST(amount AS INT) AS whole, to_date(at) AS day, date_trunc('hour', at) AS hour FROM events",
    "SELECT id FROM events WHERE id IN (SELECT id FROM people WHERE age > 30)",
    "SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = e.id AND p.age > e.amount)",
    "SELECT id, (SELECT max(age) FROM people) AS oldest FROM events",
    "SELECT id, row_number() OVER (PARTITION BY name ORDER BY at DESC) AS nth FROM events",
    "SELECT id, sum(amount) OVER w AS running FROM events WINDOW w AS (PARTITION BY name ORDER BY at)",
    "SELECT DISTINCT name, coalesce(name, 'none') AS known FROM events",
    "SELECT name, count(*) AS n FROM events GROUP BY name HAVING count(*) > 1 ORDER BY n DESC LIMIT 5",
    "SELECT id, amount AS a, a * 2 AS b, b + 1 AS c FROM events",
    "SELECT id, transform(tags, t -> upper(t)) AS tags, filter(tags, x -> length(x) > 2) AS longs FROM "
    "events",
    "SELECT e.id AS event, p.name AS person, e.at FROM events AS e INNER JOIN people AS p ON e.id = p.id "
    "AND e.at > TIMESTAMP '2024-01-01 00:00:00'",
    "SELECT id, at + INTERVAL 1 HOUR AS later, at - INTERVAL '1' DAY AS earlier FROM events",
    "SELECT * EXCEPT (tags, who) FROM events",
    "SELECT id, name FROM (SELECT id, name, age FROM people WHERE age BETWEEN 10 AND 20) WHERE name LIKE "
    "'a%'",
    "SELECT s.id, s.n FROM (SELECT id, count(*) AS n FROM events GROUP BY id) s WHERE s.n > 1",
    "SELECT a.id, b.id AS other FROM events a CROSS JOIN people b",
    "SELECT id FROM events NATURAL JOIN people",
    "SELECT id, age FROM events JOIN people USING (id, name)",
    "SELECT e.id FROM events e LEFT SEMI JOIN people p ON e.id = p.id",
    "SELECT name, sum(amount) FILTER (WHERE id > 1) AS s, count(DISTINCT id) AS d FROM events GROUP BY ALL",
    "SELECT id, named_struct('a', id, 'b', name) AS s, map(name, id) AS m, array(id) AS l FROM events",
    "SELECT id, concat(name, '-', string(id)) AS label, name || 'x' AS more, substring(name, 1, 2) AS two "
    "FROM events",
    "SELECT id, year(at) AS y, month(at) AS m, day(at) AS d, hour(at) AS h, extract(MINUTE FROM at) AS mi "
    "FROM events",
    "SELECT id, IF(amount > 1, 'a', 'b') AS f, nvl(name, '') AS n, id / 2 AS half, id % 2 AS odd, id + 1 "
    "AS next FROM events",
    "SELECT date_format(at, 'yyyy-MM-dd') AS day, count(*) AS n, min(id) AS first_id FROM events GROUP BY "
    "date_format(at, 'yyyy-MM-dd')",
    "SELECT id, name IS NULL AS missing, amount > 1 AS big, NOT (id = 1) AS other, id IN (1, 2) AS few "
    "FROM events",
    "SELECT current_timestamp() AS now, current_date AS today, id FROM events",
    "WITH a AS (SELECT id, name FROM events), b AS (SELECT id, max(name) AS top FROM a GROUP BY id) "
    "SELECT b.id, b.top FROM b JOIN a ON a.id = b.id",
    "SELECT id, from_json(name, 'k INT, v STRING').k AS k, get_json_object(name, '$.a') AS g FROM events",
    "SELECT id, posexplode(tags) AS (pos, tag) FROM events",
    "SELECT v.id, v.word FROM VALUES (1, 'one'), (2, 'two') AS v(id, word) JOIN events e ON e.id = v.id",
    "SELECT name, tags[0] AS first_tag, size(tags) AS n_tags, who['first'] AS f FROM events ORDER BY n_tags",
    "SELECT p.name, q.total FROM people p JOIN LATERAL (SELECT sum(e.amount) AS total FROM events e WHERE "
    "e.id = p.id) q",
    "SELECT approx_count_distinct(name) AS names, percentile_approx(amount, 0.5) AS median, "
    "stddev(amount) AS sd FROM events",
    "SELECT id, bigint(amount) AS b, CAST(id AS STRING) AS s, id::double AS d, TRY_CAST(name AS INT) AS "
    "t, CAST(amount AS DECIMAL(10,2)) AS dec FROM events",
]
