"""A Spark job that runs until it is asked to stop.

With ``--stubborn`` it does not listen, with ``--silent`` it ends without an answer.
"""

import sys
import time

from pyspark.sql import SparkSession

from drawdown.launch.answer import note_answer
from drawdown.launch.driver_output import wait_until_read
from drawdown.stop_pipe import StopPipe

stop_pipe = StopPipe.from_environment()
spark = SparkSession.builder.getOrCreate()
# One Python worker, so that pyspark.daemon, which makes a process group of its own, is alive too.
assert spark.sparkContext.parallelize([1], 1).map(lambda x: x + 1).collect() == [2]
sys.stdout.write("the job is looping\n")
while "--stubborn" in sys.argv or not stop_pipe.stop_requested.is_set():
    time.sleep(0.05)
sys.stdout.write("the job stopped cleanly\n")
spark.stop()
wait_until_read()
if "--silent" not in sys.argv:
    note_answer()
sys.exit(int(sys.argv[1]))
