"""The package's version, apart from `medexam` itself so that no module imports the face of the house.

It is that of the last git tag when the package was installed or built.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("medexam")
except PackageNotFoundError:  # sources that nobody installed
    __version__ = "0+unknown"
