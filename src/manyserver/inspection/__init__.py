"""Questions about a project: what a run would do, what there is, where a file comes from."""
