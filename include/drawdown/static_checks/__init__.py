"""What is wrong with a pipeline, as far as its folder alone can tell: no Spark, no source, no sink is asked.

Schemas, SQL and the columns that a spec names are read with sqlglot and held against each other. A check
speaks only when it is sure that Spark would refuse the same; all doubt is left to `drawdown plan`. What the
loader finds (keys, paths, contradictions) belongs to spec/, what needs Spark's analyser to query/.
"""
