"""A first pipeline from real data: a sample is read, its columns are inferred, and a folder is written.

Belongs here: reading samples, inferring columns, what a new spec suggests, and the files of a new project.
Does not: reading the sources of a pipeline that exists (``sources/``). Needs no Spark.
"""
