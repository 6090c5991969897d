"""What the notebooks on X-Probe's tasks ask: parameters → tasks and subjects, results → tables.

Accuracies in tables are in [0, 1], unless a column says per cent or points.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from xlx.core import paths
from xlx.text.trees import Tree, Treebank
from xlx.xprobe import subjects
from xlx.xprobe.probing_rules import PROBING_TASKS, Rules
from xlx.xprobe.probing_tasks import TASK_PARTS
from xlx.xprobe.sentence_changes import clauses
from xlx.xprobe.sentence_probing import cell_means, probe
from xlx.xprobe.summaries import gains
from xlx.xprobe.task_sets import Planned

#: By language its tasks.
Tasks = Mapping[str, Sequence[Planned]]


def treebanks_of(
    languages: Sequence[str], trees_path: str | None = None
) -> dict[str, list[Treebank]]:
    """By language the treebanks of a folder of one's own, or the two that are shipped."""
    if trees_path:
        return {code: [Treebank(code, "own", paths.ROOT / trees_path / code)] for code in languages}
    return {code: [Treebank(code, source) for source in ("ud", "pud")] for code in languages}


def rules_of(changes: Mapping[str, Any]) -> Rules:
    """The rules of the tasks with some changes, whose lists (as of a parameter) are tuples."""
    return Rules(**{name: tuple(x) if isinstance(x, list) else x for name, x in changes.items()})


