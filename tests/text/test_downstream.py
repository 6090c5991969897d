"""Downstream scores: the layouts of lm-evaluation-harness, a CSV, and what is malformed in them."""

import copy
import json
import random
from pathlib import Path

import pandas as pd
import pytest

from tests.text import made
from xlx.results import paths
from xlx.text import downstream, parallel
from xlx.text.files import TextError

#: As version 0.4 writes it, without what is not read.
NEW = {
    "results": {
        "belebele": {"acc,none": 0.5, "alias": "belebele"},
        "belebele_eng_Latn": {"alias": " - e", "acc,none": 0.9, "acc_stderr,none": 0.01},
        "belebele_arb_Arab": {"acc,none": 0.7, "acc_stderr,none": "N/A"},
        "belebele_arb_Latn": {"acc,none": 0.4, "acc_stderr,none": 0.02},
        "m_mmlu_is": {"acc,none": 0.3, "acc_stderr,none": 0.004},
        "m_mmlu_pt": {"acc,none": 0.0, "acc_stderr,none": 0.0},
        "arc_de": {"acc,none": 0.1, "acc_norm,none": 0.45, "acc_norm_stderr,none": 0.03},
        "arc_challenge": {"acc,none": 0.55, "acc_norm,none": 0.6},  # m-ARC in English
        "hellaswag": {"acc,none": 0.6},
    },
    "n-shot": {"arc_de": 5},
    "n-samples": {
        "belebele_eng_Latn": {"original": 900, "effective": 900},
        "m_mmlu_is": {"original": 13258, "effective": 500},
    },
    "config": {"model": "hf", "model_args": "pretrained=org/some-7b,dtype=float16"},
    "configs": {"arc_de": {"task": "arc_de", "num_fewshot": 5}},
    "model_name": "org/some-7b",
}
#: As version 0.3 wrote it.
OLD = {
    "results": {"arc_de": {"acc": 0.2, "acc_stderr": 0.1, "acc_norm": 0.3, "acc_norm_stderr": 0.2}},
    "versions": {"arc_de": 0},
    "config": {"model": "hf-causal", "model_args": "dtype=float16,pretrained=org/old-7b"},
}


def put(file: Path, content: object) -> Path:
    return made.put(file.parent, file.name, json.dumps(content))


def test_results_of_version_04(tmp_path: Path) -> None:
    table = downstream.read_tasks(put(tmp_path / "results_2024.json", NEW))
    assert tuple(table) == (*downstream.SCORE_COLUMNS, "file")
    assert set(table["model"]) == {"org/some-7b"}
    table = table.set_index(["task", "language"])
    assert table["score"].to_dict() == {
        **{("Belebele", "en"): 0.9, ("Belebele", "ar"): 0.7, ("Belebele", "ar_Latn"): 0.4},
        **{("m-MMLU", "is"): 0.3, ("m-MMLU", "pt"): 0.0, ("m-ARC", "de"): 0.45},
        ("m-ARC", "en"): 0.6,
    }
    assert table["n"].dropna().to_dict() == {("Belebele", "en"): 900, ("m-MMLU", "is"): 500}
    assert table.loc[[("Belebele", "en"), ("m-ARC", "de")], "stderr"].tolist() == [0.01, 0.03]
    assert pd.isna(table.loc[("Belebele", "ar"), "stderr"])


def test_a_folder_with_one_file_a_model(tmp_path: Path) -> None:
    put(tmp_path / "org__some-7b" / "results_1.json", NEW)
    put(tmp_path / "org__old-7b" / "results_1.json", OLD)
    table = downstream.read_tasks(tmp_path)
    assert table["model"].value_counts().to_dict() == {"org/some-7b": 7, "org/old-7b": 1}
    put(tmp_path / "org__some-7b" / "results_2.json", NEW)
    with pytest.raises(TextError, match=r"results_2.*Belebele org/some-7b en is also in"):
        downstream.read_tasks(tmp_path)
    one, two = sorted(tmp_path.rglob("results_1.json"))
    assert len(downstream.read_tasks([one, two, one])) == 8


