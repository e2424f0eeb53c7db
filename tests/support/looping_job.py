"""A Spark job that runs until it is asked to stop; with ``--stubborn`` it does not listen."""

import sys
import time

from pyspark.sql import SparkSession

from drawdown.clusters.driver_output import wait_until_read
from drawdown.leash import Leash

leash = Leash.from_environment()
spark = SparkSession.builder.getOrCreate()
# One Python worker, so that pyspark.daemon, which makes a process group of its own, is alive too.
assert spark.sparkContext.parallelize([1], 1).map(lambda x: x + 1).collect() == [2]
sys.stdout.write("the job is looping\n")
while "--stubborn" in sys.argv or not leash.stop_requested.is_set():
    time.sleep(0.05)
sys.stdout.write("the job stopped cleanly\n")
spark.stop()
wait_until_read()
sys.exit(int(sys.argv[1]))
