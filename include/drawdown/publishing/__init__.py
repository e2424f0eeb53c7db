"""Publishes audited slices. Needs no Spark, so an Airflow task does it in well under a second."""

from drawdown.publishing.commit_groups import tell_commit_groups
from drawdown.publishing.publish import Published, publish_batch, publish_passed, publish_quarantine

__all__ = ["Published", "publish_batch", "publish_passed", "publish_quarantine", "tell_commit_groups"]
