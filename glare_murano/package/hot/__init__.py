# SPDX-License-Identifier: Apache-2.0

"""What a HOT template's class, parameters and form are."""
