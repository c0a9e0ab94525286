"""Words with which replies state an answer, deny it or take it back, for the lenient reader.

Of the languages that questions may be in, and of German, Portuguese, Arabic and Korean, in which models fall. Patterns
match plain text without marks of Markdown, whatever its case.
"""

import re
from itertools import chain

_ANY = re.IGNORECASE

_NUMBERS: dict[int, str] = {
    1: "one uno una un une unha um uma eins один одна 一",
    2: "two dos deux due dous dúas dois duas zwei два две 二",
    3: "three tres trois tre três drei три 三",
    4: "four cuatro quatre quattro catro quatro vier четыре 四",
    5: "five cinco cinq cinque fünf пять 五",
}
_ROMAN: dict[int, str] = {2: "ii", 3: "iii", 4: "iv"}
_ORDINALS: dict[int, str] = {
    1: "first primera primero primeira première premier prima primo erste первый первая",
    2: "second segunda segundo deuxième seconde seconda secondo zweite второй вторая",
    3: "third tercera tercero terceira troisième terza terzo dritte третий третья",
    4: "fourth cuarta cuarto quarta quatrième quarto vierte четвёртый четвертый четвёртая четвертая",
    5: "fifth quinta quinto cinquième fünfte пятый пятая",
}
NUMBER_WORDS = {
    word: number
    for number, words in chain(_NUMBERS.items(), _ORDINALS.items(), _ROMAN.items())
    for word in words.split()
}
"""A number or its ordinal in words -> the number, for as many options as exams have."""

_ADJECTIVE = (
    r"(?:correct[aeo]?|right|best|final|chosen|selected|appropriate|true|mejor|verdadera"
    r"|adecuada|mellor|bonne|juste|exacte|corretta|esatta|giusta|migliore|correta|richtige|beste"
    r"|правильный|верный|правильн\w*|верн\w*)"
)
_CHOICE = r"(?:option|choice|alternative|one|opci[oó]n|alternativa|opzione|op[cç][aã]o|resposta|wahl|вариант\w*)"
NOUN = re.compile(
    r"(?<![\w-])(?:"
    r"(?:final[_ ]|correct[_ ]|selected[_ ]|chosen[_ ]|best[_ ])?(?:answer|option|choice)[_ ](?:number|letter|text)"
    r"|(?:final|correct|selected|chosen|best)_(?:answer|option|choice)"
    r"|answers(?=[\"']?\s*:)|answer|response|solution|respuesta|soluci[oó]n|resposta|solución|r[ée]ponse|risposta|soluzione"
    r"|antwort|lösung|ответ"
    rf"|{_ADJECTIVE}\s+{_CHOICE}|{_CHOICE}\s+{_ADJECTIVE}(?:\s+{_ADJECTIVE})?"
    r"|(?:la|lo)\s+(?:correcta|verdadera)|the\s+correct|верн\w+|правильн\w+"
    r")(?!\w)"
    r"|(?<=[\"'])(?:option|choice|opci[oó]n|selection|selected|number)(?=[\"'])"
    r"|正确答案|正確答案|答案|正确选项|答え|答(?=[:は])|解答|回答|正解|正答|الإجابة|الجواب|정답|답(?=[:은])",
    _ANY,
)
"""What an answer is called."""
NOUN_STEMS = (
    *("answer", "respon", "resp", "rispost", "antwort", "solu", "lösung", "option", "opci", "opzion", "opç", "opca"),
    *("choice", "alternativ", "correct", "one", "select", "la verd", "la fals", "ответ", "вариант", "верн", "правильн"),
    *("rép", "rep", "wahl", "答", "解", "选项", "إجابة", "جواب", "답"),
)
"""One of these is in every text that `NOUN` finds something in, in lower case."""
LABEL_LINE = re.compile(
    r"(?:\A|\n)\W*(?:(?:my\s+)?(?:option|choice)|alternativa|opci[oó]n|opzione|вариант|选项|ans\.?|a|r|sol\.?)\s*:\s*"
    r"|(?:\A|\n)\W*ans\.\s*",
    _ANY,
)
"""A line that gives an option behind a colon."""
_LEAD = (
    r"(?:so|thus|therefore|hence|then|i\s+(?:think|believe|guess)|i'd\s+say|i\s+would\s+say|por\s+(?:lo\s+)?tanto|donc"
    r"|quindi|also|portanto|поэтому)(?!\w)[,:\s]*(?:that\s+)?"
)
_IT_IS = r"(?:it(?:'s|\s+is)|c'est|es\s+la|é\s+a|è\s+la|es\s+ist)\s+"
CONCLUSION = re.compile(rf"(?:\A|[.!?\n]\s*)(?:{_LEAD}(?:{_IT_IS})?|{_IT_IS})", _ANY)
"""The beginning of a sentence that concludes with an option and nothing else."""

