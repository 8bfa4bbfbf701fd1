"""What a benchmark run says: means, differences, tables, figures, one page; the paper's numbers beside them."""
