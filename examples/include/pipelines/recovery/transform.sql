SELECT origin, max(dep_delay) AS greatest_delay
FROM departures
WHERE dep_delay > 0     -- may change: earlier rows stay as they were counted
GROUP BY origin         -- frozen in the state
