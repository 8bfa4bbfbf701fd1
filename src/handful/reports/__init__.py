"""Reports: what a run says, as numbers, tables, figures and one page."""
