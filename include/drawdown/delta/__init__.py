"""Delta tables without Spark: their files and log, their versions, and going back to one."""