def test_a_model_of_a_path_is_found_by_its_name(tmp_path: Path) -> None:
    put(tmp_path / "a.json", NEW | {"model_name": "/data/models/some-7b"})
    put(tmp_path / "b.json", OLD)
    table = downstream.read_tasks(tmp_path)
    for asked in ("some-7b", "org/some-7b", "/elsewhere/some-7b", "/data/models/some-7b"):
        found = downstream.of_models(table, [asked])
        assert found["model"].tolist() == [asked] * 7
        assert found["score"].tolist() == table["score"].tolist()[:7]
    with pytest.raises(TextError, match=r"None of the models .* may be other-7b; there are "):
        downstream.of_models(table, ["some-7b", "other-7b"])
    with pytest.raises(TextError, match=r"m-ARC: org/old-7b has no score in en"):
        downstream.of_models(table, ["old-7b"], "en")
    put(tmp_path / "c.json", NEW | {"model_name": "/data/older/some-7b"})
    table = downstream.read_tasks(tmp_path)
    assert len(downstream.of_models(table, ["/data/older/some-7b"])) == 7
    with pytest.raises(TextError, match=r"/data/models/some-7b and /data/older/some-7b of"):
        downstream.of_models(table, ["some-7b"])


def changed(*keys: str, to: object = None) -> dict:
    """NEW without a field, or with another value in it."""
    content = copy.deepcopy(NEW)
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    if to is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = to
    return content


def harness(tasks: dict[str, float], **more: object) -> dict:
    """A results file of some tasks; ``more`` with _ for - in names."""
    said = {"results": {x: {"acc,none": y} for x, y in tasks.items()}, "model_name": "m"}
    return said | {"config": {}, "date": 1.0} | {x.replace("n_", "n-"): y for x, y in more.items()}


XNLI = {"xnli_de": 0.5, "xnli_fr": 0.6, "xnli": 0.55}
READ = {("xnli", "de"): 0.5, ("xnli", "fr"): 0.6}
ARGS = "pretrained=m,dtype=float16"


