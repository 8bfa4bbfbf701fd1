"""Features from images and sentences: items, backbones, and shards that resume, here or over a Ray cluster."""
