"""What Spark's JVM runs on: Java, the locked jars, Drawdown's own few classes, the class archive."""
