"""From archives, folders and tables of public repositories to what the reproductions read; beside `data_conversion`.

Functions that end a .npz file return arrays; those of .gz files return the bytes that are packed into them.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from reproduce.data_conversion import Arrays, arrays_only

#: Answers of language models; a confidence whose answer could not be read is kept and marked.
GRADES = {"Wrong": 0, "Correct": 1, "Unparseable": 255}
ANSWERS = re.compile(
    r"(?P<dataset>[a-z]+)_(?P<model>.+)-q(?P<first>\d+)to\d+_no_abst_norm_logits_(?P<prompt>first|second)_prompt\.txt"
)
#: What makes one forecast of the hub, in the order of the rows.
FORECAST = ["location", "target_end_date", "target_type", "forecast_date", "model", "horizon"]


def array_of(path: Path, name: str) -> np.ndarray:
    """One array of an .npz file; of arrays of arrays, which NumPy would unpickle, nothing else is read."""
    with zipfile.ZipFile(path) as archive:
        held = io.BytesIO(archive.read(f"{name}.npy"))
    np.lib.format.read_magic(held)
    _, _, dtype = np.lib.format.read_array_header_1_0(held)
    if dtype.hasobject:
        return arrays_only(held)
    held.seek(0)
    return np.load(held, allow_pickle=False)


def record(paths: list[Path]) -> Arrays:
    """Class probabilities and true classes of one network."""
    return {
        "probs": array_of(paths[0], "predictions").astype(np.float32),
        "labels": array_of(paths[0], "ground_truth").astype(np.int16),
    }


def detections(paths: list[Path]) -> Arrays:
    """Scores of detected objects, whether each matches a true one, its category, and the number of its image."""
    scores, matched, classes = (array_of(paths[0], name) for name in ("scores", "matched", "classes"))
    counts = [len(each) for each in scores]
    return {
        "conf": np.concatenate(list(scores)).astype(np.float32),
        "correct": np.concatenate(list(matched)).astype(np.uint8),
        "category": np.concatenate(list(classes)).astype(np.int16),
        "group": np.repeat(np.arange(len(counts)), counts).astype(np.int16),
    }


def vectors_and_two_labels(paths: list[Path]) -> Arrays:
    """Rows of class probabilities, and a file with the true and the predicted class."""
    probabilities, labels = (np.loadtxt(path, delimiter=",", ndmin=2) for path in paths)
    true, predicted = labels.astype(np.int16).T
    return {"probs": probabilities.astype(np.float32), "labels": true.copy(), "pred_file": predicted.copy()}


def two_arrays(paths: list[Path]) -> Arrays:
    """Class probabilities and true classes, an .npy file each."""
    probabilities, labels = (np.load(path, allow_pickle=False) for path in paths)
    return {"probs": probabilities.astype(np.float32), "labels": labels.astype(np.int16)}


def employment(paths: list[Path]) -> Arrays:
    """Predicted and true employment of the reference year, then of later years, whose truth is a file of its own."""
    from pyarrow import parquet

    reference, later, truth = (parquet.read_table(path) for path in paths)
    if not later["id"].equals(truth["id"]):
        message = "The rows of the analysis file and of its targets are not the same."
        raise ValueError(message)

    def joined(name: str, other: Any, dtype: type) -> np.ndarray:
        return np.concatenate([reference[name].to_numpy(), other[name].to_numpy()]).astype(dtype)

    return {
        "prob": joined("predicted_probability", later, np.float32),
        "labels": joined("employed", truth, np.uint8),
        "year": joined("year", later, np.int16),
    }


def answers(paths: list[Path]) -> Arrays:
    """Confidence and grade of language models' answers: a folder of files, one per data set, model, prompt and part."""
    found = [(match, path) for path in paths[0].iterdir() if (match := ANSWERS.fullmatch(path.name))]
    datasets, models = (sorted({match[name] for match, _ in found}) for name in ("dataset", "model"))
    found.sort(key=lambda each: (each[0]["dataset"], each[0]["model"], each[0]["prompt"], int(each[0]["first"])))
    rows = [
        (
            float(confidence),
            GRADES[grade],
            datasets.index(match["dataset"]),
            models.index(match["model"]),
            int(match["prompt"] == "second"),
            int(match["first"]) + number,
        )
        for match, path in found
        for number, (grade, confidence) in enumerate(
            line.split() for line in path.read_text(encoding="utf8").splitlines()[1:]
        )
    ]
    confidence, *coded, question = zip(*rows, strict=True)
    codes = dict(zip(("correct", "dataset", "model", "prompt"), coded, strict=True))
    return {
        "conf": np.array(confidence, np.float32),
        **{name: np.array(values, np.uint8) for name, values in codes.items()},
        "question": np.array(question, np.int16),
        "dataset_names": np.array(datasets),
        "model_names": np.array(models),
    }


