"""The compiled event core: its memory, its kernels, and the one solver of fair sharing."""
