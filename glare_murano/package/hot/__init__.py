# SPDX-License-Identifier: Apache-2.0

"""Generate the MuranoPL class and the form of a package from its Heat (HOT) template."""
