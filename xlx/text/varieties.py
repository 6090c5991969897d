"""What the languages of a corpus are called: codes, tags of files, varieties of a language.

Languages go by their ISO 639-1 code, or 639-3 where there is none. Where a corpus has several
varieties of a language, the chosen one (or else the only one) takes the bare code and the others
keep script or region: "pt" and "pt_BR". In a folder with ``pt_PT`` and ``pt_BR`` none takes it.
Either name works when asking.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from xlx.core import checks
from xlx.core.languages import base_code, parse_tag
from xlx.text.files import TextError


def language_code(language: str, parse: Callable[[str], str] = base_code) -> str:
    """The code of a language. Raises TextError for what is no tag."""
    checks.tag(language, TextError)
    try:
        return parse(language)
    except ValueError as error:
        raise TextError(str(error)) from None


def resolve(asked: Iterable[str] | None, keys: dict[str, str], where: str) -> list[str]:
    """The keys asked for by key, file tag or any spelling of it. ``keys``: key to file tag."""
    if asked is None:
        return list(keys)
    spelled = {_canonical(tag): key for key, tag in keys.items()} | {key: key for key in keys}
    chosen, missing = [], []
    for request in [asked] if isinstance(asked, str) else asked:
        checks.tag(request, TextError)
        key = spelled.get(request) or spelled.get(_canonical(request))
        (chosen if key else missing).append(key or request)
    if missing or not chosen:
        raise TextError(
            f"{where} has no text in {', '.join(missing) or 'no language at all'}; "
            f"it has {', '.join(keys) or 'none'}."
        )
    return list(dict.fromkeys(chosen))


def _canonical(tag: str) -> str:
    """The tag in its canonical form; a key that is none (of a corpus made by hand) as it is."""
    try:
        return parse_tag(tag)
    except ValueError:
        return tag


def keys_of(
    tags: Iterable[str],
    chosen: dict[str, str],
    where: str,
    wanted: Iterable[str] | None = None,
) -> dict[str, str]:
    """Key of every file tag: the bare code for the chosen or only variety, else the whole tag.

    Of tags that mean one language (est and ekk, zho and cmn) only one can be used: that in
    ``wanted``, or none where the language is not wanted at all.
    """
    for request in wanted or ():
        checks.tag(request, TextError)
    named: dict[str, list[str]] = {}
    for tag in tags:
        named.setdefault(parse_tag(tag), []).append(tag)
    spelled: dict[str, str] = {}
    for canonical, same in named.items():
        asked = same if wanted is None else [x for x in wanted if _canonical(x) == canonical]
        exact = same if len(same) == 1 else [tag for tag in same if tag in asked]
        if asked and len(exact) != 1:
            raise TextError(
                f"{where}: {' and '.join(same)} are the same language; keep one of them, or ask "
                "for one by this name."
            )
        spelled.update((canonical, tag) for tag in exact)
    taken = {tag: code for code, tag in chosen.items()}
    codes = Counter(base_code(tag) for tag in spelled if spelled[tag] not in taken)
    keys = {}
    for canonical, tag in spelled.items():
        code = base_code(canonical)
        alone = codes[code] == 1 and code not in chosen
        keys[taken.get(tag) or (code if alone else canonical)] = tag
    return dict(sorted(keys.items()))
