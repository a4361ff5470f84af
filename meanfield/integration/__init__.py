"""From a flow to a trajectory."""
