"""The page of `warmstart insights`: one file that needs nothing else."""
