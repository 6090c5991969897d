"""The languages of the compendium, how to read a language tag, and words of a text.

The 36 languages are those of Table 2 (Appendix C) of de Seyssel et al. (2025), in its order;
``tasks`` holds its ticks. The paper gives ISO 639-1 codes only, so the variety is our choice: of
WMT24++ the only one, or ar_SA (64 % of its words occur in the Standard Arabic of NTREX and
FLORES-200 devtest together, 53 % of those of ar_EG), fr_FR and pt_PT (the plain ``fra`` and ``por``
of NTREX, where Canada and Brazil are marked), zh_CN (simplified script, as in XNLI). Serbian is
Cyrillic there, and so elsewhere. English is the source text of all the others.

Most languages put spaces between words. Chinese, Japanese and Thai do not, and no dictionary is
asked here: a Chinese or Japanese character is a word, and so is a Thai character with the vowels
and tones above and below it. Numbers in words of these three compare with none of the others.
"""

import re
import string
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

from babel import Locale
from langcodes import Language as _Tag
from langcodes import LanguageTagError

from xlx.results import checks
from xlx.text.files import TextError

#: The columns of Table 2. "mono" is monolingual probing, "CL" cross-lingual transfer.
TABLE_2 = ("ABX", "POS mono", "POS CL", "NER mono", "NER CL", "NLI mono", "NLI CL")
#: CLDR reads these as Akan and Filipino; ISO 639 has both of each, and so do corpora. FLORES+ calls
#: the text in Kikongo of FLORES-200 Kituba.
_KEPT = {"tw": "tw", "twi": "tw", "tl": "tl", "tgl": "tl", "ktu": "kg"}
#: What FLORES+ marks with a Glottocode, as FLORES-200 has it, or by where it is spoken.
_GLOTTOCODES = {
    "nort3139": "apc_Arab",
    "sout3123": "ajp_Arab",
    "akua1239": "ak_Latn",
    "asan1239": "tw_Latn",
    "vale1252": "ca_Latn_ES",
    "aran1260": "oc_Latn_ES",
}
#: Tags of `parse_tag` under which FLORES+ and others have a text that FLORES-200 has, too.
RENAMED = {
    "fil": "tl",
    "fil_Latn": "tl_Latn",
    "fil_PH": "tl_Latn",
    "fa_AF": "fa_Arab_AF",
    "zh_CN": "zh_Hans",
    "zh_SG": "zh_Hans",
    "zh_TW": "zh_Hant",
    "zh_HK": "zh_Hant",
}
#: Languages that write an i without a dot as a letter of its own, whose capital is I.
_TWO_I = {"tr", "az"}
#: Codes of ISO 639 that name no language: undetermined, several, uncoded, no linguistic content.
_NO_LANGUAGE = {"und", "mul", "mis", "zxx"}


#: Names with the language at one end (Moses, OPUS, WMT, NTREX), and what may differ beside it.
_TAG = r"(?P<tag>[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*)"
_AT_AN_END = (
    rf"(?P<stem>.+?)[._-]{_TAG}",
    rf"(?P<stem>.+?)[._-]{_TAG}\.\w+",
    rf"{_TAG}[._](?P<stem>.+)",
)
_ROLE = re.compile(r"[._-](src|ref|source|reference|target|trg|tgt)([._-]?[A-Z0-9])?(?=[._-]|$)")


@dataclass(frozen=True)
class Language:
    """One language of Table 2 and its names in the parallel corpora.

    ``family`` and ``branch`` are the usual genealogical labels; ``script`` is an ISO 15924 code
    (Jpan is kanji with both kana, Kore hangul with hanja). ``wmt24pp``, ``ntrex``, ``flores`` are
    the file tags of the variety chosen, ``tasks`` a subset of `TABLE_2`.
    """

    code: str
    name: str
    family: str
    branch: str
    script: str
    wmt24pp: str
    ntrex: str
    flores: str
    tasks: frozenset[str]


def _row(text: str) -> Language:
    """Read one row of the table below; the last column adds to the tasks all 36 share."""
    *cells, more = (cell.strip() for cell in text.split("|"))
    ticks = {"P": ("POS CL",), "N": ("NER CL",), "I": ("NLI mono", "NLI CL")}
    shared = frozenset(("ABX", "POS mono", "NER mono"))
    return Language(*cells, shared.union(*(ticks[letter] for letter in more)))


