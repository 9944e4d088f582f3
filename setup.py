# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import setuptools

# Without this, pbr takes the version from Git's tags, and counts the commits since the last one.
os.environ.setdefault(
    "PBR_VERSION", pathlib.Path(__file__).with_name("VERSION").read_text().strip()
)

setuptools.setup(setup_requires=["pbr>=6.1"], pbr=True)
