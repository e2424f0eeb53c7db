"""What others can see of all pipelines: figures for pages, metrics, lineage and alerts.

Nothing here may fail or delay a run, and nothing here lists a source when somebody looks: what is shown was
recorded by preflights, runs, decisions, upkeep and the DAG `drawdown__freshness`, and is shown with its time.
"""