# code | name | family | branch | script | WMT24++ | NTREX | FLORES-200 | also in
# (P: POS cross-lingual, N: NER cross-lingual, I: NLI monolingual and cross-lingual)
_TABLE = """\
ar | Arabic     | Afro-Asiatic  | Semitic     | Arab | ar_SA | arb      | arb_Arab | PNI
bg | Bulgarian  | Indo-European | Slavic      | Cyrl | bg_BG | bul      | bul_Cyrl | NI
ca | Catalan    | Indo-European | Romance     | Latn | ca_ES | cat      | cat_Latn |
cs | Czech      | Indo-European | Slavic      | Latn | cs_CZ | ces      | ces_Latn | PN
da | Danish     | Indo-European | Germanic    | Latn | da_DK | dan      | dan_Latn |
de | German     | Indo-European | Germanic    | Latn | de_DE | deu      | deu_Latn | PNI
el | Greek      | Indo-European | Hellenic    | Grek | el_GR | ell      | ell_Grek | NI
en | English    | Indo-European | Germanic    | Latn | en    | eng      | eng_Latn | PNI
es | Spanish    | Indo-European | Romance     | Latn | es_MX | spa      | spa_Latn | PNI
et | Estonian   | Uralic        | Finnic      | Latn | et_EE | est      | est_Latn |
fa | Persian    | Indo-European | Iranian     | Arab | fa_IR | fas      | pes_Arab |
fi | Finnish    | Uralic        | Finnic      | Latn | fi_FI | fin      | fin_Latn | PN
fr | French     | Indo-European | Romance     | Latn | fr_FR | fra      | fra_Latn | PNI
he | Hebrew     | Afro-Asiatic  | Semitic     | Hebr | he_IL | heb      | heb_Hebr |
hi | Hindi      | Indo-European | Indo-Aryan  | Deva | hi_IN | hin      | hin_Deva | PNI
hr | Croatian   | Indo-European | Slavic      | Latn | hr_HR | hrv      | hrv_Latn |
hu | Hungarian  | Uralic        | Ugric       | Latn | hu_HU | hun      | hun_Latn |
is | Icelandic  | Indo-European | Germanic    | Latn | is_IS | isl      | isl_Latn | PN
it | Italian    | Indo-European | Romance     | Latn | it_IT | ita      | ita_Latn | PN
ja | Japanese   | Japonic       | Japanesic   | Jpan | ja_JP | jpn      | jpn_Jpan | PN
ko | Korean     | Koreanic      | Korean      | Kore | ko_KR | kor      | kor_Hang | PN
lv | Latvian    | Indo-European | Baltic      | Latn | lv_LV | lav      | lvs_Latn |
nl | Dutch      | Indo-European | Germanic    | Latn | nl_NL | nld      | nld_Latn |
pl | Polish     | Indo-European | Slavic      | Latn | pl_PL | pol      | pol_Latn | PN
pt | Portuguese | Indo-European | Romance     | Latn | pt_PT | por      | por_Latn | PN
ro | Romanian   | Indo-European | Romance     | Latn | ro_RO | ron      | ron_Latn |
ru | Russian    | Indo-European | Slavic      | Cyrl | ru_RU | rus      | rus_Cyrl | PNI
sk | Slovak     | Indo-European | Slavic      | Latn | sk_SK | slk      | slk_Latn |
sl | Slovenian  | Indo-European | Slavic      | Latn | sl_SI | slv      | slv_Latn |
sr | Serbian    | Indo-European | Slavic      | Cyrl | sr_RS | srp-Cyrl | srp_Cyrl |
sv | Swedish    | Indo-European | Germanic    | Latn | sv_SE | swe      | swe_Latn | PN
tr | Turkish    | Turkic        | Oghuz       | Latn | tr_TR | tur      | tur_Latn | PNI
uk | Ukrainian  | Indo-European | Slavic      | Cyrl | uk_UA | ukr      | ukr_Cyrl |
ur | Urdu       | Indo-European | Indo-Aryan  | Arab | ur_PK | urd      | urd_Arab | NI
vi | Vietnamese | Austroasiatic | Vietic      | Latn | vi_VN | vie      | vie_Latn | NI
zh | Chinese    | Sino-Tibetan  | Sinitic     | Hans | zh_CN | zho-CN   | zho_Hans | PNI"""
#: The 36 languages by ISO 639-1 code, in the order of Table 2.
LANGUAGES = {language.code: language for language in map(_row, _TABLE.splitlines())}
#: The codes of the 36 languages of the ABX study.
ABX = tuple(LANGUAGES)


