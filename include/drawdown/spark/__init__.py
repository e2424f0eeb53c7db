"""What everything on Spark shares: sessions, the SQL gate, users' code, jobs, errors from what Spark says."""
