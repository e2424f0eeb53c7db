SELECT origin AS key, to_json(named_struct('departures', count(*))) AS value
FROM departures
GROUP BY origin
