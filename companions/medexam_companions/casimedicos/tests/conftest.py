"""The whole data set, where it lies on this machine."""

from data_folders import full_data

__all__ = ["full_data"]
