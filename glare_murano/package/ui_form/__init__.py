# SPDX-License-Identifier: Apache-2.0

"""Check the form of a package, ``ui.yaml``, as Murano's dashboard reads it.

A problem is a mistake that keeps the dashboard from showing the form, or from making an object from
the form's values. Any other mistake is a warning. YAQL expressions are not evaluated.
"""

from glare_murano.package.ui_form.document import ALWAYS_REFUSED, FormCheck, check_form

__all__ = ["ALWAYS_REFUSED", "FormCheck", "check_form"]
