from .layout import print_layout as print_layout
from .paper import all_papers as all_papers
