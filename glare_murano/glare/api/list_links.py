# SPDX-License-Identifier: Apache-2.0

"""Repair the links between the pages of a list. Glare's own links lack repeated filters."""

import webob

from glare_murano import fields
from glare_murano.service import request_reading

PATH = f"/artifacts/{fields.TYPE_NAME}"
# The path of lists of all types, which contain packages as well.
PATH_OF_ALL = "/artifacts/all"


def repair_links(req: webob.Request, response: webob.Response) -> None:
    """Write all filters of a list request into the links ``first`` and ``next`` of its response.

    If a request has several filters with the same name, Glare's own links lack some of them. For
    all other requests, this function changes nothing.
    """
    is_list = req.method == "GET" and req.path_info == PATH and response.status_code == 200
    names = list(req.GET)
    if not is_list or len(set(names)) == len(names):
        return
    body = response.json
    query = [(name, value) for name, value in req.GET.items() if name != "marker"]
    body["first"] = request_reading.link(PATH, query)
    if "next" in body:
        body["next"] = request_reading.link(PATH, [*query, ("marker", body["artifacts"][-1]["id"])])
    response.json = body
