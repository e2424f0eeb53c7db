"""Delta tables without Spark: their files, their log, their versions, and how to restore one."""
