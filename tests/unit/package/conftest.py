# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How many examples the property tests try.

``PACKAGE_EXAMPLES=50000 pytest tests/unit/package`` looks harder.
"""

import os

from hypothesis import settings

EXAMPLES = int(os.environ.get("PACKAGE_EXAMPLES", "2000"))

settings.register_profile("ranges", deadline=None, max_examples=EXAMPLES)
settings.register_profile("fuzz", deadline=None, max_examples=max(EXAMPLES // 4, 1))
