"""Features from images and sentences: items, encoders, and shards that resume, here or over a Ray cluster."""
