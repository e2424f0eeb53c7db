-- What the pipelines of the demo must have made, worked out in DuckDB from the delivered bytes.
-- Nothing here knows Drawdown or Spark: every fact is stated once more, in other words.
-- Needs the variable `copy`: the folder with day<N>/flights/*.csv, day<N>/weather.jsonl and reference/.
-- All times are TIMESTAMP in UTC.

CREATE MACRO a_number(cell) AS regexp_full_match(cell, '(-?[0-9]+)?');
CREATE MACRO a_time(cell) AS regexp_full_match(cell, '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z');
CREATE MACRO time_of(cell) AS CAST(CAST(cell AS TIMESTAMPTZ) AT TIME ZONE 'UTC' AS TIMESTAMP);
CREATE MACRO day_of(file) AS CAST(regexp_extract(file, 'day([0-9]+)/', 1) AS INTEGER);

------------------------------------------------------------------------------------------ flights, row by row

CREATE TABLE flight_lines AS
SELECT day_of(filename) AS day, line, string_split(line, ',') AS cell
FROM (SELECT filename, unnest(string_split(content, chr(10))) AS line
      FROM read_text(getvariable('copy') || '/day*/flights/*.csv'))
WHERE line <> '' AND NOT starts_with(line, 'carrier,flight,');

CREATE TABLE flight_readable AS
SELECT *,
       len(cell) = 11
       AND a_number(cell[2]) AND a_time(cell[6]) AND a_time(cell[7])
       AND a_number(cell[8]) AND a_number(cell[9]) AND a_number(cell[10]) AND a_number(cell[11]) AS readable
FROM flight_lines;

CREATE TABLE flight_rows AS
SELECT *,
       CASE WHEN departed_at > (now() AT TIME ZONE 'UTC') + INTERVAL 1 DAY THEN 'future'
            ELSE nullif(concat_ws(',',
                   CASE WHEN origin NOT IN ('EWR', 'JFK', 'LGA') THEN 'from_new_york' END,
                   CASE WHEN distance <= 0 THEN 'goes_somewhere' END), '')
       END AS refused
FROM (SELECT day, line, cell[1] AS carrier, CAST(cell[2] AS INTEGER) AS flight, nullif(cell[3], '') AS tailnum,
             cell[4] AS origin, cell[5] AS dest, time_of(cell[6]) AS scheduled_at, time_of(cell[7]) AS departed_at,
             CAST(nullif(cell[8], '') AS INTEGER) AS dep_delay, CAST(nullif(cell[9], '') AS INTEGER) AS arr_delay,
             CAST(cell[11] AS INTEGER) AS distance
      FROM flight_readable WHERE readable);

-- The latest departure known when a day's run starts: that of all days before.
CREATE TABLE known AS
SELECT d.day, (SELECT max(departed_at) FROM flight_rows r WHERE r.refused IS NULL AND r.day < d.day) AS latest
FROM (SELECT DISTINCT day FROM flight_lines) d;

CREATE TABLE flight_fed AS
SELECT r.*, coalesce(departed_at < latest - INTERVAL 6 HOUR, false) AS late
FROM flight_rows r JOIN known USING (day) WHERE refused IS NULL;

-- A twin counts once, on the day it first came.
CREATE TABLE flights AS
SELECT day, departed_at, scheduled_at, carrier, flight, tailnum, origin, dest,
       dep_delay AS dep_delay_minutes, arr_delay AS arr_delay_minutes, distance AS distance_miles
FROM flight_fed WHERE NOT late
QUALIFY row_number() OVER (PARTITION BY carrier, flight, origin, departed_at ORDER BY day) = 1;

------------------------------------------------------------------------------------------ closed hours

CREATE TABLE hourly_input AS
SELECT f.*, date_trunc('hour', departed_at) AS hour,
       coalesce(departed_at < latest - INTERVAL 2 HOUR, false) AS late,
       coalesce(date_trunc('hour', departed_at) + INTERVAL 1 HOUR <= latest - INTERVAL 2 HOUR, false) AS hour_is_closed
FROM flights f JOIN known USING (day);

-- The latest departure known when a day's run ends.
CREATE TABLE reached AS
SELECT day, max(max(departed_at)) OVER (ORDER BY day) AS latest FROM flights GROUP BY day;

-- `day` is the day whose run closes the hour; an hour that none closes is still open and not expected.
CREATE TABLE departures_hourly AS
SELECT (SELECT min(day) FROM reached WHERE hour + INTERVAL 1 HOUR <= latest - INTERVAL 2 HOUR) AS day, *
FROM (SELECT origin, hour, count(*) AS departures, sum(dep_delay_minutes) / count(*) AS mean_delay_minutes
      FROM hourly_input WHERE NOT hour_is_closed GROUP BY origin, hour);
DELETE FROM departures_hourly WHERE day IS NULL;

------------------------------------------------------------------------------------------ names from the reference tables

CREATE TABLE flights_enriched AS
SELECT f.day, f.departed_at, f.carrier || CAST(f.flight AS VARCHAR) AS flight,
       (SELECT name FROM read_csv(getvariable('copy') || '/reference/airlines.csv') l WHERE l.carrier = f.carrier) AS airline,
       f.origin, o.name AS origin_name, f.dest, d.name AS dest_name,
       f.tailnum, p.manufacturer, p.model, p.seats, f.dep_delay_minutes
FROM flights f
LEFT JOIN read_csv(getvariable('copy') || '/reference/airports.csv') o ON o.faa = f.origin
LEFT JOIN read_csv(getvariable('copy') || '/reference/airports.csv') d ON d.faa = f.dest
LEFT JOIN read_csv(getvariable('copy') || '/reference/planes.csv') p ON p.tailnum = f.tailnum;

------------------------------------------------------------------------------------------ weather

CREATE TABLE weather_lines AS
SELECT day_of(filename) AS day, line
FROM (SELECT filename, unnest(string_split(content, chr(10))) AS line
      FROM read_text(getvariable('copy') || '/day*/weather.jsonl'))
