"""What explained exams hold, from their archive or from files in the form of SQuAD.

Table 9 of Goenaga et al. (2023) counts the sentences of the answer: the part of an explanation that argues for the
right option. Files in the form of SQuAD hold that part. The archive does not, so there the whole explanation is
counted.
"""

from collections import Counter

from medexam.datasets import ExplanationStatistics, locate_files, read_squad, sentence_shares
from medexam.specs import DatasetSpec
from medexam_companions.casimedicos.documents import read_casimedicos
from medexam_companions.casimedicos.extraction import SPANS


def compute_explanation_statistics(spec: DatasetSpec) -> ExplanationStatistics:
    """Compute the statistics of everything that `spec` reads; of its split alone if it names one.

    Raises `DatasetError` if the files are missing or cannot be read.
    """
    path = locate_files(spec.name, spec.language, spec.path)[0]
    if path.suffix in SPANS:
        items = read_squad(path)
        documents = sorted({f"{item.question} {item.context}" for item in items})
        texts = [item.references[0] for item in items if item.references]
        specialties = Counter[str]()
    else:
        filters = {} if spec.split == "all" else {"splits": [spec.split]}
        cases = read_casimedicos(path, spec.language, **filters)
        documents = [" ".join((case.case, case.question, *case.options, case.explanation)) for case in cases]
        texts = [case.explanation for case in cases]
        specialties = Counter(case.specialty.strip().capitalize() or "none" for case in cases)
    words = sum(len(document.split()) for document in documents)
    return ExplanationStatistics(
        name=spec.name,
        language=spec.language,
        source=str(path),
        documents=len(documents),
        words=words,
        words_per_document=words / len(documents),
        specialties=dict(specialties.most_common()),
        answers=path.suffix in SPANS,
        explanations=len(texts),
        sentences=sentence_shares(texts),
    )