def sentences_of(treebanks: Mapping[str, Sequence[Treebank]]) -> pd.DataFrame:
    """By language: sentences of each treebank, and ``words`` of all."""
    rows = {
        code: {bank.source: len(bank.trees) for bank in banks}
        | {"words": sum(bank.trees.n_words for bank in banks)}
        for code, banks in treebanks.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def shown_tree(treebank: Treebank, longest: int = 15) -> Tree:
    """The first tree of two coordinated clauses that is no longer; of any, without such a one."""
    trees = treebank.trees.trees
    return next((tree for tree in trees if clauses(tree) and len(tree) <= longest), trees[0])


def tree_table(tree: Tree) -> pd.DataFrame:
    """The words of a tree in columns: their ``word``, ``tag``, ``relation`` and ``head``."""
    heads = ["-" if head == 0 else tree.words[head - 1] for head in tree.heads]
    rows = {"word": tree.words, "tag": tree.upos, "relation": tree.relations, "head": heads}
    return pd.DataFrame(rows).T


def tree_properties(tree: Tree) -> pd.Series:
    """What the rules of the tasks see in a tree."""
    root = tree.root
    said = {
        "sentence": " ".join(tree.tokens),
        "tokens": len(tree.tokens),
        "depth": tree.depth,
        "head verb": tree.words[root],
        "its tense": tree.features[root].get("Tense", "-"),
    }
    for i in tree.children(root, "nsubj"):
        said |= {"its subject": tree.words[i], "number": tree.features[i].get("Number", "-")}
    return pd.Series(said)


def task_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """By task: usable sentences a language, and what is taken (of the table of `planned`)."""
    usable = table.pivot_table("usable", "task", "language", sort=False, aggfunc="first")
    taken = table[table["train"] > 0].groupby("task", sort=False)[[*TASK_PARTS, "draws"]].first()
    return usable.join(taken)


def lacking_tasks(table: pd.DataFrame, least: int) -> pd.DataFrame:
    """The tasks that a language has not, with its ``usable`` sentences and how many are needed."""
    rows = table.loc[table["train"] == 0, ["task", "language", "usable"]]
    return rows.assign(needed=least).reset_index(drop=True)


def _named(tasks: Tasks, names: set[str]) -> dict[str, list[Planned]]:
    return {code: [task for task in own if task.name in names] for code, own in tasks.items()}


def in_every_language(tasks: Tasks) -> dict[str, list[Planned]]:
    """The tasks that English has, too: the others have nothing to compare with."""
    return _named(tasks, {task.name for task in tasks["en"]})


def in_all_languages(tasks: Tasks) -> dict[str, list[Planned]]:
    """The tasks that every language has."""
    return _named(tasks, set.intersection(*({task.name for task in x} for x in tasks.values())))


def example_items(tasks: Tasks, languages: Sequence[str]) -> pd.DataFrame:
    """A short test sentence of the first and of the last class: by ``task``, ``language``."""
    rows = []
    for name in PROBING_TASKS:
        for code in languages:
            for task in [task for task in tasks[code] if task.name == name][:1]:
                rows += [(name, code, *item) for item in task.examples.items()]
    return pd.DataFrame(rows, columns=["task", "language", "class", "sentence"])


def parts_apart(tasks: Tasks) -> pd.Series:
    """How many tasks there are, what their parts share, and how uneven their classes are.

    ``points off``: by how much the commonest class is off an even share, at most, in points.
    """
    drawn = [task for own in tasks.values() for task in own]
    shared = pd.DataFrame([task.overlaps for task in drawn]).sum()
    worst = max(abs(task.majority - 1 / task.n_classes) for task in drawn)
    counts = {"tasks": len(drawn)} | {f"shared {kind}": int(n) for kind, n in shared.items()}
    return pd.Series(counts | {"points off": round(100 * worst, 1)}, dtype=object)


def without_encoders(tasks: Tasks, dim: int, seed: int) -> pd.DataFrame:
    """`sentence_probing.cell_means` of the number of tokens alone and of a bag of words."""
    asked = [subjects.of_length(code) for code in tasks]
    asked += [subjects.of_random_words(code, dim=dim, seed=seed) for code in tasks]
    return cell_means(probe(asked, tasks, seeds=[seed], order=seed))


def beside_chance(cells: pd.DataFrame) -> pd.DataFrame:
    """By task: mean accuracy of each encoder over languages, and of the commonest class."""
    means = cells.pivot_table(["accuracy", "majority"], "task", "encoder", sort=False)
    return means["accuracy"].join(means["majority"].max(axis=1).rename("commonest class"))


def length_by_training(tasks: Tasks, cells: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Accuracy on SentLen of the number of tokens alone, by language and how the probe is trained.

    ``cells`` has those as they are trained above (`without_encoders`).
    """
    only = _named(tasks, {"SentLen"})
    lengths = [subjects.of_length(code) for code in tasks]
    options = {"seeds": [seed], "order": seed, "control": False, "weight_decay": 0.0}
    longer = options | {"anneal": 1.0, "patience": 50}
    columns = {
        "as above": cells[(cells["encoder"] == "length alone") & (cells["task"] == "SentLen")],
        "without weight decay": cell_means(probe(lengths, only, **options)),
        "and trained on": cell_means(probe(lengths, only, **longer)),
    }
    return pd.DataFrame({x: own.set_index("language")["accuracy"] for x, own in columns.items()})


def selectivity_by_encoder(cells: pd.DataFrame) -> pd.DataFrame:
    """Accuracy less that of the control task: by encoder and task, mean over languages."""
    selective = cells.assign(selectivity=cells["accuracy"] - cells["control_accuracy"])
    return selective.pivot_table("selectivity", "encoder", "task", sort=False)


def gains_by_condition(
    conditions: Mapping[str, pd.DataFrame], main: pd.DataFrame, alone: Mapping[str, str]
) -> pd.DataFrame:
    """Gains over English in points, by task: the mean over languages of each condition.

    Parameters
    ----------
    conditions : name → cells; of the first also Student's interval over languages (``low``,
        ``high``) and how many languages gain (``better``).
    main : cells of mapped encoders.
    alone : column → a setting of ``main`` whose gain stands by itself.
    """
    of = {name: gains(own).set_index("task") for name, own in conditions.items()}
    single = {
        name: gains(main[main["language"].isin(["en", setting])]).set_index("task")["gain"]
        for name, setting in alone.items()
    }
    first, *others = of
    columns = {first: of[first]["gain"], "low": of[first]["low"], "high": of[first]["high"]}
    rest = {name: of[name]["gain"] for name in others}
    names = list(single)
    rest = {x: single[x] for x in names[:1]} | rest | {x: single[x] for x in names[1:]}
    table = (100 * pd.DataFrame(columns | rest)).round(0)
    table.insert(3, "better", of[first]["better"])
    return table


def percent(table: pd.DataFrame | pd.Series, digits: int = 0) -> Any:
    """Shares as per cent."""
    return (100 * table).round(digits)


def two_corpora(english: Sequence[Treebank]) -> dict[str, list[Treebank]]:
    """The first English treebank and a second one, by name: the last, or Parallel UD."""
    other = english[-1] if len(english) > 1 else Treebank("en", "pud")
    return {bank.source.upper(): [bank] for bank in (english[0], other)}
