# SPDX-License-Identifier: Apache-2.0

"""YAQL expressions in YAML."""

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from glare_murano.package.hot.yaql_dumper import Yaql, dump


class _Loader(yaml.SafeLoader):
    pass


_Loader.add_constructor("!yaql", lambda loader, node: Yaql(loader.construct_scalar(node)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.builds(Yaql, st.text()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_what_is_written_is_read_back(document: Any) -> None:
    assert yaml.load(dump(document), _Loader) == document


def test_what_stands_twice_is_written_twice() -> None:
    shared = {"a": Yaql("$")}

    assert dump([shared, shared]).count("!yaql") == 2
