-- Left joins: a flight is kept also where a reference table does not know its aircraft or airport.
SELECT
  f.departed_at,
  concat(f.carrier, f.flight) AS flight,
  airlines.name               AS airline,
  f.origin,
  origins.name                AS origin_name,
  f.dest,
  dests.name                  AS dest_name,
  f.tailnum,
  planes.manufacturer,
  planes.model,
  planes.seats,
  f.dep_delay_minutes
FROM flights AS f
LEFT JOIN airlines            ON airlines.carrier = f.carrier
LEFT JOIN airports AS origins ON origins.faa = f.origin
LEFT JOIN airports AS dests   ON dests.faa = f.dest
LEFT JOIN planes              ON planes.tailnum = f.tailnum
