"""Cluster profiles of project.yaml: what each kind takes, and what is refused, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.launch.connection import from_environment
from drawdown.launch.local import local_profile, submit_conf
from drawdown.launch.profile import ClusterRequest, on_cluster
from drawdown.spec import ConnectionCluster, LocalCluster, Project, StandaloneCluster, load_project
from drawdown.spec.reading.secrets import holds_a_secret

COMMANDS = "kind: commands, workers: 2, alive: c/alive, down: c/down"
KUBERNETES = "kind: kubernetes, image: i, service_account: spark, workers: 2"


def project(root: Path, *lines: str) -> Project:
    (root / "include" / "pipelines").mkdir(parents=True)
    (root / "include" / "project.yaml").write_text("clusters:\n" + "".join(f"  {line}\n" for line in lines))
    return load_project(root)


def test_a_profile_that_says_no_kind_is_local(tmp_path: Path) -> None:
    assert project(tmp_path, "small: {driver_memory: 2g}").clusters == {
        "small": LocalCluster(driver_memory="2g")
    }


def test_each_kind_has_its_own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DD_WORKERS", "3")
    found = project(
        tmp_path,
        "fixed: {kind: standalone, workers: '${DD_WORKERS}', worker_memory: 2g}",
        "sized: {kind: standalone, workers: {max: 4, each: {bytes: 512m, files: 10}}}",
        "timed: {kind: standalone, workers: {max: 4, within: 20 minutes}}",
        "remote: {kind: connection, connection: spark_default}",
    ).clusters
    fixed, sized, timed, remote = (found[name] for name in ("fixed", "sized", "timed", "remote"))
    assert isinstance(fixed, StandaloneCluster)
    assert (fixed.workers, fixed.worker_cores, str(fixed.ttl)) == (3, 1, "3 hours")
    assert isinstance(sized, StandaloneCluster)
    assert not isinstance(sized.workers, int)
    assert sized.workers.each is not None
    assert (sized.workers.min, sized.workers.each.amounts) == (1, {"files": 10, "bytes": 512 * 2**20})
    assert isinstance(timed, StandaloneCluster)
    assert not isinstance(timed.workers, int)
    assert (str(timed.workers.within), timed.workers.each) == ("20 minutes", None)
    assert isinstance(remote, ConnectionCluster)


@pytest.mark.parametrize(
    "value",
    [
        "-Dfile.encoding=UTF-8 -Djavax.net.ssl.keyStore=/etc/key.p12",
        "-Daws.credentials.provider=org.x.TokenProvider -Dtoken.file=/run/token",
        "https://login.example.com/oauth2/token",
        "the secret project",
        "s3://bucket/secrets/key",
    ],
)
def test_what_only_says_where_a_secret_is_is_no_secret(value: str) -> None:
    assert not holds_a_secret(value)


def test_what_only_looks_needs_no_cluster(tmp_path: Path) -> None:
    found = project(tmp_path, "big: {kind: standalone, workers: 2, driver_memory: 3g}")
    conf = submit_conf(found, found.clusters["big"])
    assert (conf["spark.master"], conf["spark.driver.memory"]) == ("local[2]", "3g")
    assert local_profile(found) == LocalCluster()


def test_drivers_optimise_late_unless_the_profile_says_otherwise(tmp_path: Path) -> None:
    own = "-XX:Tier4CompileThreshold=15000"
    found = project(tmp_path, "small: {}", f"hot: {{conf: {{spark.driver.extraJavaOptions: '{own}'}}}}")
    small, hot = (
        submit_conf(found, found.clusters[name])["spark.driver.extraJavaOptions"].split()
        for name in ("small", "hot")
    )
    late = [option for option in small if option.startswith("-XX:Tier4")]
    assert late == [
        "-XX:Tier4InvocationThreshold=150000",
        "-XX:Tier4MinInvocationThreshold=18000",
        "-XX:Tier4CompileThreshold=450000",
        "-XX:Tier4BackEdgeThreshold=1200000",
    ]
    assert [option for option in hot if option.startswith("-XX:Tier4")] == [*late, own]


def test_avro_is_bounded_in_every_java(tmp_path: Path) -> None:
    found = project(tmp_path, "small: {}", "hot: {conf: {spark.executor.extraJavaOptions: '-Dx=y'}}")
    for name in ("small", "hot"):
        conf = submit_conf(found, found.clusters[name])
        for java in ("driver", "executor"):
            options = conf[f"spark.{java}.extraJavaOptions"].split()
            assert "-Dorg.apache.avro.limits.bytes.maxLength=67108864" in options
    assert conf["spark.executor.extraJavaOptions"].endswith(" -Dx=y")


def test_a_command_cannot_start_a_driver_elsewhere(tmp_path: Path) -> None:
    found = project(tmp_path, f"big: {{{KUBERNETES}}}")
    run = ClusterRequest("key", {}, None, from_environment)
    with pytest.raises(SpecError) as caught, on_cluster(found, "big", run):
        pass
    assert caught.value.id == "cluster.only-its-dag"
