"""The settings of commands that their actions read: one class an option group."""
