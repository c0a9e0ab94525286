from .documents import ArgumentComponent as ArgumentComponent
from .documents import read_casimedicos as read_casimedicos
