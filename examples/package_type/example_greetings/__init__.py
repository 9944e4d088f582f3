# SPDX-License-Identifier: Apache-2.0

"""The package type ``Example.Greetings``: an application for each greeting in a file."""
