"""The DAG ids that Drawdown reserves: no pipeline or group may have one of these names."""

DECIDE = "drawdown__decide"
FRESHNESS = "drawdown__freshness"
REBUILD = "drawdown__rebuild"
UPKEEP = "drawdown__upkeep"
OWN = (DECIDE, FRESHNESS, REBUILD, UPKEEP)
REPLAY_SUFFIX = "__replay"


def replay_dag_id(pipeline: str) -> str:
    """Return the id of the replay DAG of a pipeline with `replay:`."""
    return f"{pipeline}{REPLAY_SUFFIX}"
