"""Pictures with a layout of their own, as SVG: a calendar, a graph. Charts with axes are in plots.py."""
