SELECT origin AS key, to_json(struct(origin, flight)) AS value
FROM departures
