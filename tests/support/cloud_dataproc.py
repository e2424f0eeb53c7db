"""Dataproc by gRPC with Google's own messages, for ``tests.support.provider_runs``.

The server keeps clusters and jobs; what goes wrong is recorded: google.rpc codes and texts as
cloud.google.com/dataproc/docs/support/troubleshoot-cluster-creation gives them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from drawdown.airflow.remote.leftovers import main
from tests.support.provider_runs import context, outcome

PACKAGE = "google.cloud.dataproc.v1"
NO_CAPACITY = "ZONE_RESOURCE_POOL_EXHAUSTED: The zone does not have enough resources available"
NO_QUOTA = "Insufficient 'CPUS' quota. Requested 12.0, available 8.0."


class Dataproc:
    """Clusters and jobs in memory.

    Attributes:
        wrong: what goes wrong: "", or a key of `scenarios`.
    """

    def __init__(self, wrong: str) -> None:
        import grpc
        from google.cloud import dataproc_v1
        from google.longrunning import operations_pb2
        from google.protobuf import any_pb2, empty_pb2
        from google.rpc import status_pb2

        self.v1, self.grpc, self.operations = dataproc_v1, grpc, operations_pb2
        self.any, self.empty, self.status = any_pb2.Any, empty_pb2.Empty, status_pb2.Status
        self.wrong, self.calls, self.left = wrong, list[str](), dict[str, Any]()
        self.labels: list[dict[str, str]] = []
        self.server = grpc.server(ThreadPoolExecutor(4))
        v1 = dataproc_v1
        self.serve(
            "ClusterController",
            CreateCluster=(v1.CreateClusterRequest, self.create),
            GetCluster=(v1.GetClusterRequest, self.get),
            ListClusters=(v1.ListClustersRequest, self.list),
            DeleteCluster=(v1.DeleteClusterRequest, self.delete),
        )
        self.serve(
            "JobController",
            SubmitJob=(v1.SubmitJobRequest, self.submit),
            GetJob=(v1.GetJobRequest, self.job),
            CancelJob=(v1.CancelJobRequest, self.job),
        )
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def serve(self, service: str, **methods: tuple[Any, Callable[[Any, Any], Any]]) -> None:
        def handler(name: str, request: Any, work: Callable[[Any, Any], Any]) -> Any:
            def answer(asked: Any, rpc: Any) -> Any:
                self.calls.append(name)
                return work(asked, rpc)

            return self.grpc.unary_unary_rpc_method_handler(
                answer, request.deserialize,
                lambda message: message.SerializeToString() if hasattr(message, "SerializeToString")
                else type(message).serialize(message),
            )  # fmt: skip

        handlers = {name: handler(name, *about) for name, about in methods.items()}
        self.server.add_generic_rpc_handlers(
            (self.grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", handlers),)
        )

    def create(self, asked: Any, rpc: Any) -> Any:
        name = asked.cluster.cluster_name
        if self.wrong == "quota":
            rpc.abort(self.grpc.StatusCode.INVALID_ARGUMENT, NO_QUOTA)
        if name in self.left:
            rpc.abort(
                self.grpc.StatusCode.ALREADY_EXISTS, f"Already exists: Failed to create cluster: {name}"
            )
        self.left[name] = asked.cluster
        self.labels.append(dict(asked.cluster.labels))
        failed = self.wrong == "no_capacity"
        self.left[name].status = {"state": "ERROR" if failed else "RUNNING"}
        if self.wrong == "answer_lost":
            rpc.abort(self.grpc.StatusCode.INTERNAL, "Internal error encountered.")
        if failed:
            error = self.status(code=8, message=NO_CAPACITY)
            return self.operations.Operation(name="o", done=True, error=error)
        return self.done(self.v1.Cluster.pb(self.left[name]))

    def done(self, message: Any) -> Any:
        packed = self.any()
        packed.Pack(message)
        return self.operations.Operation(name="o", done=True, response=packed)

    def get(self, asked: Any, rpc: Any) -> Any:
        if asked.cluster_name not in self.left:
            rpc.abort(self.grpc.StatusCode.NOT_FOUND, f"Not found: Cluster {asked.cluster_name}")
        return self.left[asked.cluster_name]

    def list(self, asked: Any, rpc: Any) -> Any:
        """As the API describes filters: ``labels.KEY = VALUE``, where ``*`` stands for every value."""
        field, _, value = asked.filter.partition(" = ")
        key = field.removeprefix("labels.")
        return self.v1.ListClustersResponse(
            clusters=[
                each for each in self.left.values() if key in each.labels and value in ("*", each.labels[key])
            ]
        )

    def delete(self, asked: Any, rpc: Any) -> Any:
        if self.left.pop(asked.cluster_name, None) is None:
            rpc.abort(self.grpc.StatusCode.NOT_FOUND, f"Not found: Cluster {asked.cluster_name}")
        return self.done(self.empty())

    def submit(self, asked: Any, rpc: Any) -> Any:
        if self.wrong == "cluster_gone":
            rpc.abort(
                self.grpc.StatusCode.NOT_FOUND, "Not found: Cluster projects/example/regions/r/clusters/c"
            )
        return self.job(asked, rpc)

    def job(self, asked: Any, rpc: Any) -> Any:
        failed = self.wrong == "job_fails"
        said = "Job failed with message [SystemExit: 1]" if failed else ""
        state = {"state": "ERROR" if failed else "DONE", "details": said}
        return self.v1.Job(reference={"job_id": "j", "project_id": "example"}, status=state)


def scenarios(dags: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    import grpc
    from airflow.providers.google.cloud.hooks import dataproc as hooks
    from airflow.providers.google.cloud.operators import dataproc as operators
    from google.cloud import dataproc_v1 as v1
    from google.cloud.dataproc_v1.services.cluster_controller.transports import ClusterControllerGrpcTransport
    from google.cloud.dataproc_v1.services.job_controller.transports import JobControllerGrpcTransport

    dag = dags["dataproc__replay"]
    up, job, down = (dag.get_task(each) for each in ("cluster_up", "replay", "cluster_down"))
    for module in (hooks, operators):
        module.time = SimpleNamespace(sleep=lambda _: None, time=time.time, monotonic=time.monotonic)
    for name in ("runs", "job_fails", "no_capacity", "quota", "answer_lost", "cluster_gone", "tried_again",
                 "killed"):  # fmt: skip
        service = Dataproc(name)
        channel = grpc.insecure_channel(f"127.0.0.1:{service.port}")
        # The one joint: where the hook's clients connect.
        hooks.DataprocHook.get_cluster_client = lambda *_, channel=channel, **__: v1.ClusterControllerClient(
            transport=ClusterControllerGrpcTransport(channel=channel)
        )
        hooks.DataprocHook.get_job_client = lambda *_, channel=channel, **__: v1.JobControllerClient(
            transport=JobControllerGrpcTransport(channel=channel)
        )
        run, pushed = f"manual__{name}", dict[str, Any]()
        said = {"up": outcome(partial(up.execute, context(up, pushed, run)))}
        if name == "tried_again":
            said["first_cluster"] = up.cluster_name
            said["second"] = outcome(partial(up.execute, context(up, pushed, run, 2)))
            second, up.cluster_name = up.cluster_name, said["first_cluster"]
            said["late_kill"] = outcome(up.on_kill)
            up.cluster_name = second
            said["left_after_the_late_kill"] = list(service.left) == [second]
        if name == "killed":
            said["kill"] = outcome(up.on_kill)
        elif said["up"] == "success":
            said["job"] = outcome(partial(job.execute, context(job, pushed, run)))
            said["left_before"] = list(service.left)
            said["named"] = [asdict(each) for each in main(Path(job.work.project_root), ["dataproc"])]
            said["down"] = outcome(partial(down.execute, context(down, pushed, run)))
        service.server.stop(None)
        yield name, {**said, "calls": service.calls, "left": list(service.left), "labels": service.labels}
