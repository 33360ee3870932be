"""The compiled event core: its memory, its kernels, and the solver of fair sharing."""
