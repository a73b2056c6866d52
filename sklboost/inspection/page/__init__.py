"""A model as one HTML page: its contents, and the HTML, style and scripts."""