#: Families, creoles with the language that gave most of their words, by the first three letters of
#: the labels of FLORES-200: the top level of Glottolog 5 (Hammarström et al. 2024).
_FAMILIES = {
    "Afro-Asiatic": "acm acq aeb ajp amh apc arb ars ary arz gaz hau heb kab mlt som taq tir zgh",
    "Atlantic-Congo": "aka bem cjk ewe fon fuv ibo kam kbp kik kin kmb kon lin lua lug mos nso nya "
    "run sag sna sot ssw swh tsn tso tum twi umb vmw wol xho yor zul",
    "Austroasiatic": "khm sat vie",
    "Aymaran": "ayr",
    "Basque": "eus",
    "Constructed": "epo",
    "Austronesian": "ace ban bjn bug ceb fij ilo ind jav meo min mri pag plt smo sun tgl war zsm",
    "Dravidian": "kan mal tam tel",
    "Japonic": "jpn",
    "Kartvelian": "kat",
    "Koreanic": "kor",
    "Indo-European": "afr als asm ast awa bel ben bho bos bul cat ces ckb cym dan deu ell eng fao "
    "fra fur gla gle glg guj hat hin hne hrv hye isl ita kas kea kmr lij lim lit lmo ltg ltz lvs "
    "mag mai mar mkd nld nno nob npi oci ory pan pap pbt pes pol por prs ron rus san scn sin slk "
    "slv snd spa srd srp swe szl tgk tpi ukr urd vec ydd arg bre dgo doi gom lat lld",
    "Mande": "bam dyu nqo",
    "Mongolic": "khk",
    "Nilotic": "dik luo nus",
    "Quechuan": "quy",
    "Saharan": "knc",
    "Sino-Tibetan": "bod brx dzo kac lus mni mya wuu yue zho",
    "Tai-Kadai": "lao shn tha",
    "Tupian": "grn",
    "Turkic": "azb azj bak chv crh kaa kaz kir tat tuk tur tyv uig uzn uzs",
    "Uralic": "chm est fin hun mhr myv",
}
_FAMILY_OF = {code: family for family, codes in _FAMILIES.items() for code in codes.split()}


def family_of(label: str) -> str:
    """The family of a label of FLORES-200: "swh_Latn" gives "Atlantic-Congo"; "?" for another."""
    return _FAMILY_OF.get(label[:3], "?")


#: Families by the codes of macrolanguages, and what CLDR has no name of, or another script.
_MAIN = (
    "ara=arb aym=ayr aze=azj din=dik fas=pes fil=tgl kau=knc kur=kmr lav=lvs mlg=plt mon=khk "
    "msa=zsm nep=npi nor=nob ori=ory orm=gaz pus=pbt que=quy sqi=als swa=swh uzb=uzn yid=ydd"
)
_FAMILY_BY_CODE = _FAMILY_OF | {pair[:3]: _FAMILY_OF[pair[4:]] for pair in _MAIN.split()}
_NAMES = {
    "acm": "Mesopotamian Arabic",
    "acq": "Ta’izzi-Adeni Arabic",
    "ajp": "South Levantine Arabic",
    "apc": "North Levantine Arabic",
    "azb": "South Azerbaijani",
    "cjk": "Chokwe",
    "fa_AF": "Dari",
    "fuv": "Nigerian Fulfulde",
    "hne": "Chhattisgarhi",
    "kbp": "Kabiyè",
    "pbt": "Southern Pashto",
    "quy": "Ayacucho Quechua",
    "taq": "Tamasheq",
}
_SCRIPTS = dict.fromkeys(("acm", "acq", "ajp", "azb", "pbt"), "Arab") | {"crh": "Latn"}


