SELECT window.start AS hour, count(*) AS movements
FROM (SELECT at FROM departures UNION ALL SELECT at FROM arrivals)
GROUP BY window(at, '1 hour')
