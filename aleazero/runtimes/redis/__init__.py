"""Many machines over Redis: the server, who may do what on it, and how slabs and weights travel through it."""
