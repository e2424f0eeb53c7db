SELECT * FROM departures WHERE tailnum IS NULL
