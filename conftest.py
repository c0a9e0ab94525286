"""What the tests of the core and of the companions share."""

pytest_plugins = ["suite.fixtures", "suite.costs", "suite.isolation"]
