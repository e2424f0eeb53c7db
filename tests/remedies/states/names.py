"""Pipelines that were renamed, removed or moved, and names that nothing has."""

from __future__ import annotations

import shutil
from datetime import timedelta

from tests.remedies.ground import NAME, Ground
from tests.remedies.registry import Made, rows, state

NEW = "sales"


def _rename_folder(ground: Ground, first: str = NAME) -> None:
    folder = ground.root / "include/pipelines"
    (folder / NAME).rename(folder / NEW)
    spec = folder / NEW / "pipeline.yaml"
    spec.write_text(f"first_name: {first}\n{spec.read_text()}")


@state("rename.not-done")
def not_done(ground: Ground) -> Made:
    ground.drained()
    _rename_folder(ground)
    ground.land(3)
    error = ground.refused("rename.not-done", NEW)
    return Made(
        error,
        outside={"if the pipeline is new": "it is not"},
        names=(NEW,),
        wanted=rows(1, 2, 3),
    )


@state("rename.not-done/twice")
def not_done_twice(ground: Ground) -> Made:
    """The first name is not the name until now."""
    ground.drained()
    _rename_folder(ground)
    ground.well(f"rename {NAME} {NEW} --why ...")
    folder = ground.root / "include/pipelines"
    (folder / NEW).rename(folder / "deals")
    ground.land(3)
    error = ground.refused("rename.not-done", "deals")
    outside = {"if the pipeline is new": "it is not"}
    return Made(error, outside=outside, names=("deals",), wanted=rows(1, 2, 3))


@state("rename.unknown")
def rename_unknown(ground: Ground) -> Made:
    ground.drained()
    _rename_folder(ground)
    error = ground.fails("rename.unknown", f"rename ordes {NEW} --why ...")
    return Made(error, again=f"rename {NAME} {NEW} --why ...", names=(NEW,), wanted=rows(1, 2))


@state("rename.taken")
def rename_taken(ground: Ground) -> Made:
    """A folder of the new name has run already."""
    ground.drained()
    folder = ground.root / "include/pipelines"
    shutil.copytree(folder / NAME, folder / NEW)
    spec = folder / NEW / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("tables/orders", "tables/sales"))
    ground.sandbox.run(NEW)
    shutil.rmtree(folder / NEW)
    _rename_folder(ground)
    error = ground.fails("rename.taken", f"rename {NAME} {NEW} --why ...")

    def another_name() -> None:
        (folder / NEW).rename(folder / "deals")
        ground.well(f"rename {NAME} deals --why ...")

    return Made(error, after=another_name, names=("deals",), wanted=rows(1, 2))


@state("rename.folder")
def rename_folder(ground: Ground) -> Made:
    ground.drained()
    error = ground.fails("rename.folder", f"rename {NAME} {NEW} --why ...")
    return Made(
        error,
        hands={"git mv": lambda: _rename_folder(ground)},
        again=f"rename {NAME} {NEW} --why ...",
        names=(NEW,),
        wanted=rows(1, 2),
    )


@state("rename.first-name")
def first_name(ground: Ground) -> Made:
    ground.drained()
    _rename_folder(ground, "others")
    spec = ground.root / f"include/pipelines/{NEW}/pipeline.yaml"

    def write() -> None:
        spec.write_text(spec.read_text().replace("first_name: others", f"first_name: {NAME}"))

    command = f"rename {NAME} {NEW} --why ..."
    error = ground.fails("rename.first-name", command)
    hands = {f"write `first_name: {NAME}`": write}
    return Made(error, hands=hands, again=command, names=(NEW,), wanted=rows(1, 2))


def _gone(ground: Ground) -> None:
    """Its folder is removed; another pipeline stays."""
    ground.drained()
    folder = ground.root / "include/pipelines"
    shutil.copytree(folder / NAME, folder / "others")
    spec = folder / "others/pipeline.yaml"
    spec.write_text(spec.read_text().replace("tables/orders", "tables/others"))
    (folder / NAME).rename(ground.root / "folder")


