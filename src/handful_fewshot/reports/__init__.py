"""Results of a benchmark run: means, differences, tables, figures and one page, with the paper's numbers."""
