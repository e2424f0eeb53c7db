SELECT window.start AS opens, window.end AS closes, count(*) AS departures
FROM departures
GROUP BY window(departed_at, '1 hour', '30 minutes')
