"""File arrivals by notifications: what a bucket reports to a topic, so that a source needs no listing.

Belongs here: reading notifications, and what a generation keeps of them. Not: what is new to Spark, which its
own log of seen files decides (docs/decisions/0036).
"""