@pytest.mark.parametrize(
    ("files", "expected"),
    [  # as 0.3 and 0.4 leave them, with what else lies there
        ({"m.json": OLD, "m_write_out_info.json": [{"doc_id": 0}]}, {("m-ARC", "de"): 0.3}),
        (
            {
                "m/r.json": harness(XNLI),
                "m/config.json": {"model_type": "bert"},
                "o.json": harness({"hellaswag": 0.5}),
            },
            READ,
        ),
        ({"r.json": harness(XNLI | {"hellaswag": 0.3, "mmlu_pro": 0.2, "gsm8k_cot": 0.1})}, READ),
        ({"de.json": harness({"xnli_de": 0.5}), "fr.json": harness({"xnli_fr": 0.6})}, READ),
        ({"a.json": harness(XNLI, date=2.0), "b.json": harness({"xnli_de": 0.1})}, READ),
        (
            {"r.json": harness({"mgsm_en_cot_de": 0.1, "mgsm_en_cot_jp": 0.2})},
            {("mgsm_en_cot", "de"): 0.1, ("mgsm_en_cot", "ja"): 0.2},
        ),
        (
            {"r.json": harness({"afrimmlu_amh_p1": 0.1, "afrimmlu_swa_p1": 0.2})},
            {("afrimmlu_p1", "am"): 0.1, ("afrimmlu_p1", "sw"): 0.2},
        ),
        (
            {"r.json": harness({"include_base_44_german": 0.1, "include_base_44_greek": 0.2})},
            {("include_base_44", "de"): 0.1, ("include_base_44", "el"): 0.2},
        ),
        (
            {
                "r.json": harness(
                    {},
                    results={
                        f"mgsm_{x}": {"exact_match,a": 0.1, "exact_match,b": 0.2}
                        for x in ("de", "th")
                    },
                )
            },
            {(f"mgsm, {x}", y): z for x, z in (("a", 0.1), ("b", 0.2)) for y in ("de", "th")},
        ),
        (
            {"r.json": harness({}, results={"belebele_cmn_Hans": {"acc,get-answer": 0.4}})},
            {("Belebele", "zh"): 0.4},
        ),
        (
            {
                "a.json": harness(XNLI, config={"model_args": ARGS, "device": "cuda"}),
                "b.json": harness(
                    XNLI, config={"model_args": f"{ARGS},parallelize=True"}, date=0.5
                ),
            },
            READ,
        ),
        ({"a.json": harness(XNLI, config={"model_args": {"model": "m"}}, model_name=None)}, READ),
        # two settings: shots first
        (
            {
                "a.json": harness({"xnli_de": 0.5}, n_shot={"xnli_de": 5}),
                "b.json": harness({"xnli_fr": 0.5}, n_shot={"xnli_fr": 0}),
            },
            "5 shots in .* and 0 shots",
        ),
        (
            {
                "a.json": harness(XNLI, configs={"xnli_de": {"num_fewshot": 0}}),
                "b.json": harness(XNLI, config={"num_fewshot": 5}),
            },
            "0 shots in .* and 5 shots",
        ),
        *(
            (
                {"a.json": harness(XNLI, config={"x": 1}), "b.json": harness(XNLI, date=2.0, **b)},
                says,
            )
            for b, says in (
                ({"config": {"limit": 10}}, "limit none in .* and limit 10"),
                ({"config": {"model_args": "peft=x"}}, r"none in .* model_args \['peft=x'\]"),
                ({"config": {"x": 1}, "chat_template_sha": "ab"}, "chat_template none .* ab in"),
            )
        ),
        *(
            ({"a.json": harness(XNLI, **a), "b.json": harness(XNLI, date=2.0, **b)}, says)
            for a, b, says in (
                (
                    {"versions": {"xnli_de": 1}},
                    {"versions": {"xnli_de": 2}},
                    "version 1 in .* 2 in",
                ),
                (
                    {"configs": {"xnli_de": {"doc_to_text": "a"}}},
                    {"configs": {"xnli_de": {"doc_to_text": "b"}}},
                    "prompt .* and prompt",
                ),
                ({"config": {"model_sha": "a"}}, {"config": {"model_sha": "b"}}, "model a in"),
            )
        ),
    ],
)
def test_folders_of_the_harness(tmp_path: Path, files: dict, expected: object) -> None:
    for name, content in files.items():
        put(tmp_path / name, content)
    if isinstance(expected, str):
        with pytest.raises(TextError, match=rf"xnli m.*: .*{expected}.*; which\?"):
            downstream.read_tasks(tmp_path)
    else:
        table = downstream.read_tasks(tmp_path).set_index(["task", "language"])
        assert table["score"].to_dict() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed("results"), "has no field 'results'"),
        (changed("results", "m_mmlu_is", to={"alias": "x"}), "m_mmlu_is has no field 'acc,none'"),
        (changed("results", to={"hellaswag": {}}), "none of Belebele.*but hellaswag"),
        (
            {"results": NEW["results"], "config": {"model_args": "dtype=float16"}},
            "has no field 'model_name', and no 'pretrained='",
        ),
    ],
)
def test_what_is_missing_is_named_with_file_and_field(
    tmp_path: Path, content: object, message: str
) -> None:
    file = put(tmp_path / "results.json", content)
    with pytest.raises(TextError, match=message) as caught:
        downstream.read_tasks(file)
    assert str(caught.value).startswith(str(file))


CSV = "task,model,language,score,stderr,n\nQA,m,deu_Latn,0.5,0.1,100\nQA,m,fr,,,\nQA,m,is,0,,\n"


