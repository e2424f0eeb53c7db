SELECT
  origin,
  dest,
  count(*)               AS departures,
  avg(dep_delay_minutes) AS mean_delay_minutes,
  max(departed_at)       AS last_departure
FROM flights
GROUP BY origin, dest
