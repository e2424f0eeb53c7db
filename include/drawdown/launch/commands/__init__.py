"""Clusters that programs of the project start (`kind: commands`): the calls, their guard, the reaper."""