def frame_of(path: Path) -> Any:
    """The one table in a file of R, as a pandas data frame."""
    try:
        import rdata
    except ImportError as error:
        message = f"{path.name} is a file of R; to read it: pip install rdata"
        raise SystemExit(message) from error
    return next(iter(rdata.read_rda(path).values()))


def four_classes(frame: Any) -> Arrays:
    """Cross-validated probabilities of the four classes of hpc_cv."""
    names = ["VF", "F", "M", "L"]
    _, fold = np.unique(frame["Resample"].to_numpy().astype(str), return_inverse=True)
    return {
        "probs": frame[names].to_numpy().astype(np.float32),
        "labels": np.array([names.index(observed) for observed in frame["obs"]], np.int16),
        "fold": fold.astype(np.int16),
    }


def forecasts(frame: Any, member: str) -> tuple[Arrays, np.ndarray, np.ndarray]:
    """Forecasts of a hub: what each is of, a row of predictions per forecast, and the names of their columns."""
    made = frame[frame["predicted"].notna()]
    wide = made.pivot_table(index=FORECAST, columns=member, values="predicted", sort=True)

    def part(name: str) -> np.ndarray:
        return wide.index.get_level_values(name).to_numpy()

    held = {
        "y": made.groupby(FORECAST, sort=True)["observed"].first().to_numpy(),
        "model": part("model").astype(str),
        "target": part("target_type").astype(str),
        "location": part("location").astype(str),
        "horizon": part("horizon"),
    }
    return held, wide.to_numpy().astype(float), wide.columns.to_numpy().astype(float)


def quantile_forecasts(frame: Any) -> Arrays:
    """Forecasts by quantiles."""
    held, quantiles, levels = forecasts(frame, "quantile_level")
    return {**held, "quantiles": quantiles, "levels": levels}


def sampled_forecasts(frame: Any) -> Arrays:
    """Forecasts by samples."""
    held, samples, _ = forecasts(frame, "sample_id")
    return {**held, "samples": samples}


def of_r_table(convert: Callable[[Any], Arrays]) -> Callable[[list[Path]], Arrays]:
    """A converter of a file of R by a converter of its table."""
    return lambda paths: convert(frame_of(paths[0]))


def sentences_of(path: Path, folder: str) -> Iterator[ElementTree.Element]:
    """The sentences of all documents of a folder of the corpus of drug interactions."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(folder) and name.endswith(".xml"):
                yield from ElementTree.fromstring(archive.read(name)).iter("sentence")


def sentence_rows(sentence: ElementTree.Element) -> Iterator[list[str]]:
    """The sentence itself."""
    yield [sentence.attrib["id"], sentence.attrib["text"]]


def pair_rows(sentence: ElementTree.Element) -> Iterator[list[str]]:
    """Every pair of drugs of the sentence, and whether they interact."""
    entities = {each.attrib["id"]: each.attrib for each in sentence.iter("entity")}
    name = sentence.attrib["id"]
    source = name.split(".")[0].removeprefix("DDI-")
    for pair in sentence.iter("pair"):
        drugs = [entities[pair.attrib[end]][key] for end in ("e1", "e2") for key in ("charOffset", "type", "text")]
        yield [name, source, str(int(pair.attrib["ddi"] == "true")), pair.attrib.get("type", ""), *drugs]


SENTENCES = ["sentence_id", "text"]
PAIRS = ["sentence_id", "source", "ddi", "type", *(f"e{n}_{key}" for n in (1, 2) for key in ("offset", "type", "text"))]
TRAIN, TEST = "DDICorpus/Train/", "DDICorpus/Test/Test for DDI Extraction task/"


def corpus_table(
    folder: str, header: list[str], rows_of: Callable[[ElementTree.Element], Iterator[list[str]]]
) -> Callable[[list[Path]], bytes]:
    """A converter of the zipped corpus into one table of it; tabs and ends of lines in texts become spaces."""

    def convert(paths: list[Path]) -> bytes:
        rows = [header, *(row for sentence in sentences_of(paths[0], folder) for row in rows_of(sentence))]
        return "".join("\t".join(re.sub(r"[\t\r\n]", " ", each) for each in row) + "\n" for row in rows).encode()

    return convert


def unchanged(paths: list[Path]) -> bytes:
    """The file as it is; only packed."""
    return paths[0].read_bytes()


CONVERTERS: dict[str, Callable[[list[Path]], Arrays | bytes]] = {
    **{
        function.__name__: function
        for function in (record, detections, vectors_and_two_labels, two_arrays, employment, answers, unchanged)
    },
    **{function.__name__: of_r_table(function) for function in (four_classes, quantile_forecasts, sampled_forecasts)},
    "train_sentences": corpus_table(TRAIN, SENTENCES, sentence_rows),
    "train_pairs": corpus_table(TRAIN, PAIRS, pair_rows),
    "test_sentences": corpus_table(TEST, SENTENCES, sentence_rows),
    "test_pairs": corpus_table(TEST, PAIRS, pair_rows),
}
