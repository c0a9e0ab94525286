from .calls import ModelCall as ModelCall
from .core import Reason as Reason
from .core import Status as Status
from .evidence.failures import Failure as Failure
from .evidence.option_statistics import normalise_scores as normalise_scores
from .evidence.passages import RetrievedPassage as RetrievedPassage
from .evidence.rounds import FollowUp as FollowUp
from .prediction import Prediction as Prediction
