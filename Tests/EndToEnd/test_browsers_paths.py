"""A browser behind a path that is too narrow for pictures."""

import pytest

from network import Network
from test_browsers import everybody_decodes
from test_page_states import tile_says


@pytest.fixture
def server(fresh_server):
    return fresh_server


@pytest.fixture
def network(server):
    between = Network(server)
    yield between
    between.close()


def test_a_path_with_room_for_the_voice_alone_keeps_it_and_the_tile_explains_the_picture(person, network):
    alice, bob = person("Alice"), person("Bob", network.script, at=network.url)
    alice.call("Bob")
    bob.answer()
    everybody_decodes(alice, bob)
    network.impair(110_000, queue=0.5)
    tile_says(bob, alice, "Picture is not sent to you now", seconds=25)
    bob.decodes(voices=1)
    network.impair(3_000_000)
    everybody_decodes(alice, bob, seconds=20)
