"""The experiments that ship with the package: YAML files, named on the command line without their ending."""