@cache
def kind_of_language(code: str) -> tuple[str, str, str]:
    """Name, family and script of "de", "pt_BR", "ace_Latn", "swh"; what is not known is "?".

    Names are those of CLDR, and so are scripts where the code has none: the usual one.
    """
    try:
        tag = _Tag.get(parse_tag(code))
    except TextError:
        return code, "?", "?"
    base, cldr, known = tag.language, Locale("en").languages, LANGUAGES.get(tag.language)
    name = _NAMES.get(f"{base}_{tag.territory}") or _NAMES.get(base) or cldr.get(base, base)
    usual = known.script if known else _SCRIPTS.get(base) or tag.maximize().script
    return name, _FAMILY_BY_CODE.get(tag.to_alpha3(), "?"), tag.script or usual or "?"


@cache
def codes_by_name() -> dict[str, str]:
    """The codes of languages by their English names in CLDR, in small letters."""
    return {name.lower(): code for code, name in Locale("en").languages.items()}


def for_task(task: str, setup: str | None = None) -> tuple[str, ...]:
    """Codes of the languages ticked for a task in Table 2, in its order.

    ``task`` is "ABX", or one of "POS", "NER", "NLI" with ``setup`` "mono" or "CL" (or both in one
    string: "POS CL"). Raises ValueError for a column that Table 2 does not have.
    """
    column = task if setup is None else f"{task} {setup}"
    checks.one_of(column, TABLE_2, "column of Table 2")
    return tuple(code for code, language in LANGUAGES.items() if column in language.tasks)


@checks.typed(TextError)
def parse_tag(tag: str) -> str:
    """Canonical form of a language tag, its parts joined by underscores.

    The language is written in ISO 639-1 where a code exists; a script (ISO 15924) and a region (ISO
    3166-1 or UN M.49) are kept: "eng" and "EN" give "en", "eng_Latn" "en_Latn", "pt-br" "pt_BR".
    The 639-3 code of the main member of a macrolanguage counts as that language, as in CLDR:
    "arb_Arab" gives "ar_Arab", "pes" "fa", "cmn" "zh"; the others ("arz", "yue") stay.

    Raises TextError for a tag of more than these three, or that names none that exists.
    """
    return _parsed(tag)


@lru_cache(maxsize=2**12)
def _parsed(tag: str) -> str:
    tag = _GLOTTOCODES.get(tag[-8:], tag)
    problem = TextError(
        f"{tag[:80]!r} is no language tag; use an ISO 639-1 or 639-3 code, with a script or region "
        "if wanted, such as en, eng_Latn or pt_BR."
    )
    # BCP 47 has private-use, variant and extension parts too: no corpus names a file with them.
    parts = tag.replace("-", "_").split("_")
    if len(parts) > 3:
        raise problem
    try:
        parsed = _Tag.get(tag, normalize=True)
        main = _Tag.get(parsed.to_tag()).prefer_macrolanguage()
    except LanguageTagError:
        raise problem from None
    if code := _KEPT.get(parts[0].lower()):
        main = main.update_dict({"language": code})
    rebuilt = "-".join(filter(None, [main.language, parsed.script, parsed.territory]))
    language = parsed.language or "und"
    private = language.startswith("x-") or ("qaa" <= language <= "qtz" and len(language) == 3)
    if private or language in _NO_LANGUAGE or main.to_tag() != rebuilt or not parsed.is_valid():
        raise problem
    return rebuilt.replace("-", "_")


def is_tag(name: str) -> bool:
    """Whether a name is a language tag as `parse_tag` reads them."""
    try:
        return bool(parse_tag(name))
    except TextError:
        return False


def means_language(name: str) -> bool:
    """Whether a part of a name means a language: a code alone may be anything (url, src)."""
    known = name != "src" and kind_of_language(name)[1] != "?"
    return is_tag(name) and ("_" in parse_tag(name) or known)


def last_tag(name: str) -> str | None:
    """What may be a tag at the end of a name: "text_en" gives "en"."""
    match = re.fullmatch(_AT_AN_END[0], name)
    return match and match["tag"]


