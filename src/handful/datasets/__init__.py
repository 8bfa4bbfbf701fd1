"""Real banks that come with the package, small enough to ship and free to use; their licences are beside them."""

from handful.datasets.clinc150 import load_clinc150, load_clinc150_frame, load_clinc150_sentences

__all__ = ["load_clinc150", "load_clinc150_frame", "load_clinc150_sentences"]
