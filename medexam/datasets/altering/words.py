"""What altered questions show in each language, and which words make options or stems unfit to be altered."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from medexam.questions import Language
from medexam.text import plain_letters

STEM_WITHHELD: Mapping[Language, str] = MappingProxyType(
    {
        "en": "(The question is not shown.)",
        "es": "(La pregunta no se muestra.)",
        "fr": "(La question n'est pas montrée.)",
        "gl": "(A pregunta non se mostra.)",
        "it": "(La domanda non è mostrata.)",
        "ja": "（問題文は示されていません。）",  # noqa: RUF001
        "ru": "(Вопрос не показан.)",
        "zh": "（题目未显示。）",  # noqa: RUF001
    }
)
OPTION_WITHHELD: Mapping[Language, str] = MappingProxyType(
    {
        "en": "(This option is not shown.)",
        "es": "(Esta opción no se muestra.)",
        "fr": "(Cette option n'est pas montrée.)",
        "gl": "(Esta opción non se mostra.)",
        "it": "(Questa opzione non è mostrata.)",
        "ja": "（この選択肢は示されていません。）",  # noqa: RUF001
        "ru": "(Этот вариант не показан.)",
        "zh": "（此选项未显示。）",  # noqa: RUF001
    }
)
NONE_OF_THEM: Mapping[Language, str] = MappingProxyType(
    {
        "en": "None of the other options.",
        "es": "Ninguna de las otras opciones.",
        "fr": "Aucune des autres options.",
        "gl": "Ningunha das outras opcións.",
        "it": "Nessuna delle altre opzioni.",
        "ja": "他の選択肢はいずれも正しくない。",
        "ru": "Ни один из других вариантов.",
        "zh": "其他选项均不正确。",
    }
)
_REFERRING = re.compile(
    r"""
      ^\W*(all|none|both|neither|any|tod[ao]s|ningun[ao]?|ningunha|ambas|ambos|tous|toutes|aucune?|tutt[ei]|nessuna)\b
      .{0,60}\b(above|previous|preceding|others?|options?|answers?|statements?|of\ (these|this)|ones|true|false
      |(in)?correct[ao]?s?|anteriore?s?|ciert[ao]s|fals[ao]s|verdader[ao]s|opcion(es)?|respuestas?|otr[ao]s|demas
      |precedent[ei]?s?|reponses?|vraie?s|exacte?s|fausses|justes|corrett[ei]|risposte|ver[ei]|opzioni)\b
    | ^\W*(all|none|both|todas|ninguna|ambas)( of them| are)?\W*$
    | \b(answers?|options?|statements?|respuestas?|opcion(es)?|opcions|reponses?|risposte)\s+(\d|[b-e])\b
    | ^\W*(\d|[a-e])(\s*,\s*(\d|[a-e]))*\s*(and|y|e|et)\s+(\d|[a-e])\b\W*($|(are|son|sont|sono|both)\b)
    | (以上|上記|上述|いずれも|すべて).{0,8}(正|誤|错|是|ない|ある)
    | (вс[её]\s+(перечисл|вышеперечисл|ответ|верн|правильн)|ни\s+один\s+из)
    """,
    re.VERBOSE,
)


def refers_to_options(text: str) -> bool:
    """Return whether an option speaks of the other ones, as `All of the above` does."""
    return _REFERRING.search(plain_letters(text)) is not None
