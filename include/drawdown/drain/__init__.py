"""A drain: one run against the live checkpoint, from the plan to the audit and the publish of its slice."""
