"""Commands that name what is not there: a pipeline, a run, an id."""

from __future__ import annotations

import shutil

from tests.remedies.ground import FILES, NAME, SPEC, Ground
from tests.remedies.registry import Made, rows, state
from tests.support.older_release import unpacked


@state("cli.no-pipeline/no record of it")
def no_record(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("cli.no-pipeline", "runs sales"))


@state("cli.no-pipeline/none is named")
def none_named(ground: Ground) -> Made:
    ground.drained()
    return Made(
        ground.fails("cli.no-pipeline", "upkeep"),
        hands={
            "name some of: orders": lambda: ground.well("upkeep orders"),
            "pass --all": lambda: ground.well("upkeep --all"),
        },
        wanted=rows(1, 2),
    )


@state("cli.no-pipeline/none is there")
def none_there(ground: Ground) -> Made:
    ground.empty()
    error = ground.fails("cli.no-pipeline", "upkeep")
    return Made(error, fill={"NAME": NAME}, names=())


@state("spec.no-pipeline")
def no_folder(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("spec.no-pipeline", "plan sales"), again="plan sales")


@state("spec.no-project")
def no_project(ground: Ground) -> Made:
    ground.empty()
    file = ground.root / "include/project.yaml"
    away = file.rename(ground.root / "project.yaml")

    def back() -> None:
        away.rename(file)

    return Made(
        ground.fails("spec.no-project", "status"),
        hands={"change to a project folder": back},
        outside={"DRAWDOWN_PROJECT": "an environment of another process"},
        fill={"NAME": NAME},
        again="status",
        names=(),
    )


@state("cli.no-run/of an id")
def no_run(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("cli.no-run", f"logs {NAME} nope"))


@state("cli.no-run/none at all")
def no_run_yet(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    return Made(ground.fails("cli.no-run", f"logs {NAME}"), wanted=rows(1))


@state("cli.no-run/record")
def no_record_of_run(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("cli.no-run", f"runs {NAME} --id nope"))


@state("logs.none")
def logs_none(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("logs.none", f"logs {NAME}"))


@state("explain.unknown")
def explain_unknown(ground: Ground) -> Made:
    ground.empty()
    return Made(ground.fails("explain.unknown", "explain no.such"), names=())


@state("cli.several-clusters")
def several_clusters(ground: Ground) -> Made:
    ground.empty("clusters: {one: {kind: local}, other: {kind: local}}\n")
    ground.pipeline(SPEC + "cluster: one\n")
    other = SPEC.replace("tables/orders", "tables/sales") + "cluster: other\n"
    ground.sandbox.pipeline("sales", other, **FILES)
    ground.land(1)
    return Made(
        ground.fails("cli.several-clusters", f"run {NAME} sales"),
        hands={"run them separately": lambda: [ground.well(f"run {NAME}"), ground.well("run sales")]},
        names=(NAME, "sales"),
        wanted=rows(1),
    )


@state("clusters.unknown")
def clusters_unknown(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("clusters.unknown", "clusters gone nope --yes"))


@state("test.none")
def test_none(ground: Ground) -> Made:
    ground.drained()
    return Made(
        ground.fails("test.none", f"test {NAME}"),
        hands={"add tests/first/case.yaml": lambda: None},
        fill={"NAME": "sales"},
    )


@state("state.no-checkpoint")
def state_no_checkpoint(ground: Ground) -> Made:
    ground.new()
    ground.land(1)
    return Made(ground.fails("state.no-checkpoint", f"state {NAME}"), again=f"state {NAME}", wanted=rows(1))


def _stateful(ground: Ground) -> None:
    def drain() -> None:
        spec = SPEC.replace("schema: out.ddl", "schema: out.ddl, mode: update, keys: [id]")
        sql = "SELECT id FROM (SELECT id, count(*) AS n FROM events GROUP BY id)\n"
        ground.new(spec, transform_sql=sql)
        ground.land(1)
        ground.sandbox.run(NAME)

    ground.base("stateful", drain)


@state("state.no-operator")
def state_no_operator(ground: Ground) -> Made:
    _stateful(ground)
    return Made(
        ground.fails("state.no-operator", f"state {NAME} --operator 7"),
        hands={"operators are 0": lambda: ground.well(f"state {NAME} --operator 0")},
    )


@state("state.no-batch")
def state_no_batch(ground: Ground) -> Made:
    _stateful(ground)
    return Made(
        ground.fails("state.no-batch", f"state {NAME} --batch 9"),
        hands={"name one from 0 to 0": lambda: ground.well(f"state {NAME} --batch 0")},
    )


@state("accept.nothing")
def accept_nothing(ground: Ground) -> Made:
    ground.drained()
    return Made(ground.fails("accept.nothing", f"checkpoint accept {NAME} --why ..."), wanted=rows(1, 2))


@state("trigger.available-now")
def available_now(ground: Ground) -> Made:
    ground.drained()
    ground.land(3)
    error = ground.fails("trigger.available-now", f"watch {NAME} --trigger available-now")
    return Made(error, wanted=rows(1, 2, 3))


@state("trigger.once")
def once(ground: Ground) -> Made:
    ground.drained()
    ground.land(3)
    return Made(ground.fails("trigger.once", f"watch {NAME} --trigger once"), wanted=rows(1, 2, 3))


@state("metastore.older")
def older_metastore(ground: Ground) -> Made:
    """A release before has written it."""
    ground.empty()
    shutil.rmtree(ground.root)
    ground.sandbox = unpacked(ground.root, ground.spark)
    return Made(ground.fails("metastore.older", "status"), again="status", names=())
