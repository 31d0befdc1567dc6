"""Logs of evaluations of language models as answers with a confidence.

Four kinds are read: samples of lm-evaluation-harness, logs of Inspect (``.eval``, ``.json``), run folders of HELM and
outputs of OpenAI's Batch API. What a log does not hold is missing (NaN), never guessed, and nothing is executed.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Confidence
from calibrant.data.validation import Mask, fail
from calibrant.numerics.arrays import softmax

Kind = Literal["lm-evaluation-harness", "Inspect", "HELM", "OpenAI batch"]

#: The number of zstandard among the methods of zip files. Reference: PKWARE (2022), .ZIP File Format Specification 4.5.
ZSTANDARD = 93


class Answer(NamedTuple):
    """One answer of a model to one question."""

    question: str
    model: str
    task: str
    epoch: int
    correct: float = math.nan
    confidence: float = math.nan
    judge: float = math.nan


@dataclass(frozen=True, eq=False)
class EvaluationLog:
    """Answers of models to questions; from `read_eval`.

    Attributes
    ----------
    columns : dict of arrays
        ``question, model, task, epoch, correct, confidence, judge``, one entry per answer; NaN where the log has none.
    notes : tuple of str
        What was taken for what, and what was left out.

    Examples
    --------
    >>> answers = [Answer(f"q{k}", "m", "arc", 1, k % 2, 0.6) for k in range(4)]
    >>> log = EvaluationLog.of(answers, ["correct: metric 'acc'"])
    >>> log, log.data().confidence
    (<EvaluationLog, n=4, 1 model>, array([0.6, 0.6, 0.6, 0.6]))
    """

    columns: dict[str, NDArray[Any]]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, answers: Sequence[Answer], notes: Iterable[str] = ()) -> EvaluationLog:
        """From single answers."""
        made = {name: np.array([getattr(one, name) for one in answers]) for name in Answer._fields}
        return cls(made, tuple(notes))

    def __len__(self) -> int:
        return len(self.columns["question"])

    def __repr__(self) -> str:
        number = len(set(self.columns["model"].tolist()))
        return f"<EvaluationLog, n={len(self):_}, {number} model{'' if number == 1 else 's'}>"

    @property
    def known(self) -> Mask:
        """Which answers have an outcome and a confidence."""
        return ~np.any([np.isnan(self.columns[name].astype(np.float64)) for name in ("correct", "confidence")], axis=0)

    def require_known(self, *, drop_missing: bool, remedy: str = "data(drop_missing=True)") -> None:
        """Raise unless all answers have an outcome and a confidence, or some and the others are to be left out."""
        known, said = self.known, " ".join(self.notes)
        if not known.any():
            fail(f"No answer of the log has both an outcome and a confidence. {said}")
        if not (known.all() or drop_missing):
            of = f"{np.count_nonzero(~known):,} of {len(self):,} answers"
            fail(f"{of} have no outcome or no confidence; leave them out: {remedy}. {said}")

    def data(self, *, drop_missing: bool = False) -> Confidence:
        """All answers, with the question as group where one was asked more than once.

        Answers without a known outcome or confidence raise an error, unless they are to be left out.
        """
        self.require_known(drop_missing=drop_missing)
        correct, confidence = (self.columns[name][self.known].astype(np.float64) for name in ("correct", "confidence"))
        question = self.columns["question"][self.known]
        repeated = len(np.unique(question)) < len(question)
        return Confidence(correct, confidence, group=question if repeated else None)

    def models(self, *, drop_missing: bool = False) -> dict[str, Confidence]:
        """The answers of each model, in the same order of questions, ready for `compare`.

        With `drop_missing`, questions that a model did not answer are left out for all models.
        """
        data = self.data(drop_missing=drop_missing)
        model, question = (self.columns[name][self.known] for name in ("model", "question"))
        return by_model(data, model=model, question=question, drop_missing=drop_missing)


def by_model(
    data: Confidence, *, model: NDArray[Any], question: NDArray[Any], drop_missing: bool = False
) -> dict[str, Confidence]:
    """The answers of each model in the same order of questions; every model must have answered all of them.

    Answers of one model to one question are paired in their order, and then are one cluster. Questions that not every
    model answered equally often raise an error, unless they are to be left out.
    """
    names, code = np.unique(model.astype(str), return_inverse=True)
    asked, number = np.unique(question.astype(str), return_inverse=True)
    counts = np.zeros((len(names), len(asked)), dtype=np.intp)
    np.add.at(counts, (code.reshape(-1), number.reshape(-1)), 1)
    differs = (counts != counts[0]).any(axis=0)
    if drop_missing and differs.any() and not differs.all():
        some = ~differs[number.reshape(-1)]
        return by_model(data.take(some), model=model[some], question=question[some])
    if differs.any():
        first = int(np.argmax(differs))
        told = ", ".join(f"{name}: {count}" for name, count in zip(names, counts[:, first].tolist(), strict=True))
        fail(
            f"Models are compared on the same questions, but {differs.sum():,} of {len(asked):,} do not have the same "
            f"number of answers from each (first: {str(asked[first])!r}, {told}). Leave them out (drop_missing)."
        )
    order = np.lexsort((np.arange(len(data)), number.reshape(-1)))
    single = bool((counts == 1).all())
    found = {}
    for place, name in enumerate(names.tolist()):
        rows = order[code.reshape(-1)[order] == place]
        weight = None if data.weight is None else data.weight[rows]
        group = None if single else number.reshape(-1)[rows]
        found[name] = Confidence(data.correct[rows], data.confidence[rows], weight=weight, group=group)
    return found


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_eval(
    path: Paths,
    *,
    correct: str | None = None,
    confidence: str | None = None,
    judge: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> EvaluationLog:
    """Read answers, their correctness and their confidence from the logs of an evaluation.

    The notes of the result say which fields were used. If a log is ambiguous, an error lists the candidates.

    Parameters
    ----------
    path : path, or several
        ``samples_*.jsonl`` of lm-evaluation-harness (``--log_samples``); ``.eval`` or ``.json`` of Inspect; a run
        folder of HELM; an output file of OpenAI's Batch API; or a folder of such.
    correct : str, optional
        The field that says whether an answer is right, if there are several: a metric of lm-evaluation-harness
        (``"acc"``, with a filter ``"exact_match,strict-match"``) or HELM, a scorer of Inspect (``"choice"``, or
        ``"scorer/key"``).
    confidence : str, optional
        A scorer of Inspect or a statistic of HELM that is the confidence. By default it is computed: the softmax of the
        log-likelihoods of the choices (per character for ``acc_norm``), the probability of the answer's letter among
        letters, or HELM's ``max_prob``.
    judge : str, optional
        A scorer of Inspect that holds a judge's score.
    answers : mapping, optional
        The right letter of each ``custom_id``, which an output of the Batch API does not hold.

    Notes
    -----
    Samples with an error and failed requests are not answers, and are left out with a note. Partly right answers have
    no outcome. Several epochs or trials of one question are answers to the same question.

    Examples
    --------
    >>> import calibrant as cal
    >>> log = cal.read_eval("logs/run.eval")  # doctest: +SKIP
    >>> cal.report(log.data())  # doctest: +SKIP
    """
    paths = [Path(one) for one in ([path] if isinstance(path, (str, os.PathLike)) else path)]
    found = [(place, kind) for one in paths for place, kind in logs_in(one)]
    if not found:
        fail(
            f"{', '.join(map(str, paths))} holds no log of lm-evaluation-harness (samples_*.jsonl), Inspect (.eval, "
            ".json), HELM (a folder with per_instance_stats.json) or OpenAI's Batch API."
        )
    wanted = Wanted(correct, confidence, judge, answers, [])
    read = [answer for place, kind in found for answer in READERS[kind](place, wanted)]
    if not read:
        fail(f"{found[0][0]} holds no answers. {' '.join(wanted.notes)}")
    counted = Counter(wanted.notes)
    notes = [f"{note} ({number} logs)" if number > 1 else note for note, number in counted.items()]
    return EvaluationLog.of(read, [f"{found[0][1]} log: {len(read):,} answers.", *notes])


@dataclass(frozen=True)
class Wanted:
    """What the caller asks for, and notes that readers add to."""

    correct: str | None
    confidence: str | None
    judge: str | None
    answers: Mapping[str, str] | None
    notes: list[str]

    def note(self, text: str, *, where: object = True) -> None:
        """Add a note where there is something to be said."""
        if where:
            self.notes.append(text)


def logs_in(path: Path) -> Iterator[tuple[Path, Kind]]:
    """The logs that a path is or holds; folders are searched."""
    if path.is_dir():
        helm = sorted(one.parent for one in path.rglob("per_instance_stats.json"))
        yield from ((one, "HELM") for one in helm if (one / "run_spec.json").exists())
        for one in sorted([*path.rglob("samples_*.jsonl"), *path.rglob("*.eval")]):
            yield from logs_in(one)
    elif path.suffix == ".eval":
        yield path, "Inspect"
    elif path.suffix in (".json", ".jsonl") and path.is_file():
        kind = _kind_of(path)
        if kind is not None:
            yield path, kind


def _kind_of(path: Path) -> Kind | None:
    """The kind of a JSON file from its first object."""
    with path.open(encoding="utf-8", errors="replace") as file:
        if path.suffix == ".json":
            start = file.read(100_000)
            inspect = all(f'"{key}"' in start for key in ("version", "eval")) and start.lstrip().startswith("{")
            return "Inspect" if inspect else None
        line = next((line for line in file if line.strip()), "")
    try:
        keys = set(json.loads(line))
    except (ValueError, TypeError):
        return None
    if keys >= {"doc_id", "filtered_resps"}:
        return "lm-evaluation-harness"
    return "OpenAI batch" if keys >= {"custom_id", "response"} else None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    fail(f"Line {number} of {path} is not JSON: {error}", cause=error)


def _lm_eval(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """Samples of lm-evaluation-harness: a line per question and filter."""
    samples = list(_lines(path))
    metric, chosen = _metric(path, samples, wanted.correct)
    wanted.note(f"correct: metric {metric!r}, filter {chosen!r}.")
    task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT[\d.\-]+$", "", path.stem)
    model = path.resolve().parent.name
    sure: list[float] = []
    for one in samples:
        if str(one.get("filter", "none")) != chosen:
            continue
        scores = _choice_scores(one, metric)
        sure.append(math.nan if scores is None else float(softmax(scores[None]).max()))
        yield Answer(f"{task}/{one['doc_id']}", model, task, 1, float(one[metric]), sure[-1])
    per = " per character" if metric == "acc_norm" else ""
    none = "confidence: none, since answers were generated, not chosen by their log-likelihood."
    said = f"confidence: softmax of the log-likelihoods{per} of the choices."
    wanted.note(none if sure and all(map(math.isnan, sure)) else said)


def _metric(path: Path, samples: list[dict[str, Any]], asked: str | None) -> tuple[str, str]:
    """Metric and filter: those asked for, or the only ones whose values are all 0 or 1."""
    found = Counter[tuple[str, str]]()
    for one in samples:
        for name in one.get("metrics", ()):
            value = one.get(name)
            if isinstance(value, (bool, int, float)) and value in (0, 1):
                found[name, str(one.get("filter", "none"))] += 1
    rows = Counter(str(one.get("filter", "none")) for one in samples)
    fit = [pair for pair, count in found.items() if count == rows[pair[1]]]
    alone = len(rows) == 1
    name, _, chosen = (asked or "").partition(",")
    matching = [pair for pair in fit if asked is None or (pair[0] == name and chosen in ("", pair[1]))]
    if len(matching) == 1:
        return matching[0]
    choices = ", ".join(repr(name if alone else f"{name},{chosen}") for name, chosen in sorted(fit)) or "none"
    why = "Filters score the same answers twice. " if not alone else ""
    what = f"correct={asked!r} names" if asked is not None else "correct= is needed:"
    return fail(f"{path}: {what} {len(matching)} of the metrics that are 0 or 1. {why}Choose one: {choices}.")


def _choice_scores(one: Mapping[str, Any], metric: str) -> NDArray[np.float64] | None:
    """Log-likelihoods of the choices, which are written as text; None where the answer was generated."""
    given = one["filtered_resps"]
    if len(given) < 2 or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in given):
        return None
    scores = np.array([float(pair[0]) for pair in given])
    if "acc_mutual_info" in one.get("metrics", ()):  # the second half are the choices without the question
        scores, alone = scores[: len(scores) // 2], scores[len(scores) // 2 :]
        scores = scores - alone if metric == "acc_mutual_info" else scores
    if metric == "acc_norm":
        texts = [str(part["arg_1"]).lstrip() for part in list(one["arguments"].values())[: len(scores)]]
        scores = scores / np.maximum([len(text) for text in texts], 1)
    return scores


#: Grades of Inspect; one that is partly right has no outcome, and no answer is not right.
#: Test: tests/scale/test_evaluation_logs.py::test_inspect_grades_errors_and_withdrawn_samples.
GRADES = {"C": 1.0, "I": 0.0, "N": 0.0, "P": math.nan}


def _inspect(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """A log of Inspect: a sample per question and epoch."""
    if path.suffix == ".json":
        head = json.loads(path.read_text(encoding="utf-8"))  # NaN is a bare constant, which json reads
        samples = head.get("samples") or []
    else:
        head, samples = _inspect_zip(path)
    if not isinstance(head.get("eval"), dict):
        fail(f"{path} is not a log of Inspect: it has no 'eval'.")
    model, task = str(head["eval"].get("model", "")), str(head["eval"].get("task", ""))
    failed, partial, letters = 0, 0, 0
    for one in samples:
        if one.get("error") or one.get("invalidation") or not one.get("scores"):
            failed += 1
            continue
        scorer = _scorer(path, one["scores"], wanted)
        value = _score(one["scores"], scorer)
        partial += math.isnan(value)
        if wanted.confidence is not None:
            sure = _score(one["scores"], wanted.confidence)
        else:
            sure = _answer_token(one, one["scores"].get(scorer.partition("/")[0], {}).get("answer"))
            letters += not math.isnan(sure)
        judged = math.nan if wanted.judge is None else _score(one["scores"], wanted.judge)
        yield Answer(f"{task}/{one['id']}", model, task, int(one.get("epoch", 1)), value, sure, judged)
    wanted.note(f"Left out {failed:,} samples with an error, withdrawn, or without a score.", where=failed)
    wanted.note(f"{partial:,} answers are partly right or have no grade: they have no outcome.", where=partial)
    some, none = "probability of the answer's letter among letters.", "none, no log-probabilities of letters."
    wanted.note(f"confidence: {some if letters else none}", where=wanted.confidence is None)


def _scorer(path: Path, scores: Mapping[str, Any], wanted: Wanted) -> str:
    """The scorer that says what is right: the one asked for, or the only one that is nothing else."""
    others = {str(name).partition("/")[0] for name in (wanted.judge, wanted.confidence) if name is not None}
    found = [name for name in scores if name not in others]
    chosen = wanted.correct
    if chosen is None:
        if len(found) != 1:
            fail(f"{path}: scorers {sorted(scores)}. Say which one is correct=, and which is judge= or confidence=.")
        (chosen,) = found
    note = f"correct: scorer {chosen!r}."
    wanted.note(note, where=note not in wanted.notes)
    return chosen


def _score(scores: Mapping[str, Any], name: str) -> float:
    """The value of a score, "scorer" or "scorer/key"; NaN where it is none."""
    scorer, _, key = name.partition("/")
    if scorer not in scores:
        fail(f"There is no scorer {scorer!r}; the log has {sorted(scores)}.")
    value = scores[scorer].get("value")
    if isinstance(value, dict):
        if key not in value:
            fail(f"The score of {scorer!r} has several values: name one, {[f'{scorer}/{one}' for one in value]}.")
        value = value[key]
    if isinstance(value, str):
        value = GRADES.get(value, value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _inspect_zip(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Header and samples; a log that is still written has its header in the journal."""
    with zipfile.ZipFile(path) as archive:
        names = dict.fromkeys(archive.namelist())  # of members with one name the last counts
        head = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        if head is None:
            fail(f"{path} is not a log of Inspect: it has no header.json.")
        samples = [name for name in names if re.fullmatch(r"samples/.*_epoch_\d+(/sample)?\.json", name)]
        return _member(archive, head), [_member(archive, name) for name in samples]


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """A member of a zip file as JSON; zstandard, which Python reads from 3.14 on, by pyarrow."""
    info = archive.getinfo(name)
    if info.compress_type != ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD"):
        return json.loads(archive.read(name))
    try:
        import pyarrow as pa
    except ImportError as error:
        remedy = "install pyarrow (pip install 'calibrant[files]')"
        fail(f"{archive.filename} is compressed by zstandard: {remedy}.", ImportError, cause=error)
    file: Any = archive.fp
    file.seek(info.header_offset + 26)
    before = sum(struct.unpack("<HH", file.read(4)))  # lengths of name and extra field
    file.seek(info.header_offset + 30 + before)
    raw = pa.BufferReader(file.read(info.compress_size))
    return json.loads(pa.CompressedInputStream(raw, "zstd").read())


