from .calls import ModelCall as ModelCall
from .core import Failure as Failure
from .core import Reason as Reason
from .core import RetrievedPassage as RetrievedPassage
from .core import Status as Status
from .prediction import Prediction as Prediction
