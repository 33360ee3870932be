"""Pictures for papers: svg, png, pdf."""
