"""What companions and plug-ins of one's own build on, by subject; the core's other modules may change at any time."""
