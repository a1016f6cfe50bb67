"""Daemons for the tests of this folder."""

from confirm.houses import engine as engine
from confirm.houses import house as house
from confirm.houses import no_daemon_of_ours as no_daemon_of_ours
from confirm.houses import open_house as open_house
