"""Access links and latencies: their settings, device classes, regions, and what one run draws from them."""
