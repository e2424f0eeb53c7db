"""What everything on Spark shares: sessions, the SQL gate, users' code, jobs, Spark's failures as errors."""
