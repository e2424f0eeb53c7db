"""`doc_md` of a DAG, written from its specs: what it reads, writes and refuses, and how to operate it."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.airflow.links import run_page
from drawdown.airflow.schedules import in_words, schedule_of
from drawdown.errors import SpecError
from drawdown.metastore.records import Checkpoint, HeldSlice, Run
from drawdown.rebuild.comparison_text import comparison_lines
from drawdown.spec import Pipeline, Project, Source
from drawdown.values.dag_ids import replay_dag_id
from drawdown.values.text import counted

_OPERATE = """
### Operate
- **Switch it on**: a new DAG is paused and runs nothing by itself. Use the switch beside its name, or
  `airflow dags unpause {dag_id}`.
- **Run now**: trigger this DAG, or `drawdown run {names}`. A run drains what has arrived since the last
  one; the checkpoint says from where, so a run's logical date selects nothing.
- **Backfill**: switched off for this DAG, every run of it would drain the same backlog. What arrived
  late, or arrives for an old date: trigger a run. To compute an interval again is a replay, a DAG of its own
  ({replays}).
- **Retries** wait {retry_delay}, longer than a dead run's lease of {lease}. Clearing `drain` is safe at any
  time: what was published is not published twice.
- Nothing new: `preflight` skips the rest and no Spark is started.
- `drain` takes a slot of the pool `{pool}`. If the pool does not exist, it stays *scheduled* forever:
  `airflow pools set {pool} 2 "Spark applications at once"`.
- A slice that failed its audit is held: {decide}.
- How its runs went: the tab *Pipeline*. What each batch of a run read, and its verdict: the tab *Batches* of
  the run, the button *Run record*, or `drawdown runs`.
"""


def dag_documentation(project: Project, pipelines: Sequence[Pipeline]) -> str:
    """Return Markdown for one pipeline, or for all pipelines of a group."""
    parts = [_pipeline(pipeline) for pipeline in pipelines]
    tasks = project.tasks_of(pipelines[0].airflow)
    operate = _OPERATE.format(
        dag_id=pipelines[0].group or pipelines[0].name,
        names=" ".join(pipeline.name for pipeline in pipelines),
        replays=", ".join(f"`{replay_dag_id(pipeline.name)}`" for pipeline in pipelines if pipeline.replay)
        or "none: add `replay:` to the spec to get one",
        retry_delay=tasks.retry_delay,
        lease=project.lease_ttl,
        pool=tasks.pool,
        decide=", ".join(
            f"`drawdown__decide` asks for the decision about that of `{p.name}`"
            if p.may_be_held
            else f"`{p.name}` holds none"
            for p in pipelines
        ),
    )
    schedule = in_words(schedule_of(pipelines[0]))
    return "\n".join([*parts, f"\nSchedule: {schedule}. Owner: {pipelines[0].owner}.", operate])


def request_body(held: HeldSlice, run: Run | None) -> str:
    """Return Markdown for a request about a held slice: the verdict, and what either answer does."""
    lines = [
        f"Run `{held.verdict.run_id}` drained and staged {counted(held.rows, 'row')} ({held})."
        " Its audit has failed:",
        f"```text\n{_plain(held.verdict.text)}\n```",
        "**release** publishes them unchanged, **discard** deletes them; the batches that wait behind them"
        " are published in both cases.",
    ]
    if run is not None and "dag_run_id" in run.origin:
        page = run_page(str(run.origin["dag_id"]), str(run.origin["dag_run_id"]))
        lines.append(f"What the run read and set aside: [run record]({page}).")
    return "\n\n".join(lines)


def rebuild_body(name: str, shadow: Checkpoint) -> str:
    """Return Markdown for a request about a rebuild: how it differs, and what either answer does."""
    lines = "\n".join(comparison_lines(shadow.rebuild["comparison"]))
    return "\n\n".join(
        [
            f"The rebuild of `{name}`, generation {shadow.generation}, compared with the live output:",
            f"```text\n{_plain(lines)}\n```",
            "**approve** swaps it in by one commit: readers see it, and drains go on with it. **reject**"
            f" deletes it. To undo a swap: `drawdown rebuild rollback {name} --why ...`",
        ]
    )


def broken_documentation(error: SpecError) -> str:
    """Return Markdown that shows why a pipeline has no DAG of its own."""
    return (
        "### This pipeline is broken\nIt does not run until its spec is fixed; the other pipelines do.\n\n"
        f"```text\n{_plain(str(error))}\n```\n\nCheck with `drawdown validate`."
    )


def _pipeline(pipeline: Pipeline) -> str:
    sink = pipeline.sink
    lines = [
        f"### {pipeline.name}",
        _plain(pipeline.description),
        "",
        *(f"- source {_source(name, source)}" for name, source in pipeline.sources.items()),
        f"- sink `{sink.target}`: {sink.format}, {sink.mode}, published {sink.publish}",
        *(f"- rule `{r.name}` ({r.on_fail}): `{_code(r.check)}`" for r in pipeline.quality.rules),
        *(f"- expects ({e.severity}): `{_code(e.id)}`" for e in pipeline.quality.expectations),
        *(f"- query ({q.severity}): `{_code(q.name)}`" for q in pipeline.quality.queries),
        *(
            f"- compares with earlier slices ({e.severity}): `{_code(e.id)}`"
            for e in pipeline.quality.history
        ),
    ]
    return "\n".join(lines)


def _source(name: str, source: Source) -> str:
    where = source.path or ", ".join(f"{k} {v}" for k, v in source.options.items() if "ubscribe" in k)
    text = f"`{name}`: {source.format} `{_code(where)}`"
    if source.static:
        return f"{text}, static"
    if source.watermark:
        return f"{text}, watermark `{source.watermark.column}` {source.watermark.delay}"
    return text


def _plain(text: str) -> str:
    """Escape text of a spec for Markdown: no HTML, no end of a fence."""
    return text.replace("```", "'''").replace("<", "&lt;")


def _code(text: str) -> str:
    """Return one line between backticks."""
    return " ".join(text.split()).replace("`", "'")
