"""Optional packages, imported where they are used; if one is missing, the error says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from handful.errors import MissingExtraError


def import_extra(module: str, extra: str) -> Any:
    """Import a module that belongs to `pip install 'handful[extra]'`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs the package {error.name!r}, which is not installed; run: pip install 'handful[{extra}]'"
        ) from error


def import_pyarrow() -> tuple[Any, Any]:
    """Import `pyarrow` and `pyarrow.parquet`."""
    return import_extra("pyarrow", "parquet"), import_extra("pyarrow.parquet", "parquet")
