"""The spec: what the user's YAML files say, checked before anything runs."""

from drawdown.spec.cluster import (
    Cluster,
    ConnectionCluster,
    LocalCluster,
    SizedCluster,
    StandaloneCluster,
)
from drawdown.spec.cluster_kinds import Profile
from drawdown.spec.database import Database
from drawdown.spec.duration import Duration
from drawdown.spec.loader import (
    find_root,
    iter_pipelines,
    load_next,
    load_pipeline,
    load_pipelines,
    load_project,
    pipeline_names,
)
from drawdown.spec.pipeline import DrainBounds, Pipeline, State, asset_name
from drawdown.spec.project import Airflow, Broker, Project
from drawdown.spec.quality import Expectation, Quality, Rule
from drawdown.spec.remote_cluster import (
    DataprocCluster,
    EmrCluster,
    EmrServerlessCluster,
    KubernetesCluster,
    RemoteCluster,
)
from drawdown.spec.replay import Replay
from drawdown.spec.schedule import AssetRef
from drawdown.spec.sink import Sink
from drawdown.spec.source import Source, Watermark

__all__ = [
    "Airflow",
    "AssetRef",
    "Broker",
    "Cluster",
    "ConnectionCluster",
    "Database",
    "DataprocCluster",
    "DrainBounds",
    "Duration",
    "EmrCluster",
    "EmrServerlessCluster",
    "Expectation",
    "KubernetesCluster",
    "LocalCluster",
    "Pipeline",
    "Profile",
    "Project",
    "Quality",
    "RemoteCluster",
    "Replay",
    "Rule",
    "Sink",
    "SizedCluster",
    "Source",
    "StandaloneCluster",
    "State",
    "Watermark",
    "asset_name",
    "find_root",
    "iter_pipelines",
    "load_next",
    "load_pipeline",
    "load_pipelines",
    "load_project",
    "pipeline_names",
]
