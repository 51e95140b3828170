"""The fixtures of a real node for the tests of this folder."""

from tests.support.node_fixtures import *  # noqa: F403 - its list of names says what