@state("remove.unasked")
def remove_unasked(ground: Ground) -> Made:
    _gone(ground)
    return Made(ground.fails("remove.unasked", f"remove {NAME}"), names=("others",))


@state("remove.unknown")
def remove_unknown(ground: Ground) -> Made:
    _gone(ground)
    error = ground.fails("remove.unknown", "remove ordes --yes")
    return Made(error, again=f"remove {NAME} --yes", names=("others",))


@state("remove.in-use")
def remove_in_use(ground: Ground) -> Made:
    ground.drained()
    error = ground.fails("remove.in-use", f"remove {NAME} --yes")
    _gone(ground)
    return Made(error, hands={"git rm": lambda: None}, again=f"remove {NAME} --yes", names=("others",))


@state("remove.renamed")
def remove_renamed(ground: Ground) -> Made:
    ground.drained()
    _rename_folder(ground)
    error = ground.fails("remove.renamed", f"remove {NAME} --yes")
    return Made(error, names=(NEW,), wanted=rows(1, 2))


def _move(ground: Ground) -> str:
    """Copy the storage elsewhere, and let the project use the copy; where it was."""
    old = ground.sandbox.storage
    shutil.copytree(old, ground.root / "new-place", copy_function=shutil.copyfile)
    settings = ground.root / "include/project.yaml"
    settings.write_text(settings.read_text().replace("storage_root: storage", "storage_root: new-place"))
    return str(old)


@state("storage.moved/from a place with a space")
def moved_from_a_hard_name(ground: Ground) -> Made:
    """The command quotes what a shell would split."""
    ground.empty()
    settings = ground.root / "include/project.yaml"
    settings.write_text(settings.read_text().replace("storage_root: storage", "storage_root: old place"))
    ground.sandbox.storage = ground.sandbox.storage.rename(ground.root / "old place")
    ground.pipeline()
    ground.land(1)
    ground.sandbox.run(NAME)
    settings.write_text(settings.read_text().replace("storage_root: old place", "storage_root: storage"))
    shutil.copytree(ground.sandbox.storage, ground.root / "storage")
    ground.sandbox.storage = ground.root / "storage"
    error = ground.refused("storage.moved")
    return Made(error, outside={"restore `storage_root:`": "see the other state"}, wanted=rows(1))


@state("storage.moved")
def storage_moved(ground: Ground) -> Made:
    ground.drained()
    _move(ground)
    settings = ground.root / "include/project.yaml"

    def set_back() -> None:
        settings.write_text(settings.read_text().replace("storage_root: new-place", "storage_root: storage"))

    return Made(ground.refused("storage.moved"), hands={"restore `storage_root:`": set_back})


@state("move.nothing")
def move_nothing(ground: Ground) -> Made:
    """The root that was given is another than the one in the checkpoint."""
    ground.drained()
    old = _move(ground)
    error = ground.fails("move.nothing", f"checkpoint move {NAME} --from /another/root")
    assert old not in error.do
    return Made(error, outside={"restore `storage_root:`": "everything was copied"})


@state("move.not-copied")
def not_copied(ground: Ground) -> Made:
    ground.held()
    old = _move(ground)
    shutil.rmtree(ground.root / "new-place/tables")
    command = f"checkpoint move {NAME} --from {old}"
    error = ground.fails("move.not-copied", command)

    def copy() -> None:
        shutil.copytree(ground.root / "storage/tables", ground.root / "new-place/tables")

    return Made(error, hands={"copy everything": copy}, again=command)


@state("lease.held")
def lease_held(ground: Ground) -> Made:
    ground.drained()
    ground.land(3)
    with ground.sandbox.metastore() as metastore:
        lease = metastore.acquire(NAME, "another", "a-run", timedelta(minutes=5))
    error = ground.refused("lease.held")

    def wait() -> None:
        with ground.sandbox.metastore() as metastore:
            metastore.release(lease)

    return Made(error, hands={"wait until": wait}, after=wait, wanted=rows(1, 2, 3))
