-- A source is a view of its name. From Fahrenheit, miles an hour and inches to metric units.
SELECT
  origin,
  observed_at,
  (temp - 32) * 5 / 9 AS temperature_c,
  (dewp - 32) * 5 / 9 AS dew_point_c,
  humid               AS humidity_percent,
  wind_speed * 1.609344 AS wind_km_h,
  precip * 25.4       AS precipitation_mm,
  pressure            AS pressure_hpa,
  visib * 1.609344    AS visibility_km
FROM readings
