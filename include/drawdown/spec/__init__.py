"""The spec: the user's YAML files, checked before anything runs."""

from drawdown.spec.clusters.cluster import (
    Cluster,
    ConnectionCluster,
    LocalCluster,
    RunCluster,
    SizedCluster,
    StandaloneCluster,
)
from drawdown.spec.clusters.commands import CommandsCluster
from drawdown.spec.clusters.profile import Profile
from drawdown.spec.clusters.remote import (
    DataprocCluster,
    EmrCluster,
    EmrServerlessCluster,
    KubernetesCluster,
    RemoteCluster,
)
from drawdown.spec.connections.broker import Broker
from drawdown.spec.connections.database import Database
from drawdown.spec.connections.object_storage import ObjectStorage
from drawdown.spec.loader import (
    STATE,
    find_root,
    iter_pipelines,
    load_next,
    load_pipeline,
    load_pipelines,
    load_project,
    pipeline_names,
)
from drawdown.spec.pipeline import DrainBounds, Pipeline, State, asset_name
from drawdown.spec.project import Project
from drawdown.spec.quality import Expectation, Quality, Rule
from drawdown.spec.replay import Replay
from drawdown.spec.scheduling.airflow_tasks import Airflow
from drawdown.spec.scheduling.schedule import AssetRef
from drawdown.spec.sink import Sink
from drawdown.spec.source import Source, Watermark
from drawdown.values.duration import Duration

__all__ = [
    "STATE",
    "Airflow",
    "AssetRef",
    "Broker",
    "Cluster",
    "CommandsCluster",
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
    "ObjectStorage",
    "Pipeline",
    "Profile",
    "Project",
    "Quality",
    "RemoteCluster",
    "Replay",
    "Rule",
    "RunCluster",
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
