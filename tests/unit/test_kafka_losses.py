"""Losses of a Kafka source: between the checkpoint and the broker, and the batches that pass over them."""

from __future__ import annotations

from drawdown.brokers.offsets import TopicOffsets
from drawdown.sources.kafka.losses import Loss, kafka_losses
from drawdown.sources.kafka.spark_losses import Losses, lost_offsets

READ = {"flights": {"0": 5}}


def _found(earliest: int, latest: int) -> TopicOffsets:
    return TopicOffsets({("flights", 0): earliest}, {("flights", 0): latest})


def _ranges(losses: list[Loss]) -> list[tuple[int, int | None]]:
    return [(loss.first, loss.after) for loss in losses]


def test_nothing_is_lost_while_the_next_offset_is_still_there() -> None:
    assert kafka_losses(READ, _found(0, 9)) == []
    assert kafka_losses(READ, _found(5, 5)) == []


def test_offsets_between_the_next_one_and_the_first_that_is_there_are_lost() -> None:
    (loss,) = kafka_losses(READ, _found(8, 8))
    assert (loss.first, loss.after) == (5, 8)
    assert str(loss) == "partition 0 of topic flights begins at offset 8 now: offsets 5 to 7 are lost"


def test_a_topic_that_was_made_again_loses_what_lies_before_the_old_offset_or_its_end() -> None:
    assert _ranges(kafka_losses(READ, _found(0, 2))) == [(0, 2)]
    assert _ranges(kafka_losses(READ, _found(0, 9), made_again=["flights"])) == [(0, 5)]
    assert _ranges(kafka_losses(READ, _found(0, 0))) == [(5, None)], "nobody knows what the old one held"


def test_a_partition_that_is_gone_and_a_new_one_without_its_first_records_are_losses() -> None:
    found = TopicOffsets({("flights", 1): 4}, {("flights", 1): 9})
    assert _ranges(kafka_losses(READ, found)) == [(5, None), (0, 4)]


def test_a_batch_notes_the_part_that_it_passes_over() -> None:
    losses = Losses({"f": kafka_losses(READ, _found(8, 20))}, {"f": {"flights": "id"}})
    first = losses.note("f", READ, {"flights": {"0": 6}})
    second = losses.note("f", {"flights": {"0": 6}}, {"flights": {"0": 12}})
    third = losses.note("f", {"flights": {"0": 12}}, {"flights": {"0": 20}})
    assert [lost_offsets([note]) for note in (first, second, third)] == [1, 2, 0]
    assert third == {"topic_ids": {"flights": "id"}}


def test_a_jump_in_a_topic_that_was_made_again_is_noted_once() -> None:
    losses = Losses({"f": kafka_losses(READ, _found(0, 2))})
    assert losses.note("f", READ, READ) == {}
    note = losses.note("f", READ, {"flights": {"0": 2}})
    assert note["lost"] == [{"topic": "flights", "partition": 0, "first": 0, "after": 2, "offsets": 2}]
    assert losses.note("f", {"flights": {"0": 2}}, {"flights": {"0": 4}}) == {}


def test_a_source_without_losses_notes_nothing() -> None:
    assert Losses().note("files", None, {"logOffset": 3}) == {}