def _answer_token(sample: Mapping[str, Any], answer: Any) -> float:
    """How probable the letter of the answer was among letters, at its last place; NaN where that is not known."""
    choice = ((sample.get("output") or {}).get("choices") or [{}])[0]
    said = str(answer or "").strip()
    return _letter(choice, said)[1] if re.fullmatch("[A-Z]", said) else math.nan


def _letter(choice: Mapping[str, Any], only: str | None = None) -> tuple[str | None, float, float]:
    """The last token that is a letter (or this one): itself, its part of the mass of letters, and that mass."""
    for token in reversed((choice.get("logprobs") or {}).get("content") or []):
        said = str(token["token"]).strip()
        if not re.fullmatch("[A-Z]", said) or only not in (None, said):
            continue
        own, mass = math.exp(token["logprob"]), dict[str, float]()
        for other in token.get("top_logprobs") or [token]:  # " B" and "B" are one answer
            letter = str(other["token"]).strip()
            if re.fullmatch("[A-Z]", letter):
                mass[letter] = mass.get(letter, 0.0) + math.exp(other["logprob"])
        mass[said] = max(mass.get(said, 0.0), own)
        total = sum(mass.values())
        return said, mass[said] / total, total
    return None, math.nan, math.nan


def _helm(folder: Path, wanted: Wanted) -> Iterator[Answer]:
    """A run folder of HELM: a record per instance, perturbation and trial."""
    names = ("run_spec.json", "per_instance_stats.json")
    spec, records = (json.loads((folder / name).read_text("utf-8")) for name in names)
    adapter = spec.get("adapter_spec", {})
    model, task = str(adapter.get("model") or adapter.get("model_deployment")), str(spec.get("name", "")).split(":")[0]
    metric, sure = wanted.correct or "exact_match", wanted.confidence or "max_prob"
    wanted.note(f"correct: statistic {metric!r}. confidence: statistic {sure!r}.")
    original = [one for one in records if (one.get("perturbation") or {}).get("name") in (None, "identity")]
    copies = len(records) - len(original)
    wanted.note(f"Left out {copies:,} perturbed copies of instances.", where=copies)
    zero, fractions, none = 0, 0, True
    for one in original:
        stats = {stat["name"]["name"]: _mean(stat) for stat in one["stats"]}
        if metric not in stats:
            fail(f"{folder}: no statistic {metric!r}; instance {one['instance_id']!r} has {sorted(stats)}.")
        value, confidence, none = stats[metric], stats.get(sure, math.nan), none and sure not in stats
        if sure == "max_prob" and stats.get("logprob", -1.0) == 0:
            zero, confidence = zero + 1, math.nan
        if value not in (0.0, 1.0):
            fractions, value = fractions + (not math.isnan(value)), math.nan
        question, trial = f"{task}/{one['instance_id']}", int(one.get("train_trial_index", 0))
        yield Answer(question, model, task, trial, value, confidence)
    wanted.note(f"{zero:,} answers have log-probabilities of 0, as of models without any: no confidence.", where=zero)
    wanted.note(f"No answer has the statistic {sure!r}: no confidence.", where=none)
    note = f"{fractions:,} answers are partly right ({metric} between 0 and 1): they have no outcome."
    wanted.note(note, where=fractions)


