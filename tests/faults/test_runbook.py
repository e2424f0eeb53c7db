"""docs/runbook.md: a project is brought into each situation, and the commands of its section are typed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import uuid
from pathlib import Path

import pytest

from drawdown.metastore.records import Run
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.command_line import answer, drawdown
from tests.support.newcomers import note_run
from tests.support.recovering import newest
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

PAGE = Path(__file__).parents[2] / "docs/runbook.md"
NAME = "sales"
Page = dict[str, list[list[list[str]]]]
CSV = """format: csv
    path: landing/sales
    schema: sale.ddl
    options: {header: true, maxFilesPerTrigger: 1}"""
KAFKA = """format: kafka
    value: json
    schema: sale.ddl
    options: {subscribe: TOPIC}"""
SPEC = """
sources:
  payments:
    SOURCE
transform: transform.sql
sink: {format: delta, path: tables/sales, schema: out.ddl}
state: {partitions: 2}
"""


def sections() -> Page:
    """By heading: its blocks of commands, each as words."""
    _, *parts = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    blocks = [re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for text in parts[1::2]]
    typed = [[[shlex.split(line)[1:] for line in block.splitlines()] for block in some] for some in blocks]
    return dict(zip(parts[::2], typed, strict=True))


def sales(sandbox: Sandbox, spec: str = SPEC.replace("SOURCE", CSV), **files: str) -> None:
    sandbox.pipeline(
        NAME,
        spec,
        **{
            "sale_ddl": "id INT, country STRING",
            "out_ddl": "id INT, country STRING",
            "transform_sql": "SELECT id, country FROM payments",
            **files,
        },
    )


def arrive(sandbox: Sandbox, *numbers: int) -> None:
    """A file of two rows each."""
    for number in numbers:
        rows = [f"{number},DE", f"{number + 100},FR"]
        sandbox.land(f"landing/sales/{number}.csv", ["id,country", *rows], mtime=number + 1)


def arrive_and_run(sandbox: Sandbox, *numbers: int) -> Run:
    arrive(sandbox, *numbers)
    return sandbox.run(NAME)


def typed(sandbox: Sandbox, block: list[list[str]], *, code: int = 0) -> str:
    """Type the commands one after the other; what all of them said."""
    said = ""
    for words in block:
        done = drawdown(sandbox.root, *words)
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        said += done.stdout + done.stderr
    return said


def ids(sandbox: Sandbox) -> list[int]:
    return sorted(row[0] for row in sandbox.delta("tables/sales"))


@pytest.fixture
def page() -> Page:
    return sections()


def test_an_audit_has_failed(sandbox: Sandbox, page: Page) -> None:
    look, release, discard = page["An audit has failed"]
    failing = "expectations: [{type: expect_table_row_count_to_equal, kwargs: {value: -1}}]\n"
    for number, decide in enumerate((release, discard)):
        sales(sandbox, quality_yaml=failing)
        arrive(sandbox, number)
        error = sandbox.drain(NAME)[0].error
        assert error is not None
        assert error.id == "audit.fail"
        said = typed(sandbox, look)
        assert "expect_table_row_count_to_equal" in said
        assert "held" in said
        typed(sandbox, decide)
    assert ids(sandbox) == [0, 100], "released, and discarded"


@pytest.mark.full
def test_the_lag_grows(sandbox: Sandbox, page: Page) -> None:
    look, catch_up = page["The lag grows"]
    bounded = SPEC.replace("SOURCE", CSV) + "drain: {max_batches: 1}\n"
    sales(sandbox, bounded)
    run = arrive_and_run(sandbox, 0, 1, 2, 3)
    assert "bound of 1 batch reached; left for the next run" in str(run.stop_reason)
    assert "does not fit one drain" in typed(sandbox, look)
    sales(sandbox, bounded.replace("max_batches: 1", "max_batches: 10"))
    assert "fits one drain" in typed(sandbox, look)
    typed(sandbox, catch_up)
    assert ids(sandbox) == [0, 1, 2, 3, 100, 101, 102, 103]


@pytest.mark.capability("SAFE-05")
def test_a_new_folder_is_refused(sandbox: Sandbox, page: Page) -> None:
    [look] = page["A new folder is refused"]
    sales(sandbox)
    note_run(sandbox.project, NAME)
    sandbox.pipeline(
        "a_newcomer",
        SPEC.replace("SOURCE", CSV).replace("tables/sales", "tables/sales/new"),
        sale_ddl="id INT, country STRING",
        out_ddl="id INT, country STRING",
        transform_sql="SELECT id, country FROM payments",
    )
    said = " ".join(typed(sandbox, look, code=2).split())
    assert "spec.shared-sink sales writes into tables/sales, and a_newcomer into tables/sales/new" in said
    assert "sales ran first" in said
    assert "a_newcomer has to change" in said
    assert "✓ sales" in said


@pytest.mark.full
def test_the_data_have_other_columns(sandbox: Sandbox, page: Page) -> None:
    look, take_up, bring_in = page["The data have other columns"]
    sales(sandbox)
    arrive_and_run(sandbox, 0)
    sandbox.land("landing/sales/1.csv", ["id,country,channel", "1,DE,web"], mtime=2)
    sandbox.run(NAME)
    said = typed(sandbox, look)
    assert "source.drift" in said
    assert "channel" in said
    columns = "id INT, country STRING, channel STRING"
    sales(sandbox, sale_ddl=columns, out_ddl=columns, transform_sql="SELECT * FROM payments")
    sandbox.land("landing/sales/2.csv", ["id,country,channel", "2,DE,shop"], mtime=3)
    assert "gets the missing columns" in typed(sandbox, take_up)
    assert ids(sandbox) == [0, 2, 100], "a value too many"
    typed(sandbox, bring_in)
    assert sorted(sandbox.delta("tables/sales")) == [
        (0, "DE", None), (1, "DE", "web"), (2, "DE", "shop"), (100, "FR", None),
    ]  # fmt: skip


@pytest.mark.full
@pytest.mark.capability("SAFE-07")
def test_a_file_ends_spark(sandbox: Sandbox, page: Page) -> None:
    look, aside = page["A file ends Spark"]
    sales(sandbox, SPEC.replace("SOURCE", CSV.replace(", maxFilesPerTrigger: 1", "")))
    arrive(sandbox, 0)
    torn = sandbox.land("landing/sales/2.gz", "no gzip, which Spark cannot read either", mtime=3)
    error = sandbox.drain(NAME)[0].error
    assert error is not None
    assert str(torn) in error.what
    typed(sandbox, look)
    typed(sandbox, aside)
    assert ids(sandbox) == [0, 100]


@pytest.mark.full
def test_records_of_a_topic_are_gone(kafka_sandbox: Sandbox, page: Page, broker: KafkaServer) -> None:
    look, go_on = page["Records of a topic are gone"]
    sandbox = kafka_sandbox
    topic = Topic(broker, f"sales-{uuid.uuid4().hex[:8]}")
    spec = SPEC.replace("SOURCE", KAFKA.replace("TOPIC", topic.name))
    sales(sandbox, spec)
    topic.write([json.dumps({"id": 0, "country": "DE"})])
    sandbox.run(NAME)
    topic.write([json.dumps({"id": number, "country": "DE"}) for number in (1, 2, 3)])
    topic.expire(before=3)
    assert "source.data-lost" in typed(sandbox, look, code=3)
    sales(sandbox, spec.replace(topic.name, f"{topic.name}, failOnDataLoss: false"))
    typed(sandbox, go_on[:1])
    said = answer(typed(sandbox, go_on[1:]))
    assert said[0]["counts"]["lost"] == 2
    assert ids(sandbox) == [0, 3]


@pytest.mark.full
def test_a_checkpoint_is_torn_or_gone(sandbox: Sandbox, page: Page) -> None:
    snapshot, verify, restore = page["A checkpoint is torn or gone"]
    sales(sandbox)
    arrive_and_run(sandbox, 0)
    typed(sandbox, snapshot)
    arrive_and_run(sandbox, 1)
    newest(sandbox.storage / f"_drawdown/{NAME}/checkpoint-1/sources/0").write_text("v1\ntorn")
    assert "drawdown checkpoint restore" in typed(sandbox, verify, code=3)
    typed(sandbox, restore)
    assert ids(sandbox) == [0, 1, 100, 101]


@pytest.mark.full
def test_state_cannot_take_a_change(sandbox: Sandbox, page: Page) -> None:
    look, swap, back = page["State cannot take a change"]
    spec = SPEC.replace("SOURCE", CSV).replace("out.ddl", "out.ddl, mode: update, keys: [id]")
    files = {"sale_ddl": "id INT, country STRING", "out_ddl": "id INT, n BIGINT"}
    sql = "SELECT id % 100 AS id, count(*) AS n FROM payments GROUP BY id % 100"
    sales(sandbox, spec, **files, transform_sql=sql)
    arrive_and_run(sandbox, 0, 1)
    folder = sandbox.root / "include/pipelines" / NAME
    shutil.move(shutil.copytree(folder, sandbox.root / "next"), folder)
    (folder / "next/transform.sql").write_text(sql.replace("% 100", "% 10"))
    assert "sales" in typed(sandbox, look)
    assert sandbox.delta("tables/sales") == [(0, 2), (1, 2)]
    arrive(sandbox, 10)
    typed(sandbox, swap)
    assert sandbox.delta("tables/sales") == [(0, 4), (1, 2)]
    typed(sandbox, back)
    assert sandbox.delta("tables/sales") == [(0, 2), (1, 2)]
    sandbox.run(NAME)
    assert sandbox.delta("tables/sales") == [(0, 2), (1, 2), (10, 2)], "by the old version"


def test_the_storage_grows(sandbox: Sandbox, page: Page) -> None:
    look, tidy = page["The storage grows"]
    sales(sandbox)
    arrive_and_run(sandbox, *range(8))
    before = ids(sandbox)
    assert "to compact" in typed(sandbox, look)
    assert "8 → 1" in typed(sandbox, tidy)
    assert ids(sandbox) == before


@pytest.mark.full
def test_to_another_cluster_or_storage(sandbox: Sandbox, page: Page) -> None:
    cluster, storage = page["To another cluster or storage"]
    sales(sandbox)
    arrive_and_run(sandbox, 0)
    settings = sandbox.root / "include/project.yaml"
    with settings.open("a") as file:
        file.write("clusters: {local: {kind: local}, other: {kind: local, master: 'local[1]'}}\n")
    sales(sandbox, SPEC.replace("SOURCE", CSV) + "cluster: other\n")
    arrive(sandbox, 1)
    typed(sandbox, cluster)
    old = sandbox.storage
    sandbox.storage = Path(shutil.move(old, sandbox.root / "new"))
    settings.write_text(settings.read_text().replace("storage_root: storage", "storage_root: new"))
    arrive(sandbox, 2)
    here = [[str(old) if word == "/the/old/root" else word for word in words] for words in storage]
    typed(sandbox, here)
    assert ids(sandbox) == [0, 1, 2, 100, 101, 102]


def test_every_section_is_typed(page: Page) -> None:
    named = {name.removeprefix("test_").replace("_", " ") for name in globals() if name.startswith("test_")}
    assert {heading.lower() for heading in page} == named - {"every section is typed"}
