"""What Spark's JVM needs: Java, the locked jars, Drawdown's own few classes, the class archive."""
