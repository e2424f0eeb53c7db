SELECT
  origin,
  window.start           AS hour,
  count(*)               AS departures,
  avg(dep_delay_minutes) AS mean_delay_minutes
FROM flights
GROUP BY origin, window(departed_at, '1 hour')
