SELECT carrier, count(*) AS departures, max(dep_delay) AS greatest_delay
FROM departures
GROUP BY carrier
