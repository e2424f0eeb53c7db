-- The bounds on time tell Spark how long each side has to be remembered.
SELECT
  d.departed_at,
  d.carrier,
  d.flight,
  d.origin,
  d.dep_delay AS dep_delay_minutes,
  r.observed_at,
  r.wind_speed * 1.609344 AS wind_km_h,
  r.visib * 1.609344      AS visibility_km
FROM departures AS d
LEFT JOIN readings AS r
  ON  r.origin = d.origin
  AND r.observed_at <= d.departed_at
  AND r.observed_at > d.departed_at - INTERVAL 1 HOUR
