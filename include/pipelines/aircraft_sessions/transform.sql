-- A session ends eight hours after its last departure.
SELECT
  tailnum,
  session_window.start                       AS first_departure,
  session_window.end - INTERVAL 8 HOURS      AS last_departure,
  count(*)                                   AS departures,
  sum(distance_miles)                        AS miles
FROM flights
WHERE tailnum IS NOT NULL
GROUP BY tailnum, session_window(departed_at, '8 hours')
