"""The environment of a workspace: what its programs need so that they import the workspace's own code."""
