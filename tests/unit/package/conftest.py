# SPDX-License-Identifier: Apache-2.0

"""How many examples the property tests try.

``PACKAGE_EXAMPLES=50000 pytest tests/unit/package`` looks harder.
"""

import os

from hypothesis import settings

EXAMPLES = int(os.environ.get("PACKAGE_EXAMPLES", "2000"))

settings.register_profile("ranges", deadline=None, max_examples=EXAMPLES)
settings.register_profile("fuzz", deadline=None, max_examples=max(EXAMPLES // 4, 1))
