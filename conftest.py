"""Examples in docstrings train for a few steps only, and may warn that this is too little."""

import pytest


def pytest_collection_modifyitems(items):
    """Let such examples warn."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::scwormhole.ot.TransportWarning"))
