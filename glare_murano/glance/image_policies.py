# SPDX-License-Identifier: Apache-2.0

"""Define policies for requests that read or change packages: Glance's own, and one for yanks."""

from oslo_policy import policy

GET_IMAGES = "get_images"
GET_IMAGE = "get_image"
DOWNLOAD_IMAGE = "download_image"
MODIFY_IMAGE = "modify_image"
PUBLICIZE_IMAGE = "publicize_image"
DELETE_IMAGE = "delete_image"
DEACTIVATE = "deactivate"
REACTIVATE = "reactivate"
YANK = "murano:yank"

# The policies for requests that add data to an image without an import.
DATA_POLICIES = (
    "upload_image",
    "add_image_location",
    "set_image_location",
    "delete_image_location",
)

# The policy for yanks, which Glance itself does not have. Any member of the package's project may
# yank the package, even a public one.
YANK_RULE = policy.DocumentedRuleDefault(
    YANK,
    "rule:context_is_admin or (role:member and project_id:%(project_id)s)",
    "Yank or unyank a package.",
    [{"path": "/murano/v1/yanks", "method": "POST"}],
)
