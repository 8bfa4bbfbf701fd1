"""The shape annotations of the package are checked, so that the promises of methods are tested together with them."""

import os

import pytest
import torch

from handful.numerics.geometry import columns_of

pytestmark = pytest.mark.skipif(
    not os.environ.get("HANDFUL_CHECK_SHAPES"), reason="checked with HANDFUL_CHECK_SHAPES=1, as in `make test`"
)


def test_an_axis_of_another_length_is_refused():
    with pytest.raises(TypeError, match="kept"):
        columns_of(torch.zeros(1, 2, 3), torch.zeros(1, 2, 1, dtype=torch.long))