WHERE line <> '';

CREATE TABLE weather_rows AS
SELECT day, line, readable,
       CASE WHEN readable THEN nullif(concat_ws(',',
            CASE WHEN NOT coalesce(CAST(line ->> 'humid' AS DOUBLE) BETWEEN 0 AND 100, false) THEN 'humidity_is_a_share' END,
            CASE WHEN NOT coalesce(CAST(line ->> 'temp' AS DOUBLE) BETWEEN -130 AND 140, false) THEN 'temperature_is_earthly' END), '')
       END AS refused
FROM (SELECT *, json_valid(line) AND CASE WHEN json_valid(line) THEN json_type(line, '$.temp') = 'DOUBLE' ELSE false END AS readable
      FROM weather_lines);

CREATE TABLE weather AS
SELECT day, line ->> 'origin' AS origin, time_of(line ->> 'observed_at') AS observed_at,
       (CAST(line ->> 'temp' AS DOUBLE) - 32) / 1.8 AS temperature_c,
       (CAST(line ->> 'dewp' AS DOUBLE) - 32) / 1.8 AS dew_point_c,
       CAST(line ->> 'humid' AS DOUBLE) AS humidity_percent,
       CAST(line ->> 'wind_speed' AS DOUBLE) * 1.609344 AS wind_km_h,
       CAST(line ->> 'precip' AS DOUBLE) * 25.4 AS precipitation_mm,
       CAST(line ->> 'pressure' AS DOUBLE) AS pressure_hpa,
       CAST(line ->> 'visib' AS DOUBLE) * 1.609344 AS visibility_km
FROM weather_rows WHERE readable AND refused IS NULL;

------------------------------------------------------------------------------------------ an aircraft's day

CREATE TABLE aircraft_sessions_all AS
SELECT tailnum, min(departed_at) AS first_departure, max(departed_at) AS last_departure,
       count(*) AS departures, CAST(sum(distance_miles) AS BIGINT) AS miles
FROM (SELECT *, sum(opens) OVER (PARTITION BY tailnum ORDER BY departed_at) AS session
      FROM (SELECT *, coalesce(departed_at > lag(departed_at) OVER (PARTITION BY tailnum ORDER BY departed_at)
                               + INTERVAL 8 HOUR, true)::INTEGER AS opens
            FROM flights WHERE tailnum IS NOT NULL))
GROUP BY tailnum, session;

-- Eight hours after its last departure a session ends; six hours later nothing of it can come any more.
CREATE TABLE aircraft_sessions AS
SELECT (SELECT min(day) FROM reached WHERE last_departure + INTERVAL 14 HOUR <= latest) AS day, *
FROM aircraft_sessions_all;
DELETE FROM aircraft_sessions WHERE day IS NULL;

------------------------------------------------------------------------------------------ routes so far

CREATE TABLE route_delays AS
SELECT origin, dest, count(*) AS departures, sum(dep_delay_minutes) / count(*) AS mean_delay_minutes,
       max(departed_at) AS last_departure
FROM flights GROUP BY origin, dest;

------------------------------------------------------------------------------------------ departures with weather

-- What both streams have shown by the end of a day decides what is late and what can still find a reading.
CREATE TABLE both_reached AS
SELECT d.day, least(
         (SELECT max(departed_at) FROM flight_rows r WHERE r.refused IS NULL AND r.day <= d.day) - INTERVAL 6 HOUR,
         (SELECT max(observed_at) FROM weather w WHERE w.day <= d.day) - INTERVAL 3 HOUR) AS passed
FROM known d;

