from .main import COMMANDS as COMMANDS
from .main import app as app
from .main import load_command as load_command
from .main import run_command as run_command
