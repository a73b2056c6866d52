"""A model as one HTML page: what is in it, and the page's own HTML, style and scripts."""