CREATE TABLE weathered AS
SELECT r.*, coalesce(departed_at <= (SELECT passed FROM both_reached b WHERE b.day = r.day - 1), false) AS late
FROM flight_rows r WHERE refused IS NULL;

CREATE TABLE flight_weather AS
SELECT CASE WHEN w.observed_at IS NOT NULL THEN greatest(f.day, w.day)
            ELSE (SELECT min(day) FROM both_reached b WHERE f.departed_at <= b.passed) END AS day,
       f.departed_at, f.carrier, f.flight, f.origin, f.dep_delay AS dep_delay_minutes,
       w.observed_at, w.wind_km_h, w.visibility_km
FROM weathered f
LEFT JOIN weather w ON w.origin = f.origin AND w.observed_at <= f.departed_at
                   AND f.departed_at < w.observed_at + INTERVAL 1 HOUR
WHERE NOT f.late;
DELETE FROM flight_weather WHERE day IS NULL;

------------------------------------------------------------------------------------------ set aside

-- The payload is compared where it is the delivered text itself; a refused row is kept as JSON made from it.
CREATE TABLE quarantine_flights AS
SELECT day, 'malformed' AS reason, line AS payload FROM flight_readable WHERE NOT readable
UNION ALL SELECT day, refused, NULL FROM flight_rows WHERE refused IS NOT NULL;

CREATE TABLE quarantine_weather AS
SELECT day, 'malformed' AS reason, line AS payload FROM weather_rows WHERE NOT readable
UNION ALL SELECT day, refused, NULL FROM weather_rows WHERE refused IS NOT NULL;

CREATE TABLE quarantine_flight_weather AS
SELECT * FROM quarantine_flights UNION ALL SELECT * FROM quarantine_weather;

------------------------------------------------------------------------------------------ counts of a run

CREATE TABLE counts AS
SELECT 'flights' AS pipeline, day,
       (SELECT count(*) FROM flight_lines x WHERE x.day = d.day) AS read,
       (SELECT count(*) FROM quarantine_flights x WHERE x.day = d.day AND reason = 'malformed') AS malformed,
       (SELECT count(*) FROM quarantine_flights x WHERE x.day = d.day AND reason = 'future') AS future,
       (SELECT count(*) FROM quarantine_flights x WHERE x.day = d.day AND reason NOT IN ('malformed', 'future')) AS quarantined,
       (SELECT count(*) FROM flight_fed x WHERE x.day = d.day AND late) AS late,
       (SELECT count(*) FROM flights x WHERE x.day = d.day) AS published
FROM known d
UNION ALL
SELECT 'weather', day,
       (SELECT count(*) FROM weather_lines x WHERE x.day = d.day),
       (SELECT count(*) FROM quarantine_weather x WHERE x.day = d.day AND reason = 'malformed'), 0,
       (SELECT count(*) FROM quarantine_weather x WHERE x.day = d.day AND reason <> 'malformed'), 0,
       (SELECT count(*) FROM weather x WHERE x.day = d.day)
FROM known d
UNION ALL
SELECT 'departures_hourly', day, (SELECT count(*) FROM flights x WHERE x.day = d.day), 0, 0, 0,
       (SELECT count(*) FROM hourly_input x WHERE x.day = d.day AND late),
       (SELECT count(*) FROM departures_hourly x WHERE x.day = d.day)
FROM known d
UNION ALL
SELECT 'flights_enriched', day, (SELECT count(*) FROM flights x WHERE x.day = d.day), 0, 0, 0, 0,
       (SELECT count(*) FROM flights_enriched x WHERE x.day = d.day)
FROM known d
UNION ALL
SELECT 'aircraft_sessions', day, (SELECT count(*) FROM flights x WHERE x.day = d.day), 0, 0, 0, 0,
       (SELECT count(*) FROM aircraft_sessions x WHERE x.day = d.day)
FROM known d
UNION ALL
SELECT 'flight_weather', day,
       (SELECT count(*) FROM flight_lines x WHERE x.day = d.day) + (SELECT count(*) FROM weather_lines x WHERE x.day = d.day),
       (SELECT count(*) FROM quarantine_flight_weather x WHERE x.day = d.day AND reason = 'malformed'),
       (SELECT count(*) FROM quarantine_flight_weather x WHERE x.day = d.day AND reason = 'future'),
       (SELECT count(*) FROM quarantine_flight_weather x WHERE x.day = d.day AND reason NOT IN ('malformed', 'future')),
       (SELECT count(*) FROM weathered x WHERE x.day = d.day AND late),
       (SELECT count(*) FROM flight_weather x WHERE x.day = d.day)
FROM known d
UNION ALL
SELECT 'route_delays', day, (SELECT count(*) FROM flights x WHERE x.day = d.day), 0, 0, 0, 0,
       (SELECT count(DISTINCT origin || dest) FROM flights x WHERE x.day = d.day)
FROM known d;
