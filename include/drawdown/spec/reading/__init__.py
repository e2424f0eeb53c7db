"""How a spec file is read: YAML with lines, variables of the environment, errors that teach."""
