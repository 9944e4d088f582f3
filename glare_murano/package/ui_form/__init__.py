# SPDX-License-Identifier: Apache-2.0

"""Check the form of a package, ``ui.yaml``, as Murano's dashboard reads it.

A mistake is a problem if the dashboard cannot show the form because of it, or cannot make an object
from the form's values. Any other mistake is a warning. YAQL expressions are not evaluated.
"""

from glare_murano.package.ui_form.document import ALWAYS_REFUSED, FormCheck, check_form

__all__ = ["ALWAYS_REFUSED", "FormCheck", "check_form"]