def test_a_csv(tmp_path: Path) -> None:
    table = downstream.read_tasks(made.put(tmp_path, "a.csv", CSV))
    assert tuple(table) == (*downstream.SCORE_COLUMNS, "file")
    assert table["language"].tolist() == ["de", "is"]  # fr has no score, which is not zero
    assert table["score"].tolist() == [0.5, 0.0]
    assert table["n"].tolist() == [100, pd.NA]
    bare = made.put(tmp_path, "b.csv", "language,score,model,task\nde,0.5,m,QA\n")
    assert downstream.read_tasks(bare).loc[0, ["score", "task"]].tolist() == [0.5, "QA"]


def test_codes_are_those_of_the_shipped_text() -> None:
    """Labels of FLORES-200 get the code that `corpora` gives them; no two of Belebele the same."""
    for code, label in parallel.tags("flores200-100").items():
        assert downstream.language_of(label) == code
        assert downstream.language_of(code) == code
    pairs = "cmn_Hans=zh cmn_Hant=zh_Hant zh-TW=zh_Hant fil_Latn=tl ekk=et prs=fa_Arab_AF ktu=kg"
    pairs += " apc_Arab_nort3139=apc apc_Arab_sout3123=ajp twi_Latn_akua1239=ak gug_Latn=gn deu=de"
    pairs += " cat_Latn_vale1252=ca_Latn_ES cat_Latn=ca mni_Mtei=mni_Mtei mni_Beng=mni iw=he npi=ne"
    assert {x: downstream.language_of(x.split("=")[0]) for x in pairs.split()} == {
        x: x.split("=")[1] for x in pairs.split()
    }
    asked = ["cmn_Hans", "fil", "prs", "twi_Latn_asan1239", "zh_TW"]
    found = parallel.load("flores200-100", asked).languages
    assert found == ("zh", "tl", "fa_Arab_AF", "tw", "zh_Hant")
    labels = pd.read_csv(paths.DATA / "published" / "mexa" / "belebele_labels.csv")["label"]
    codes = [downstream.language_of(label) for label in labels]
    assert len(set(codes)) == len(labels) == 122
    assert len(set(codes) & set(parallel.tags("flores200-100"))) == 117


@pytest.mark.parametrize("seed", range(5))
def test_two_numbers_of_questions_are_a_question(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    numbers = draw.sample(range(2, 900), 2)
    for date, n in enumerate(numbers):
        samples = {x: {"original": 900, "effective": n} for x in XNLI}
        put(tmp_path / f"{date}.json", harness(XNLI, date=date, n_samples=samples))
    words = " and ".join(f"{n} questions in .*{i}.json.*" for i, n in enumerate(numbers))
    with pytest.raises(TextError, match=rf"xnli m de: {words}; which\?"):
        downstream.read_tasks(tmp_path)
    same = {x: {"original": 900, "effective": numbers[0]} for x in XNLI}
    put(tmp_path / "1.json", harness(XNLI, date=1, n_samples=same))
    assert set(downstream.read_tasks(tmp_path)["n"]) == {numbers[0]}


def test_files_of_tasks_are_read_together(tmp_path: Path) -> None:
    for code in ("de", "fr"):
        put(tmp_path / f"{code}.json", harness({f"xnli_{code}": 0.5}))
    for name, content in (("own.csv", CSV), ("foreign.csv", "a,b\n1,2\n")):
        made.put(tmp_path, name, content)
    table = downstream.read_tasks([tmp_path])
    named = [tmp_path / name for name in ("own.csv", "de.json", "fr.json")]
    pd.testing.assert_frame_equal(table, downstream.read_tasks(named))
    assert table.groupby("task")["file"].nunique().to_dict() == {"QA": 1, "xnli": 2}
    with pytest.raises(TextError, match=r"foreign.csv: the header lacks"):
        downstream.read_tasks([tmp_path / "foreign.csv"])
