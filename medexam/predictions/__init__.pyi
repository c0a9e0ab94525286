from .prediction import Failure as Failure
from .prediction import ModelCall as ModelCall
from .prediction import Prediction as Prediction
from .prediction import Reason as Reason
from .prediction import RetrievedPassage as RetrievedPassage
from .prediction import Status as Status