def tags_at_an_end(names: Sequence[str]) -> dict[str, str]:
    """By name, the tag at an end of most names, two or more, that are alike otherwise."""
    groups = {}
    for pattern, name in product(_AT_AN_END, names):
        match = re.fullmatch(pattern, name)
        if match and means_language(match["tag"]):
            alike = groups.setdefault((pattern, _ROLE.sub("", match["stem"])), {})
            alike[name] = match["tag"]
    apart = [x for x in groups.values() if len({*map(parse_tag, x.values())}) == len(x) > 1]
    return max(apart, key=len, default={})


def base_code(tag: str) -> str:
    """The language of a tag without script and region: "pt_BR" gives "pt", "eng_Latn" "en"."""
    return parse_tag(tag).split("_")[0]


def lowered(text: str, code: str) -> str:
    """The text in small letters, as the language has them; TextError as `parse_tag`.

    In Turkish and Azerbaijani, I is the capital of ı: "IŞIK" gives "ışık". İ gives a plain i in all
    languages, and not the two characters of ``str.lower``, so that a name is one string in all.
    """
    text = text.replace("I\u0307", "İ").replace("İ", "i")
    return (text.replace("I", "ı") if base_code(code) in _TWO_I else text).lower()


#: Languages written without spaces between words, as far as `words` knows them.
SPACELESS = ("ja", "th", "zh")
#: Han, kana and their marks of repetition; half width too.
_ALONE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_THAI = "\u0e01-\u0e7f"
#: What extends a Thai grapheme cluster (Unicode Standard Annex 29): vowels and tones, sara am.
_THAI_MARKS = "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e"
#: The last and the first character of two words that would be read as one without a space.
_MEETING = re.compile(rf"[^{_ALONE}{_THAI}]{{2}}|[{_THAI}][{_THAI_MARKS}]")


@cache
def spaceless(language: str) -> bool:
    """Whether the language (of "zh-en": of the context) is written without spaces."""
    return base_code(language.split("-")[0]) in SPACELESS


@cache
def without_punctuation() -> dict[int, None]:
    """For `str.translate`: takes out ASCII's punctuation and symbols and Unicode's category P."""
    every = range(sys.maxunicode + 1)
    of_unicode = (code for code in every if unicodedata.category(chr(code))[0] == "P")
    return dict.fromkeys([*map(ord, string.punctuation), *of_unicode])


@cache
def word_pattern(spaceless: bool) -> re.Pattern[str]:
    """What is a word in languages without spaces, or with them."""
    if not spaceless:
        return re.compile(r"\S+")
    marks = "".join(map(re.escape, sorted(map(chr, without_punctuation()))))
    alone = _ALONE + _THAI
    return re.compile(
        rf"[{_ALONE}]|[{_THAI}][{_THAI_MARKS}]*|[{marks}]"
        # Any other word: punctuation stays inside ("3.5"), not at its ends.
        rf"|[^\s{alone}{marks}](?:[^\s{alone}]*[^\s{alone}{marks}])?"
    )


def word_spans(text: str, language: str) -> list[tuple[str, int, int]]:
    """Every word of a text with the positions of its first character and after its last.

    In languages written with spaces, what stands between white space, punctuation included. In
    Chinese and Japanese each character, in Thai each grapheme cluster, is a word; so is every other
    run without spaces, such as "NFL" or "3.5", and every punctuation mark at its ends ("mixed
    segmentation", as MLQA's metric does in Chinese). No character but white space is in no word.
    """
    matches = word_pattern(spaceless(language)).finditer(text)
    return [(match[0], match.start(), match.end()) for match in matches]


def words(text: str, language: str) -> list[str]:
    """The words of `word_spans`."""
    return word_pattern(spaceless(language)).findall(text)


def joined_words(split: Sequence[str], language: str) -> str:
    """A text of these words, with spaces as the language has them, or so that none two are one."""
    if not spaceless(language):
        return " ".join(split)
    text = ""
    for word in split:
        # Without a space "2015" and "NFL" would be one word.
        text += f" {word}" if text and _MEETING.fullmatch(text[-1] + word[0]) else word
    return text
