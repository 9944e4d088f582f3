# SPDX-License-Identifier: Apache-2.0

"""Check the form of a package, ``ui.yaml``, as Murano's dashboard reads it.

A problem prevents the dashboard from showing the form, or from making an object from its values.
Any other mistake is a warning. YAQL expressions are not evaluated.
"""

from glare_murano.package.ui_form.document import FormCheck, check_form

__all__ = ["FormCheck", "check_form"]