_ADVERBS = (
    r"(?:(?:clearly|definitely|therefore|thus|hence|probably|likely|most\s+likely|indeed|simply|actually|then"
    r"|claramente|probablemente|por\s+(?:lo\s+)?tanto|entonces|donc|probablement|quindi|probabilmente|also|wahrscheinlich"
    r"|portanto|logo|скорее\s+всего|вероятно)[\s,]+)*"
)
LINK = re.compile(
    r"[\"'\])]*(?P<between>[^.:;!?\n=0-9\u3002(]{0,60}?)\s*"
    r"(?:\b(?:is|be|was|es|ser[ií]a|est|serait|sarebbe|ist|wäre|é|è|e')(?!\w)\s*[:\"]?|:|=+>?|-+>|\u2192|\u21d2"
    r"|[\u2013\u2014]|\s-\s|>|是|为|為|は|은|는|هي|هو)"
    rf"[\s:]*{_ADVERBS}",
    _ANY,
)
"""What joins the word for the answer and the option."""
UNJOINED = re.compile(
    r"\b(?:not|n't|no|never|nor|nicht|kein\w*|non|pas|nunca|não|ni|не|нет|form\w*|like|could|might|may|either|between"
    r"|cannot|incorrect\w*|wrong|fals\w*|err[óo]ne\w*|errad\w*|errat\w*|sbagliat\w*|невер\w*|неправ\w*|depends|choices|options|opciones|if|whether|si|one\s+of|不|没)\b|n't|不|没|非",
    _ANY,
)
"""Words between the two that make it no statement."""
VERB = re.compile(
    r"(?<!\w)(?:(?:i|we|i'd|i'll|i\s+would|i\s+will|i\s+(?:therefore|thus|then)|we\s+(?:would|will))\s+"
    r"(?:choose|chose|pick|select|go\s+with|opt\s+for|answer)"
    r"|elijo|elegir[ií]a|escojo|selecciono|marco|marcar[ií]a|je\s+choisis|scelgo|sceglierei|ich\s+wähle|escolho"
    r"|elixo|escollo|(?:я\s+)?выбираю)(?!\w)[\s:]*|(?:故选|因此选|所以选|应选|选择|我选|选)[\s:]*",
    _ANY,
)
"""What an option that is chosen stands behind."""
VERB_STEMS = (
    *("choose", "chose", "pick", "select", "go with", "opt for", "answer", "elij", "elegir", "escoj", "selecciono"),
    *("marc", "choisis", "scel", "wähle", "escolho", "elixo", "escollo", "выбираю", "选"),
)
"""One of these is in every text that `VERB` finds something in, in lower case; there one space is any."""
WRONG = re.compile(
    r"(?:incorrect|wrong|false|falsche?|fausse|mauvaise|sbagliata|неправильный|неверный|错误)\s*\Z", _ANY
)
"""What makes of a word for the answer one for another option."""
BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{\s*", _ANY)

OPENER = re.compile(
    r"(?:(?:the|la|el|lo|le|les|l'|il|die|der|das|(?-i:a|o|as)(?=\s)|number|option|choice|answer|alternative|letter|case|item"
    r"|n[uú]mero|opci[oó]n|alternativa|letra|respuesta|resposta|r[ée]ponse|risposta"
    r"|opzione|op[cç][aã]o|lettera|lettre|buchstabe|antwort|nummer|num[ée]ro|numero|вариант|ответ|под\s+номером"
    r"|номер|correct|right)\b\s*:?\s*|l'|(?:nº|n\.º|n°|no\.|№)\s*(?=\d)|选项|第|選択肢|番号|オプション|[#(\[{<\"'\u2018\u2019\u201c\u201d\u00ab\u300c\u3010]\s*)*",
    _ANY,
)
"""Articles, labels and brackets before the sign of an option; small `a` and `o` are articles too."""
LABELLED = re.compile(r"option|choice|answer|opci|alternativ|opzione|op[cç]|вариант|选项|選択肢|[(\[{#]", _ANY)

AFTER_SIGN = re.compile(
    r"(?![.,:/]\d)(?:st|nd|rd|th|\.?[ªº]|e\b|ème|番目?|号|個|个)?"
    r"\s*(?:\Z|\n|[.)\]}<>\"'\u2018\u2019\u201c\u201d\u00bb\u300d\u3011,;:!?\u3002\u3001\u2014\u2013]|\s-\s|\(|=|項|です|だ|で|が|は|と|项|是"
    r"|(?:because|since|as|for|which|that|due|given|option|choice|answer|is|opci[oó]n|alternativa|porque|ya|pues|dado"
    r"|puesto|es|parce|car|puisque|option|est|perché|poiché|opzione|in\s+quanto|weil|denn|da|ist|pois|op[cç][aã]o"
    r"|потому|так\s+как|поскольку|вариант|ответ|and\s+not|not|y\s+no)\b|因为|因為|なぜなら|이다|입니다|번)",
    _ANY,
)
"""What may follow the sign of an option; behind anything else it is a quantity, or an article."""
REASON = re.compile(
    r"[\s,:.)\]-]*(?:because|since|as|for|due|porque|ya\s+que|pues|dado|puesto|parce|car|puisque|perché|poiché|weil|denn"
    r"|pois|потому|так\s+как|поскольку|因为|因為)(?!\w)|[\s,:.)\]-]*(?:因为|因為)",
    _ANY,
)
ALTERNATIVE = re.compile(
    r"[\s)\]}\"'.]*(?:\b(?:or|and|o|u|y|e|ou|et|oder|und|или|и|to)\b|[,/&\u3001\u2013-]|或|和|と|또는)\s*"
    r"(?:(?:or|and|maybe|perhaps|possibly|option|choice|opci[oó]n|the|la)\s+)*[(\[\"']*(?=[1-9]\d?(?!\w|[.,]\d)|[A-J](?![\w']))",
)
"""A second option beside the first."""

DOUBT = re.compile(
    r"(?<!\w)(?:if|whether|suppose|assum\w+|unless|(?:might|may|could|would|to|people|students|many|some)\s+(?:think|say|"
    r"believe|argue|choose|answer)|tempt\w*|initially|at\s+first|first\s+thought|mistake\w*|si|supongamos|quiz[aá]s?"
    r"|podr[ií]a\w*|peut-être|wenn|falls|vielleicht|forse|se|talvez|если|如果|もし|假设|假如)(?!\w)|如果|もし|假设|假如",
    _ANY,
)
"""Words before a statement, in its sentence, that make it none."""
TAKEN_BACK = re.compile(
    r"(?<!\w)(?:wait|actually|correction|sorry|on\s+second\s+thought|scratch\s+that|let\s+me\s+(?:re\w+|correct)|mistaken?"
    r"|(?:that|this|it)(?:'s|\s+is|\s+was)\s+(?:not\s+(?:right|correct|true)|wrong|incorrect|false)|espera|perd[oó]n"
    r"|en\s+realidad|me\s+equivoqu[eé]|(?:eso|esto)\s+(?:es\s+)?(?:no\s+es|incorrecto|falso)|attendez|en\s+fait"
    r"|aspetta|in\s+realtà|moment|warte|eigentlich|espere|na\s+verdade|подожди\w*|на\s+самом\s+деле)(?!\w)|等等|不对|待って",
    _ANY,
)
"""Words behind the last statement that take it back."""
