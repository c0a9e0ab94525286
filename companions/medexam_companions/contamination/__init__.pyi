from .contrasts import difference_of_means as difference_of_means
from .contrasts import mean_value as mean_value
from .contrasts import right_by_place as right_by_place
from .ngram_overlap import QuestionGrams as QuestionGrams