def _mean(stat: Mapping[str, Any]) -> float:
    if stat.get("mean") is not None:
        return float(stat["mean"])
    return float(stat["sum"] / stat["count"]) if stat.get("count") else math.nan


def _batch(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """An output of OpenAI's Batch API: a line per request, in any order."""
    if wanted.answers is None:
        fail(
            f"{path} is an output of OpenAI's Batch API, which does not hold the right answers: in Python, "
            "read_eval(path, answers={custom_id: letter}); on the command line, name a file with columns custom_id and "
            "answer beside it."
        )
    failed, unknown, masses = 0, 0, list[float]()
    for one in _lines(path):
        response = one.get("response") or {}
        if one.get("error") or response.get("status_code") != 200:
            failed += 1
            continue
        body, question = response["body"], str(one["custom_id"])
        said, sure, mass = _letter(body["choices"][0])
        right = wanted.answers.get(question)
        unknown += right is None
        known = right is not None and said is not None
        masses.append(mass)
        yield Answer(question, str(body.get("model")), "batch", 1, float(said == right) if known else math.nan, sure)
    wanted.note(f"Left out {failed:,} requests that failed.", where=failed)
    wanted.note(f"{unknown:,} answers are not among answers=.", where=unknown)
    wanted.note("confidence: probability of the last letter that was said, among letters.", where=masses)
    least, none = min((mass for mass in masses if mass < 1), default=1.0), sum(map(math.isnan, masses))
    wanted.note(f"Letters hold at least {least:.0%} of the probability ({none:,} have none).", where=least < 1)


READERS: dict[Kind, Callable[[Path, Wanted], Iterator[Answer]]] = {
    "lm-evaluation-harness": _lm_eval,
    "Inspect": _inspect,
    "HELM": _helm,
    "OpenAI batch": _batch,
}
