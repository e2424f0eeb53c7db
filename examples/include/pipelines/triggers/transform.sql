SELECT * FROM departures
