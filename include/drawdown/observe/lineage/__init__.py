"""OpenLineage: an event when a run begins and when it has ended, after it published; columns by source.

events.py builds the events from the run's records, datasets.py names what they read and write, spool.py keeps
them in a folder until sender.py has delivered them. run_events.py is what applications and commands call.
"""
