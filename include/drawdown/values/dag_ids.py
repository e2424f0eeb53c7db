"""The DAG ids that are Drawdown's own, so that no pipeline or group may be named like one."""

DECIDE = "drawdown__decide"
FRESHNESS = "drawdown__freshness"
REBUILD = "drawdown__rebuild"
UPKEEP = "drawdown__upkeep"
OWN = (DECIDE, FRESHNESS, REBUILD, UPKEEP)
REPLAY_SUFFIX = "__replay"


def replay_dag_id(pipeline: str) -> str:
    """The DAG of the replays of a pipeline that says `replay:`."""
    return f"{pipeline}{REPLAY_SUFFIX}"
