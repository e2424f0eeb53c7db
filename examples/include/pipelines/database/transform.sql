SELECT tailnum, count(*) AS departures, max(departed_at) AS last_departure
FROM departures
GROUP BY tailnum
