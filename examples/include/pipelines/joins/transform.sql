SELECT d.tailnum, d.departed_at, l.landed_at
FROM departures AS d
JOIN landings AS l
  ON  l.tailnum = d.tailnum AND l.dest = d.dest
  AND l.landed_at > d.departed_at
  AND l.landed_at <= d.departed_at + INTERVAL 8 HOURS
