"""Pictures of answers and catalogues with matplotlib, and their tables for notebooks.

People call these as methods: `Answer.plot`, `Answer.plot_map`, `Answer.plot_items` and `FittedModel.plot`. Pictures lie
below what they show, which calls them, so here an answer or a catalogue is of any type.
Colours of text and axes are those of the style in use, so `dark_background` works.
"""

from handful.plots.catalogues import plot_catalogue
from handful.plots.classes import plot_classes, plot_groups
from handful.plots.maps import plot_map
from handful.plots.sheets import plot_pictures, plot_texts

__all__ = ["plot_catalogue", "plot_classes", "plot_groups", "plot_map", "plot_pictures", "plot_texts"]
