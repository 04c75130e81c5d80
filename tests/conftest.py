"""What all tests share: by which SQLite library stores are opened where a test does not say.

``TWOFOLD_TEST_DRIVER=pysqlite3 pytest …`` runs the tests on the drop-in instead of Python's own ``sqlite3``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

pytest.register_assert_rewrite("twofold.testing")  # what ships for others' tests asserts too

from twofold.backends.sqlite import driver, opening, registry  # noqa: E402
from twofold.testing.patience import patient_embedders  # noqa: E402

hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def _patient_embedders() -> Iterator[None]:
    with patient_embedders():
        yield


@pytest.fixture(scope="session", autouse=True)
def _default_driver() -> Iterator[None]:
    wanted = os.environ.get("TWOFOLD_TEST_DRIVER")
    if wanted is None:
        yield
        return
    driver.load_driver(wanted)  # type: ignore[arg-type]  # refused with a clear error if it is neither
    with pytest.MonkeyPatch.context() as patch:
        for module in (driver, opening, registry):
            patch.setattr(module, "DEFAULT_DRIVER", wanted)
        yield
